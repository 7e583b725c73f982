//! The lines of a day's file, one JSON object each.

use serde::{Deserialize, Serialize};

use crate::meter::Amount;
use crate::money::MicroDollars;

pub(super) const SCHEMA_VERSION: u32 = 1;

/// One line. Readers skip unreadable lines, since a killed writer may leave half a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line.
    Open {
        schema_version: u32,
        /// The day, in UTC.
        day: String,
    },
    /// A reservation of money and tokens.
    Reserve {
        run: String,
        /// The number of the reservation within its run.
        id: u64,
        /// The process, for people.
        pid: u32,
        at: String,
        #[serde(flatten)]
        amount: Amount,
    },
    /// The settlement of a reservation.
    Settle {
        /// The run that made the reservation.
        run: String,
        id: u64,
        at: String,
        /// The amount spent.
        #[serde(flatten)]
        amount: Amount,
        /// Part of the money that no provider confirmed.
        #[serde(default)]
        unconfirmed: MicroDollars,
    },
}
