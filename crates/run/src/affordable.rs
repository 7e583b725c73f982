//! Whether the limits in money allow an agent to make its first call. A limit that no call fits into would end every
//! trial without a call, and the agent would get the blame: such a plan is refused.

use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_model::client::Model;
use aec_model::message::{Request, Sampling};
use aec_model::meter::{Account, AccountKind, Budget, Refusal};
use aec_model::money::MicroDollars;
use aec_task::task::{Task, primary_output};

use crate::experiment::{FAMILY, Harness};
use crate::harness::{PreparedAgent, direct, lambda_rlm, rlm, tool_loop};
use crate::plan::Conditions;
use crate::task::PreparedTask;

/// Number of tasks that one thread takes at a time.
const CHUNK: usize = 4;

/// The first calls of an agent at a task, as far as they are known before.
pub(crate) struct Opening {
    /// Each model that may be called, with the smallest request that it gets.
    pub(crate) calls: Vec<(Model, Request)>,
    /// The harness's own limit in money, and where it is set.
    pub(crate) own: Option<(MicroDollars, &'static str)>,
}

/// Agents whose first call no limit allows. `run` is the account of the run, `trial` the budget of one trial. What was spent
/// before does not matter here: a budget that is used up stops a run by itself.
pub fn unaffordable(
    tasks: &[Task],
    conditions: &Conditions,
    agents: &[Arc<PreparedAgent>],
    run: &Account,
    trial: Budget,
) -> Vec<Problem> {
    let account = run.open(AccountKind::Trial, trial);
    let mut problems = Vec::new();
    for agent in agents {
        let Some(model) = &agent.model else { continue };
        let found = parallel::map(tasks, CHUNK, |task| {
            // What cannot be read is reported elsewhere.
            let opening = opening(agent, model, task, conditions, &account)?;
            refused(&opening, &account).map(|refusal| (task.id.as_str().to_owned(), refusal))
        });
        // The same limit mostly fails at every task; one problem for each agent says enough.
        let all = found.len();
        let found: Vec<_> = found.into_iter().flatten().collect();
        if let Some((task, (refusal, place))) = found.first() {
            problems.push(problem(agent, task, refusal, *place, (found.len(), all)));
        }
    }
    problems
}

/// Why this account can pay no call of the model at all, for callers that do not know the first request. Without `sampling`
/// the shortest answer counts.
pub fn unpayable(model: &Model, sampling: Option<&Sampling>, account: &Account) -> Option<Problem> {
    let request = sampling
        .map_or_else(smallest, |sampling| Request { sampling: sampling.clone(), ..Request::default() });
    let refusal = refusal(model, &request, account)?;
    let what = format!("`{}` cannot be called once: {}", model.name(), reason(&refusal));
    Some(Problem::error(what).id(FAMILY.number(55)).fix(fix(&refusal)))
}

/// Why the account cannot pay this call. A model without a price is named as price lists name it.
fn refusal(model: &Model, request: &Request, account: &Account) -> Option<Refusal> {
    let mut refusal = account.can_pay(&model.quote(request)).err()?;
    if let (Refusal::Unpriced { missing, .. }, Some(named)) = (&mut refusal, model.missing_price()) {
        *missing = named;
    }
    Some(refusal)
}

fn refused(opening: &Opening, account: &Account) -> Option<(Refusal, Option<&'static str>)> {
    let own = opening
        .own
        .map(|(money, place)| (account.open(AccountKind::Harness, Budget::of_money(money)), place));
    let account = own.as_ref().map_or(account, |(own, _)| own);
    let refusal = opening.calls.iter().find_map(|(model, request)| refusal(model, request, account))?;
    Some((refusal, own.map(|(_, place)| place)))
}

fn opening(
    agent: &PreparedAgent,
    model: &Model,
    task: &Task,
    conditions: &Conditions,
    account: &Account,
) -> Option<Opening> {
    let without_own = |request: Request| Opening { calls: vec![(model.clone(), request)], own: None };
    match agent.harness {
        Harness::Rlm | Harness::LambdaRlm => {
            // The digest is only used in records, and there are none here.
            let task = PreparedTask::read(task.clone(), Digest::of(b""), conditions).ok()?;
            if agent.harness == Harness::Rlm {
                rlm::opening(&task, agent, model).ok()
            } else {
                lambda_rlm::opening(&task, agent, model).ok()
            }
        }
        _ if !account.has_limit() => None,
        Harness::Direct | Harness::ToolLoop => {
            let instruction = match &conditions.instruction {
                Some(instruction) => instruction.clone(),
                None => task.instruction().ok()?,
            };
            let output = primary_output(&instruction);
            Some(without_own(if agent.harness == Harness::Direct {
                direct::request(agent, &instruction, &output)
            } else {
                let tools: Vec<_> = match &conditions.tools {
                    Some(tools) => tools.iter().map(crate::plan::PlannedTool::to_tool).collect(),
                    None => task.tools(),
                };
                tool_loop::request(agent, &tools, &instruction, &output)
            }))
        }
        // Programs make their own requests: of these, only the price is known.
        _ => Some(without_own(smallest())),
    }
}

/// A request that every real one exceeds.
pub(crate) fn smallest() -> Request {
    Request { sampling: Sampling { max_tokens: Some(1), ..Sampling::default() }, ..Request::default() }
}

fn problem(
    agent: &PreparedAgent,
    task: &str,
    refusal: &Refusal,
    place: Option<&str>,
    (found, all): (usize, usize),
) -> Problem {
    let what = format!("agent `{}` cannot make its first call: {}", agent.name, reason(refusal));
    let mut why = format!("no trial of {found} of {all} tasks would have a call, the first is {task}");
    if let Some(place) = place {
        why.push_str(&format!("; the limit is {place}"));
    }
    Problem::error(what).id(FAMILY.number(55)).about(agent.name.as_str()).why(why).fix(fix(refusal))
}

/// The reason without its ways out, which are the fix.
fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unpriced { account, model, .. } => {
            format!("the model {model} has no price, so the budget of {account} in money cannot hold")
        }
        Refusal::Short { .. } | Refusal::Book(_) => refusal.to_string(),
    }
}

fn fix(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unpriced { missing, .. } => missing.ways_out(),
        Refusal::Short { .. } | Refusal::Book(_) => {
            "raise the limit, or lower the limit of output tokens".to_owned()
        }
    }
}
