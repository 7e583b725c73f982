//! Finds an environment: a directory that the user names, or one below the directories of environments.

use std::path::{Path, PathBuf};

use crate::config::{Environment, module_name};
use crate::native::PackageSource;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPackage {
    /// Results go below this directory.
    pub directory: PathBuf,
    pub module: String,
    /// Where its tasks are, if it is one of our packages.
    pub tasks: Option<PathBuf>,
}

/// Looks for an environment in `places`, directories in order of precedence; relative paths start at `here`.
pub fn find(
    env_id: &str,
    environment: &Environment,
    here: &Path,
    places: &[PathBuf],
) -> Option<FoundPackage> {
    let module = module_name(env_id);
    let found = |directory: PathBuf| {
        let module = match directory.file_name().map(|name| name.to_string_lossy().replace('-', "_")) {
            Some(own) if module.is_empty() => own,
            _ => module.clone(),
        };
        let is_package = directory.join("pyproject.toml").is_file()
            || directory.join("__init__.py").is_file()
            || directory.join(format!("{module}.py")).is_file();
        let tasks = PackageSource::find(&directory, &module);
        (is_package || tasks.is_some()).then_some(FoundPackage { directory, module, tasks })
    };
    match environment {
        Environment::Directory(path) => found(here.join(path)),
        Environment::Named { owner, name, .. } => {
            // `owner/name` may also be the path of a directory.
            let own = owner.as_ref().map(|owner| here.join(owner).join(name));
            let below = places.iter().flat_map(|place| [place.join(&module), place.join(name)]);
            own.into_iter().chain(below).filter(|directory| directory.is_dir()).find_map(found)
        }
    }
}
