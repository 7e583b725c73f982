//! Why a room could not be used.

use std::io;

/// The kind of failure of a room whose first process ended although its opener did not close it. Commands of the room
/// may have caused that, by using up its memory for example.
pub const KEEPER_LOST: &str = "keeper_lost";

/// The kind of failure of a room that was not opened because its limits would not hold.
pub const WEAKER_LIMITS: &str = "weaker_limits";

/// Why a room could not be used. A command that fails is not such an error.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("this host allows no room: cannot {step}: {error}")]
    Refused {
        /// What was attempted.
        step: String,
        /// The kernel's error.
        error: String,
    },
    #[error("the room ended before it was closed")]
    Gone,
    #[error("the room's first process ended before the room was closed: {reason}")]
    KeeperLost { reason: String },
    #[error(
        "the room's limits would not hold as they usually do on this machine ({}); `aec-bench runs clean` removes \
         what killed runs left, and --allow-weaker-limits goes on with weaker limits",
        .missing.join("; ")
    )]
    WeakerLimits {
        /// The limits, each with the reason.
        missing: Vec<String>,
    },
    #[error("{message}")]
    Elsewhere {
        /// The kind of failure, as recorded.
        kind: &'static str,
        /// Whether another attempt may succeed.
        may_pass: bool,
        message: String,
    },
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl SandboxError {
    /// The kind of failure, as recorded, if there is one.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::KeeperLost { .. } => Some(KEEPER_LOST),
            Self::WeakerLimits { .. } => Some(WEAKER_LIMITS),
            Self::Elsewhere { kind, .. } => Some(kind),
            Self::Refused { .. } | Self::Gone | Self::Io(_) => None,
        }
    }

    /// Whether another attempt may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Elsewhere { may_pass, .. } => *may_pass,
            Self::WeakerLimits { .. } => false,
            Self::Refused { .. } | Self::Gone | Self::KeeperLost { .. } | Self::Io(_) => true,
        }
    }
}
