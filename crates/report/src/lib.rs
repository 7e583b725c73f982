//! Reports on records: statistics, evaluation, comparison, traces and behaviour. Nothing here uses a clock or a
//! network, and the same records give the same report.

pub mod behaviour;
pub mod compare;
pub mod evaluate;
pub mod faults;
pub mod fields;
pub mod floors;
pub mod frame;
pub mod glance;
pub mod group;
pub mod html;
pub mod label;
pub mod leaderboard;
mod missing;
pub mod page;
pub mod selection;
pub mod shown;
pub mod sizing;
pub mod stats;
pub mod trace;
pub mod traces;
pub mod withheld;
pub mod work;
