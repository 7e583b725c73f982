//! The container engine that this machine offers to runs.

use std::path::Path;

use aec_base::document::Family;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_container::engine::hosts;
use aec_container::{Engine, EngineLimits};
use serde::Serialize;

use crate::failure::Failure;

pub(crate) const FAMILY: Family = Family('B');

/// Addresses to try for a container engine, from the variables of a project.
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

/// What earlier runs left in the container engine.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Left {
    /// Containers whose run has ended.
    pub(crate) containers: usize,
    /// Images of tasks.
    pub(crate) images: usize,
}

/// Removes what earlier runs left in the container engine. If no engine answers, there is nothing to remove; that is an
/// error only if the user asked for images or set `DOCKER_HOST`.
pub(crate) fn clean(project: &Project, images: bool, dry_run: bool) -> Result<Left, Failure> {
    let engine = match engine(project) {
        Ok(engine) => engine,
        Err(failure) if images || project.env.get("DOCKER_HOST").is_some() => return Err(failure),
        Err(_) => return Ok(Left::default()),
    };
    let refused = |error: aec_container::EngineError| {
        let problem = Problem::error(error.to_string()).id(FAMILY.number(21));
        Failure::environment(problem.fix("see what the container engine says"))
    };
    let mut found = engine.leftovers().map_err(refused)?;
    if !images {
        found.images.clear();
    }
    if dry_run {
        return Ok(Left { containers: found.containers.len(), images: found.images.len() });
    }
    let cleaned = engine.clean(&found).map_err(refused)?;
    Ok(Left { containers: cleaned.containers, images: cleaned.images })
}
