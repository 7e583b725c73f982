//! The problems of a run: what it refuses before it begins, and what it found.

use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_judge::verdict::Outcome as TrialOutcome;
use aec_model::meter::Unpriced;
use aec_run::event::{RunEnded, StopReason};
use aec_run::harness::PreparedAgent;
use aec_run::terms::Terms;

use crate::commands::{models, planning};
use crate::failure::Failure;

/// Refuses agents whose models have no price, if a budget in dollars holds: it would stop the run at their first call.
pub(super) fn refuse_unpriced(
    project: &Project,
    terms: &Terms,
    agents: &[Arc<PreparedAgent>],
) -> Result<(), Failure> {
    let budgets = [
        terms.caps.budget(models::experiment_budget(project)),
        planning::trial_budget(project),
        models::budget(project, Setting::DayDollars, Setting::DayTokens),
    ];
    if terms.caps.unpriced() == Unpriced::Allow || budgets.iter().all(|budget| budget.money.is_none()) {
        return Ok(());
    }
    let mut problems: Vec<Problem> = Vec::new();
    for agent in agents {
        let Some((model, missing)) =
            agent.model.as_ref().and_then(|model| Some((model, model.missing_price()?)))
        else {
            continue;
        };
        let what = format!("the model {} has no price", text::printable(model.name()));
        let problem = Problem::error(what).id("E063").about(&agent.name);
        let why = "its cost is not known, so the budget in dollars cannot hold";
        problems.push(problem.why(why).fix(missing.ways_out()));
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::input(problems)) }
}

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
    problems
}
