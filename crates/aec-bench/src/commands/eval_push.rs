//! provisional
use crate::arguments::EvalPushArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
pub(crate) fn push(_: &Context, _: &EvalPushArguments) -> Result<Outcome, Failure> {
    Err(Failure::usage(aec_base::problem::Problem::error("x")))
}
