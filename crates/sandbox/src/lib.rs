//! Sandboxes in which commands cannot do harm.
//!
//! A [`Room`] is a set of Linux namespaces with the host's programs read-only, its own `/proc`, `/tmp` and writable
//! directories of bounded size, no network unless the caller asks for it, no privileges, a filter on system calls and
//! limits on cores, memory, disk and processes. Dropping it ends every process inside. The same interface,
//! [`Sandbox`], also covers commands on the host itself, if the user explicitly asks for that.

mod bare;
mod cgroup;
mod channel;
mod command;
mod contained;
mod doorway;
mod error;
mod filter;
pub mod host;
mod host_commands;
mod mounts;
mod output;
mod portable;
pub mod process;
pub mod python;
mod room;
mod shim;
mod spec;
mod sys;
mod tree;
mod view;
pub mod wire;

pub use bare::BareRoom;
pub use contained::run as run_contained;
pub use error::{KEEPER_LOST, SandboxError, WEAKER_LIMITS};
pub use filter::without_children;
pub use mounts::PROGRAMS;
pub use output::{Capture, Captured, OutputLimits, Spill};
pub use portable::portable_filters;
pub use room::{
    ExecResult, ExecSpec, Exit, Room, Sandbox, Stopper, Stream, accept_weaker_limits, agent_program, program,
    sweep, use_shim,
};
pub use shim::{SHIM_ARGUMENT, run as run_shim};
pub use spec::{Enforce, Held, Hold, Level, Limits, OURSELVES, ROOM_UID, RoomSpec};
pub use tree::{Elsewhere, Kind, Listed, Tree, WalkLimits};
pub use view::{InSight, in_sight, keep_private, show_also};
