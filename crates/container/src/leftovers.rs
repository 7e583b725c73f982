//! What this program left with an engine: found by labels, and removed.

use std::collections::HashMap;
use std::path::Path;

use bollard::query_parameters::{ListImagesOptions, RemoveImageOptions};

use crate::engine::{Engine, EngineError, LABEL, host_name, remove};
use crate::listing::{Listed, list_containers};

/// What this program left with the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Ids of containers whose opener is gone.
    pub containers: Vec<String>,
    /// Names of images.
    pub images: Vec<String>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Containers.
    pub containers: usize,
    /// Images.
    pub images: usize,
}

impl Engine {
    /// Containers that openers of this machine left behind, and all images that this program made: those are built
    /// again when they are needed.
    pub fn leftovers(&self) -> Result<Found, EngineError> {
        let (docker, host) = (self.docker(), self.facts().host.clone());
        self.wait(async move {
            let containers = list_containers(&host, &format!("{LABEL}=room")).await?;
            let filters = HashMap::from([("label".to_owned(), vec![format!("{LABEL}=image")])]);
            let options = ListImagesOptions { filters: Some(filters), ..Default::default() };
            let images = docker.list_images(Some(options)).await?;
            Ok(Found {
                containers: containers.into_iter().filter(is_left_behind).map(|one| one.id).collect(),
                images: images.into_iter().flat_map(|image| image.repo_tags).collect(),
            })
        })
    }

    /// Removes what was found.
    pub fn clean(&self, found: &Found) -> Result<Cleaned, EngineError> {
        let (docker, found) = (self.docker(), found.clone());
        self.wait(async move {
            let mut cleaned = Cleaned::default();
            for id in &found.containers {
                cleaned.containers += usize::from(remove(&docker, id).await);
            }
            for image in &found.images {
                let options = RemoveImageOptions { force: true, ..RemoveImageOptions::default() };
                cleaned.images += usize::from(docker.remove_image(image, Some(options), None).await.is_ok());
            }
            Ok(cleaned)
        })
    }
}

/// Whether the process that made it is one of this machine, and no more.
fn is_left_behind(container: &Listed) -> bool {
    let of = |name: &str| container.labels.get(&format!("{LABEL}.{name}"));
    let ours = of("host").is_some_and(|host| *host == host_name());
    ours && of("pid").is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}
