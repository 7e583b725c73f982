//! The container engine that this machine offers to runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use aec_base::document::Family;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_container::engine::hosts;
use aec_container::{Engine, EngineLimits, Modal};
use aec_run::experiment::Services;
use serde::Serialize;

use crate::commands::harbor;
use crate::context::Context;
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

/// Variables that Modal's client may see; its settings among them, nothing else of this process.
const MODAL_VARIABLES: [&str; 12] = [
    "HOME",
    "PATH",
    "LANG",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "MODAL_CONFIG_PATH",
    "MODAL_PROFILE",
    "MODAL_ENVIRONMENT",
    "MODAL_SERVER_URL",
    "MODAL_IMAGE_BUILDER_VERSION",
];

/// The name under which sandboxes stand in a workspace of Modal.
const MODAL_APP: &str = "aec-bench";

/// The first Python of a search path that has Modal's client. A virtual environment counts, which is why it is not the
/// interpreter behind it that is asked.
fn python_with_modal(search_path: Option<&OsStr>) -> Option<PathBuf> {
    let places = search_path.map(std::env::split_paths).into_iter().flatten();
    places
        .map(|place| place.join("python3"))
        .filter(|python| python.is_file())
        .find(|python| Modal::client_version(python).is_ok())
}

/// What is missing for Modal; nothing when it can be tried.
pub(crate) fn missing_for_modal(search_path: Option<&OsStr>, env: &aec_base::env::Env) -> Vec<String> {
    let mut missing = Vec::new();
    if python_with_modal(search_path).is_none() {
        missing.push("no python3 on PATH has Modal's client (`pip install modal`)".to_owned());
    }
    let has_file = env.get("MODAL_CONFIG_PATH").is_some()
        || env.get("HOME").is_some_and(|home| Path::new(home).join(".modal.toml").is_file());
    for name in ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"] {
        if !has_file && env.get(name).is_none() {
            missing.push(format!("{name} is not set, and there is no ~/.modal.toml"));
        }
    }
    missing
}

/// Modal, as runs use it.
pub(crate) fn modal(context: &Context, project: &Project, services: &Services) -> Result<Modal, Failure> {
    let named = harbor::variables(project, services)?;
    let env = project.env.clone().with(named.into_iter().filter(|(name, _)| name.starts_with("MODAL_")));
    let search_path = context.search_path();
    let missing = missing_for_modal(search_path.as_deref(), &env);
    let refused = |why: String| {
        let problem = Problem::error("the modal backend cannot be used").id(FAMILY.number(22));
        Failure::environment(problem.why(why).fix("see `aec-bench doctor`, or use --backend docker or local"))
    };
    let Some(python) = python_with_modal(search_path.as_deref()).filter(|_| missing.is_empty()) else {
        return Err(refused(missing.join("; ")));
    };
    let variables = MODAL_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), env.get(name)?.to_owned())))
        .collect();
    Modal::new(python, variables, MODAL_APP.to_owned()).map_err(|error| refused(error.to_string()))
}

/// What runs left with the container engine.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Left {
    /// Containers whose run is gone.
    pub(crate) containers: usize,
    /// Images of tasks.
    pub(crate) images: usize,
}

/// Removes what runs left with the container engine. Where none answers there is nothing to remove, unless somebody
/// asked for images.
pub(crate) fn clean(project: &Project, images: bool, dry_run: bool) -> Result<Left, Failure> {
    let engine = match engine(project) {
        Ok(engine) => engine,
        Err(failure) if images => return Err(failure),
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
