//! `aec-bench generate replay`.

use aec_author::manifest::FAMILY;
use aec_author::replay;
use aec_base::problem::Problem;
use aec_base::text;

use crate::arguments::ReplayArguments;
use crate::commands::generate_task::engines;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

pub(crate) fn replay(context: &Context, arguments: &ReplayArguments) -> Result<Outcome, Failure> {
    let manifest = context.absolute(&arguments.manifest)?;
    let output = arguments.output.as_ref().map(|output| context.absolute(output)).transpose()?;
    let replay = replay::replay(&engines(context, &arguments.sandbox), &manifest, output.as_deref())?;
    let problems: Vec<Problem> = replay
        .different
        .iter()
        .map(|difference| {
            Problem::error(difference.what.clone())
                .id(FAMILY.number(20))
                .about(&difference.task)
                .fix("somebody edited the task, or it was made elsewhere; --output writes what the manifest says")
                .in_file(manifest.with_file_name(&difference.task))
        })
        .collect();
    let outcome = Outcome::new(context.format, &replay, String::new)?;
    let count = text::count(replay.instances, "instance");
    Ok(outcome.remark(format!("{} of {count} identical to the byte.", replay.identical)).problems(problems))
}
