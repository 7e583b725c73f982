//! `aec-bench swarm resume`.

use aec_evolve::event::Kind;

use crate::commands::evolve::resume::{EvolveResumeArguments, resume};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

pub(crate) fn resume_swarm(context: &Context, arguments: &EvolveResumeArguments) -> Result<Outcome, Failure> {
    resume(context, Kind::Swarm, arguments)
}
