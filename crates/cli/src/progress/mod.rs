//! What commands show while they work: one painter for lines, bars and full screens, and what it shows of runs,
//! evaluations and evolution.

pub(crate) mod eval;
pub(crate) mod events;
pub(crate) mod evolve;
pub(crate) mod figures;
pub(crate) mod outlet;
pub(crate) mod painter;
pub(crate) mod run;
pub(crate) mod steps;
mod terminal;
pub(crate) mod text;
