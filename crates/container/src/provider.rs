//! The providers of rooms that are containers.

use aec_sandbox::{RoomSpec, Sandbox, SandboxError};

use crate::engine::Engine;
use crate::image::TaskImage;
use crate::modal::Modal;
use crate::room::{ContainerRoom, Purpose};

/// A provider of rooms that are containers.
#[derive(Clone, Debug)]
pub enum Containers {
    Engine(Engine),
    Modal(Modal),
}

impl Containers {
    /// Opens a room of a task's image.
    pub fn open(
        &self,
        image: &TaskImage,
        spec: &RoomSpec,
        purpose: &Purpose,
    ) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(match self {
            Self::Engine(engine) => ContainerRoom::open(engine, image, spec, purpose)?,
            Self::Modal(modal) => modal.open(image, spec, purpose)?,
        }))
    }

    /// Builds the images of a task's rooms and services in advance, if the provider can.
    pub fn prepare(&self, image: &TaskImage) -> Result<(), SandboxError> {
        match self {
            Self::Engine(engine) => ContainerRoom::prepare(engine, image),
            // Modal builds images together with the sandbox.
            Self::Modal(_) => Ok(()),
        }
    }

    /// The name of the image of a task's rooms, which changes with its inputs; `None` if the provider has no names.
    pub fn image_name(&self, image: &TaskImage) -> Option<String> {
        match self {
            Self::Engine(engine) => Some(engine.kit(image).ok()?.room.names.room.clone()),
            Self::Modal(_) => None,
        }
    }

    /// The provider's name and version, as recorded.
    pub fn version(&self) -> (String, String) {
        match self {
            Self::Engine(engine) => (engine.facts().name.to_lowercase(), engine.facts().version.clone()),
            Self::Modal(modal) => ("modal".to_owned(), modal.version().to_owned()),
        }
    }
}
