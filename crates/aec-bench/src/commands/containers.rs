//! The container engine that this machine offers to runs.

use std::path::Path;

use aec_base::document::Family;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_container::engine::hosts;
use aec_container::{Engine, EngineLimits};

use crate::failure::Failure;

/// Problems of backends.
pub(crate) const FAMILY: Family = Family('B');

/// Where engines may answer, by the variables of a project.
pub(crate) fn places(env: &aec_base::env::Env) -> Vec<String> {
    hosts(env.get("DOCKER_HOST"), env.get("XDG_RUNTIME_DIR").map(Path::new))
}

/// The engine of a project's runs.
pub(crate) fn engine(project: &Project) -> Result<Engine, Failure> {
    let limits = EngineLimits {
        builds: project.settings.count(Setting::DockerBuilds),
        containers: project.settings.count(Setting::DockerContainers),
    };
    Engine::connect(&places(&project.env), limits).map_err(|error| {
        let problem = Problem::error("the docker backend needs a container engine").id(FAMILY.number(20));
        let fix = "start Docker, or `podman system service` and name its socket in DOCKER_HOST; or use --backend local";
        Failure::environment(problem.why(error.to_string()).fix(fix))
    })
}
