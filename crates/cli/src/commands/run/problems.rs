//! The problems that a run found.

use aec_base::problem::Problem;
use aec_base::text;
use aec_judge::verdict::Outcome as TrialOutcome;
use aec_run::event::{RunEnded, StopReason};

/// The problems of a run, for the exit code and the envelope.
pub(super) fn found(ended: &RunEnded) -> Vec<Problem> {
    let mut problems = Vec::new();
    let resume = format!("aec-bench run --resume {}", ended.experiment_id);
    let resume = ended.all.continuation(&ended.experiment_id).unwrap_or(resume);
    if let Some(reason) = &ended.stopped {
        let missing = ended.all.planned - ended.all.executed;
        let what = match reason {
            StopReason::Asked | StopReason::Insisted => "the run was stopped".to_owned(),
            StopReason::Budget(message) => format!("the budget is used up: {message}"),
            StopReason::Time => "the time is over".to_owned(),
            StopReason::Faults(message) => format!("the run stopped after {message}"),
            StopReason::Storage(message) => format!("the run cannot keep its records: {message}"),
        };
        let what = format!("{what}; {} not run", text::count(missing, "trial"));
        let fix = match reason {
            StopReason::Budget(_) => format!("go on with `{resume}` and a higher budget, say --max-cost"),
            _ => format!("go on with `{resume}`"),
        };
        problems.push(Problem::error(what).id("E060").fix(fix));
    }
    for (outcome, id) in [(TrialOutcome::InfraFault, "E061"), (TrialOutcome::VerifierFault, "E062")] {
        if let Some(count) = ended.all.outcomes.get(&outcome) {
            let what = format!("{} ended in {}", text::count(*count, "trial"), outcome.name());
            let problem = Problem::warning(what).id(id).why("this says nothing about the agents");
            problems.push(
                problem
                    .fix(format!("see `aec-bench ledger list -e {}`, then `{resume}`", ended.experiment_id)),
            );
        }
    }
    for tally in ended.agents.iter().filter(|tally| tally.crashed > 0) {
        let agent = tally.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        let said = tally.traceback.as_deref().and_then(|said| said.lines().last()).unwrap_or_default();
        let trials = text::count(tally.crashed, "trial");
        let problem = if tally.only_crashed() {
            Problem::error(format!("the program of {agent} crashed in every trial ({trials})"))
        } else {
            Problem::note(format!("the program of {agent} crashed in {trials} of {}", tally.executed))
        };
        let problem = problem.id("E063").fix("correct the program or what it needs; these trials count as 0");
        let problem = if said.is_empty() { problem } else { problem.why(text::printable(said)) };
        problems.push(problem);
    }
    problems
}
