//! Rooms that are containers of a task's image, made through the Docker Engine API of Docker or Podman.
//!
//! The first process of such a container is this program. It runs commands and accesses files for the opener, over
//! the container's stdin and stdout, so a container needs no network, no shared directory and no daemon inside; when
//! the opener is gone, the container ends. The same holds for the containers beside it, which are a task's services.

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
