//! Continuing an experiment: what earlier sessions did ([`past`]), what is left to do ([`to_do`](to_do())), and the records of attempts
//! that a killed session left unfinished ([`salvage`]).

mod past;
pub(crate) mod salvage;
mod to_do;

pub use past::{Past, PastTrial, look_back, past, past_of};
pub use to_do::{Rerun, to_do};
