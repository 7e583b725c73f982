//! Where rooms that are containers come from.

use aec_sandbox::{RoomSpec, Sandbox, SandboxError};

use crate::engine::Engine;
use crate::image::TaskImage;
use crate::modal::Modal;
use crate::room::{ContainerRoom, Purpose};

/// Where rooms that are containers come from.
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

    /// Makes the images of a task's rooms and services ahead of them, where that can be done.
    pub fn prepare(&self, image: &TaskImage) -> Result<(), SandboxError> {
        match self {
            Self::Engine(engine) => ContainerRoom::prepare(engine, image),
            // Modal makes images with the sandbox.
            Self::Modal(_) => Ok(()),
        }
    }

    /// The name of the image of a task's rooms, which changes with what it is made from; where it has one.
    pub fn image_name(&self, image: &TaskImage) -> Option<String> {
        match self {
            Self::Engine(engine) => Some(engine.kit(image).ok()?.room.names.room.clone()),
            Self::Modal(_) => None,
        }
    }

    /// Who provides them, with a version, as records tell it.
    pub fn version(&self) -> (String, String) {
        match self {
            Self::Engine(engine) => (engine.facts().name.to_lowercase(), engine.facts().version.clone()),
            Self::Modal(modal) => ("modal".to_owned(), modal.version().to_owned()),
        }
    }
}
