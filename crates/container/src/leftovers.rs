//! Containers and images that this program left with an engine: finds them by labels and removes them.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use aec_sandbox::process::is_running;
use bollard::Docker;
use bollard::models::ImageSummary;
use bollard::query_parameters::{ListImagesOptions, RemoveImageOptions};

use crate::engine::{Engine, EngineError, LABEL, remove};
use crate::image::ROOM_IMAGES;
use crate::listing::{Listed, list_containers};

/// How often the engine is asked for its images.
const LISTINGS: usize = 5;

/// Containers and images that this program left with the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Ids of containers whose opener is gone.
    pub containers: Vec<String>,
    /// Names of images, or ids of unnamed ones; each image comes before those that it was made from.
    pub images: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub containers: usize,
    pub images: usize,
}

impl Engine {
    /// Containers that dead processes of this machine left behind, and all images that this program made: they are
    /// built again when needed.
    pub fn leftovers(&self) -> Result<Found, EngineError> {
        let (docker, host) = (self.docker(), self.facts().host.clone());
        self.wait(async move {
            let containers = list_containers(&host, &format!("{LABEL}=room")).await?;
            let names = list_images(&docker)
                .await?
                .into_iter()
                .flat_map(|image| if image.repo_tags.is_empty() { vec![image.id] } else { image.repo_tags });
            let mut images: Vec<String> = names.collect();
            images.sort_by_key(|name| !name.contains(ROOM_IMAGES));
            Ok(Found {
                containers: containers.into_iter().filter(is_left_behind).map(|one| one.id).collect(),
                images,
            })
        })
    }

    /// Removes the containers and images found, except images that a container still uses: it may belong to another
    /// user's run.
    pub fn clean(&self, found: &Found) -> Result<Cleaned, EngineError> {
        let (docker, found) = (self.docker(), found.clone());
        self.wait(async move {
            let mut cleaned = Cleaned::default();
            for id in &found.containers {
                cleaned.containers += usize::from(remove(&docker, id).await);
            }
            for image in &found.images {
                let options = RemoveImageOptions { force: false, ..RemoveImageOptions::default() };
                cleaned.images += usize::from(docker.remove_image(image, Some(options), None).await.is_ok());
            }
            Ok(cleaned)
        })
    }
}

/// All images that this program made. Podman refuses the list if an image is removed while it is made, so the engine is
/// asked again.
async fn list_images(docker: &Docker) -> Result<Vec<ImageSummary>, EngineError> {
    let filters = HashMap::from([("label".to_owned(), vec![format!("{LABEL}=image")])]);
    let options = ListImagesOptions { filters: Some(filters), ..Default::default() };
    let mut left = LISTINGS;
    loop {
        left -= 1;
        match docker.list_images(Some(options.clone())).await.map_err(EngineError::from) {
            Err(EngineError::Refused(_)) if left > 0 => {}
            listed => return listed,
        }
    }
}

/// Whether the process that made it ran on this machine and has ended.
fn is_left_behind(container: &Listed) -> bool {
    let of = |name: &str| container.labels.get(&format!("{LABEL}.{name}"));
    let ours = of("host").is_some_and(|host| *host == host_name())
        && boot().is_ok_and(|boot| of("boot") == Some(&boot));
    ours && of("pid").is_some_and(|pid| !is_running(pid))
}

pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Identifies the boot and the PID namespace of this machine. Engines and workspaces may be shared by machines with
/// the same name and by containers with their own process numbers, so the host name alone does not tell which process
/// a number means.
pub(crate) fn boot() -> io::Result<String> {
    let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let processes = fs_err::metadata("/proc/self/ns/pid")?.ino();
    Ok(format!("{}.{processes}", boot.trim()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[tokio::test]
    async fn a_list_that_images_leave_while_it_is_made_is_asked_for_again() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let refused = ("500 Oh", r#"{"message":"image not known"}"#);
        let answers = [refused, refused, ("200 OK", "[]")];
        let engine = std::thread::spawn(move || {
            for (status, body) in answers.into_iter().chain([refused; LISTINGS]) {
                let (mut stream, _) = listener.accept().unwrap();
                assert_ne!(stream.read(&mut [0; 4096]).unwrap(), 0);
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: \
                     {length}\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
        let docker = Docker::connect_with_http(&address, 10, bollard::API_DEFAULT_VERSION).unwrap();
        assert_eq!(list_images(&docker).await.unwrap(), []);
        assert_eq!(list_images(&docker).await.unwrap_err().kind(), "engine_refused");
        engine.join().unwrap();
    }
}
