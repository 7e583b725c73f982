//! provisional
use crate::arguments::EvalInstallArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
pub(crate) fn install(_: &Context, _: &EvalInstallArguments) -> Result<Outcome, Failure> {
    Err(Failure::usage(aec_base::problem::Problem::error("x")))
}
