//! What the sandboxes of a run can enforce on this machine.

use aec_base::problem::Problem;
use aec_base::settings::Backend;
use aec_run::experiment::FAMILY;
use aec_run::plan::{Plan, SandboxChoice};
use aec_sandbox::{Hold, host};

use crate::failure::Failure;

/// Refuses a run in whose sandboxes limits would hold less than they usually do on this machine, and tells what this
/// machine never holds. Most runs need this once, so it opens a sandbox.
pub(crate) fn check(plan: &Plan) -> Result<Option<Problem>, Failure> {
    let conditions = &plan.conditions;
    let needs_room = plan.agents.iter().any(|agent| agent.harness.needs_room());
    if conditions.backend != Backend::Local || conditions.sandbox == SandboxChoice::None || !needs_room {
        return Ok(None);
    }
    // A machine that opens no sandbox at all says so with the first trial.
    let Some((held, weaker)) = host::limits() else { return Ok(None) };
    if !weaker.is_empty() {
        let what = format!("the limits of sandboxes would not hold here ({})", weaker.join("; "));
        if conditions.sandbox == SandboxChoice::Namespaces {
            let fix = "see `aec-bench doctor`; or plan with --allow-weaker-limits, which is recorded";
            return Err(Failure::environment(Problem::error(what).id(FAMILY.number(70)).fix(fix)));
        }
        return Ok(Some(Problem::warning(what).id(FAMILY.number(70)).why("--allow-weaker-limits was said")));
    }
    Ok((held.memory == Hold::Process).then(|| {
        Problem::note(
            "memory is limited for each process alone, because this user can make no control groups here",
        )
        .id(FAMILY.number(71))
        .fix("run as root, or in a delegated control group, to bound whole trees")
    }))
}
