//! What stands in a day's file, one JSON object per line.

use serde::{Deserialize, Serialize};

use crate::meter::Amount;
use crate::money::MicroDollars;

/// Version of the format.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// One line. A reader skips what it cannot read, since a killed writer may leave half a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line.
    Open {
        /// Version of the format.
        schema_version: u32,
        /// The day, in UTC.
        day: String,
    },
    /// Money and tokens are set aside.
    Reserve {
        run: String,
        /// Names the reservation among those of its run.
        id: u64,
        /// The process, for people.
        pid: u32,
        /// When.
        at: String,
        /// How much.
        #[serde(flatten)]
        amount: Amount,
    },
    /// What became of a reservation.
    Settle {
        /// Whose.
        run: String,
        id: u64,
        /// When.
        at: String,
        /// What was spent.
        #[serde(flatten)]
        amount: Amount,
        /// How much of the money nobody confirmed.
        #[serde(default)]
        unconfirmed: MicroDollars,
    },
}
