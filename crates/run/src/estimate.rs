//! The most that a plan can cost, as far as known before the first call.

use aec_model::message::{Message, Request, Role, Sampling};
use aec_model::money::MicroDollars;
use aec_model::price::{Price, input_bound, output_bound};
use serde::Serialize;

use crate::experiment::Harness;
use crate::harness::PreparedAgent;
use crate::harness::direct;
use crate::plan::{Plan, PlannedTrial};

/// The most that an agent's trials can cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ceiling {
    pub agent: String,
    /// For all its trials; absent when there is no bound.
    pub at_most: Option<MicroDollars>,
    /// Why there is no bound.
    pub why: Option<&'static str>,
}

/// Prompts of a plan's tasks, in its order, as direct agents receive them: instruction and output path.
pub type Prompts = Vec<(String, String)>;

/// The most that each agent can cost. `trials` are the trials to run, `trial_budget` is the most that one may cost.
pub fn ceilings(
    plan: &Plan,
    agents: &[std::sync::Arc<PreparedAgent>],
    prompts: &Prompts,
    trials: &[&PlannedTrial],
    trial_budget: Option<MicroDollars>,
) -> Vec<Ceiling> {
    agents
        .iter()
        .enumerate()
        .map(|(index, agent)| {
            let count = trials.iter().filter(|trial| trial.agent == index).count() as u64;
            let (own, why) = own_bound(agent, prompts, u64::from(plan.repetitions));
            let budget = trial_budget.map(|budget| MicroDollars(budget.0.saturating_mul(count)));
            let at_most = match (own, budget) {
                (Some(own), Some(budget)) => Some(own.min(budget)),
                (own, budget) => own.or(budget),
            };
            Ceiling { agent: agent.name.clone(), why: if at_most.is_none() { why } else { None }, at_most }
        })
        .collect()
}

fn own_bound(
    agent: &PreparedAgent,
    prompts: &Prompts,
    repetitions: u64,
) -> (Option<MicroDollars>, Option<&'static str>) {
    let Some(model) = &agent.model else { return (Some(MicroDollars::ZERO), None) };
    let prices: Option<Vec<&Price>> = model.prices().into_iter().collect();
    let Some(prices) = prices else { return (None, Some("the model has no price")) };
    let dearest = |input: u64, output: u64| {
        prices.iter().map(|price| price.worst_case(input, output, 0)).max().unwrap_or_default()
    };
    let parameters = &agent.parameters;
    match agent.harness {
        Harness::Direct => {
            let one = |(instruction, output): &(String, String)| {
                let system = direct::system_prompt(agent.system_prompt.as_deref(), output);
                let bound = input_bound(&request(&system, instruction, &parameters.sampling));
                dearest(bound.tokens, output_bound(&parameters.sampling)).0
            };
            let once = prompts.iter().map(one).fold(0_u64, u64::saturating_add);
            (Some(MicroDollars(once.saturating_mul(repetitions))), None)
        }
        Harness::ToolLoop => match parameters.max_total_tokens {
            Some(tokens) => {
                // The limit is checked before each call, so the last call may exceed it.
                let last = output_bound(&parameters.sampling);
                let trial = dearest(tokens, 0).max(dearest(0, tokens)).plus(dearest(tokens, last));
                let trials = prompts.len() as u64 * repetitions;
                (Some(MicroDollars(trial.0.saturating_mul(trials))), None)
            }
            None => (None, Some("no bound without max_total_tokens, budget.trial_usd or --max-cost")),
        },
        _ => (None, Some("no bound without budget.trial_usd or --max-cost")),
    }
}

fn request(system: &str, instruction: &str, sampling: &Sampling) -> Request {
    Request {
        messages: vec![Message::text(Role::System, system), Message::text(Role::User, instruction)],
        sampling: sampling.clone(),
        ..Request::default()
    }
}
