//! Rooms that are containers of a task's own image, through the Docker Engine API of Docker or Podman.
//!
//! The first process of such a container is this very program. It runs commands and looks after files on behalf of the
//! opener, over the container's own stdin and stdout, so a container needs no network, no shared directory and no
//! daemon inside; when the opener is gone, so is the container. The same holds for containers beside it, which are a
//! task's services.

mod attached;
mod beside;
mod context;
pub mod engine;
mod entry;
pub mod image;
mod leftovers;
mod line;
mod listing;
mod modal;
mod places;
mod provider;
mod room;

pub use engine::{Engine, EngineError, Facts, Limits as EngineLimits};
pub use image::{Extension, TaskImage};
pub use leftovers::{Cleaned, Found};
pub use modal::{Modal, ModalClient, ModalRates};
pub use provider::Containers;
pub use room::{ContainerRoom, Purpose};
