//! `lambda_rlm`: writes a report from documents by plan. Sources are cut, read in parts, merged in a balanced tree,
//! checked and written section by section; every statement can be traced to bytes of a source.
//!
//! No model decides what happens next, so the cost of a run is known before it begins.

mod forecast;
mod given;
mod prompts;
mod section;

use std::sync::{Arc, OnceLock};

use aec_judge::settle::order::Submitted;
use aec_model::client::Model;
use aec_model::message::{Message, Request, Role, Sampling};
use aec_model::money::MicroDollars;
use aec_rlm::report::ReportState;
use aec_task::long_documents::settings::Guardrails;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

pub use self::forecast::Forecast;
use self::forecast::PlannedWork;
use self::given::Given;
use self::section::{Shared, Worked};
use super::advisor::Advisor;
use super::guard::{Guard, Plane};
use super::{End, PreparedAgent, Rollout, TrialContext};
use crate::affordable::{self, Opening};
use crate::parameters::Parameters;
use crate::task::PreparedTask;
use crate::workspace::blocking;

pub async fn run(context: &mut TrialContext) -> Rollout {
    let PlannedWork { given, plan, forecast } = match prepare(context).await {
        Ok(prepared) => prepared,
        Err(end) => return Rollout::new(end),
    };
    let Some(model) = context.agent.model.clone() else {
        return Rollout::new(End::Task("the agent has no model".to_owned()));
    };
    let settings = &given.settings;
    let rules = Guardrails {
        token_budget: settings.guardrails.token_budget,
        max_iterations: settings.run.max_calls.unwrap_or(u32::MAX),
        max_budget_usd: settings.run.max_cost_usd,
        max_subcalls: settings.run.max_calls.map(u64::from),
        billable_input_budget: None,
        ..Guardrails::default()
    };
    let advisor = match Advisor::open(settings.advisor.as_ref(), &model) {
        Ok(advisor) => advisor,
        Err(end) => return Rollout::new(end),
    };
    let guard = Guard::new(rules, &context.scope.account);
    context.scope.account = guard.account(Plane::Main).clone();
    let permits = Semaphore::new(settings.execution.max_parallel_workers.max(1) as usize);
    let resolved = OnceLock::new();
    let shared = Shared {
        context,
        given: &given,
        plan: &plan,
        guard: &guard,
        model: &model,
        permits: &permits,
        advisor: advisor.as_ref(),
        resolved: &resolved,
    };
    let mut report = ReportState::new(given.template.clone());
    let mut worked = Vec::new();
    let end = sections(&shared, &mut report, &mut worked).await.err().unwrap_or(End::Done);
    let mut rollout = finish(context, &given, &guard, &report, &worked, end)
        .with("plan", json!(plan.totals))
        .with("forecast", json!(forecast));
    rollout.resolved_model = resolved.into_inner();
    rollout
}

async fn prepare(context: &mut TrialContext) -> Result<PlannedWork, End> {
    let (task, agent) = (Arc::clone(&context.task), Arc::clone(&context.agent));
    let making = move || {
        let own = agent.system_prompt.as_deref();
        PlannedWork::make(&task, &agent.parameters, own, agent.model.as_ref())
    };
    let prepared = blocking(making).await?.map_err(End::Task)?;
    let instruction = context.task.instruction.clone();
    context.begin(context.agent.system_prompt.clone(), &instruction);
    for note in &prepared.given.notes {
        context.trajectory.note(note.clone(), Map::new());
    }
    let PlannedWork { plan, forecast, .. } = &prepared;
    let metadata =
        Map::from_iter([("plan".to_owned(), json!(plan.totals)), ("forecast".to_owned(), json!(forecast))]);
    context.trajectory.note(format!("the plan:\n{plan}\n{forecast}"), metadata);
    Ok(prepared)
}

/// The forecast of a run on a task, or why it cannot be planned. Reads the task but calls no model.
pub(crate) fn forecast(
    task: &PreparedTask,
    parameters: &Parameters,
    system_prompt: Option<&str>,
    model: Option<&Model>,
) -> Result<Forecast, String> {
    PlannedWork::make(task, parameters, system_prompt, model).map(|prepared| prepared.forecast)
}

/// The smallest call of an agent: the instruction and a part of the answer, as long as its limit allows.
pub(crate) fn opening(task: &PreparedTask, agent: &PreparedAgent, model: &Model) -> Result<Opening, String> {
    let own = agent.system_prompt.as_deref();
    let PlannedWork { given, .. } = PlannedWork::make(task, &agent.parameters, own, Some(model))?;
    let settings = &given.settings;
    let wanted = &agent.parameters.sampling;
    let most = u32::try_from(settings.guardrails.token_budget).unwrap_or(u32::MAX);
    let max_tokens = Some(wanted.output_limit().min(most).max(1));
    let request = Request {
        messages: vec![Message::text(Role::User, task.instruction.clone())],
        sampling: Sampling { max_tokens, ..wanted.clone() },
        ..Request::default()
    };
    let mut calls = vec![(model.clone(), request)];
    if let Some(advisor) = settings.advisor.as_ref().filter(|advisor| advisor.enabled) {
        calls.push((model.other(&advisor.model).map_err(|error| error.what)?, affordable::smallest()));
    }
    let own = settings.run.max_cost_usd.and_then(MicroDollars::from_dollars);
    Ok(Opening { calls, own: own.map(|money| (money, "`max_cost_usd` of the agent")) })
}

/// Works on all sections; those that do not wait for others run concurrently.
async fn sections(
    shared: &Shared<'_>,
    report: &mut ReportState,
    worked: &mut Vec<Worked>,
) -> Result<(), End> {
    let mut tried: Vec<String> = Vec::new();
    loop {
        let open: Vec<_> =
            report.unlocked().into_iter().filter(|section| !tried.contains(&section.id)).cloned().collect();
        if open.is_empty() {
            return Ok(());
        }
        let before: Vec<Vec<(String, String)>> = open
            .iter()
            .map(|section| {
                let written = section.depends_on.iter().filter_map(|id| {
                    let title = report.template().section(id)?.title.clone();
                    Some((title, report.content(id)?.to_owned()))
                });
                written.collect()
            })
            .collect();
        let working = open.iter().zip(&before).map(|(section, before)| shared.work(section, before));
        let mut ended = None;
        for (section, done) in open.iter().zip(join_all(working).await) {
            tried.push(section.id.clone());
            match done {
                Ok(done) => {
                    if let Some(text) = &done.text {
                        report.fill(&section.id, text.clone()).ok();
                    }
                    worked.push(done);
                }
                Err(end) => ended = ended.or(Some(end)),
            }
        }
        if let Some(end) = ended {
            return Err(end);
        }
    }
}

fn finish(
    context: &TrialContext,
    given: &Given,
    guard: &Guard,
    report: &ReportState,
    worked: &[Worked],
    end: End,
) -> Rollout {
    let submission = report.submit();
    let stop_reason = match &end {
        End::Done if submission.complete => "done",
        End::Done => "incomplete",
        End::Limit(limit) => limit.name(),
        End::Model(_) => "provider_error",
        _ => "failed",
    };
    for section in worked {
        let metadata = Map::from_iter([("section".to_owned(), json!(section))]);
        context.trajectory.note(format!("the section `{}`", section.id), metadata);
    }
    let mut rollout = Rollout::new(end)
        .with("sections", report.status().completed.len())
        .with("gaps", json!(submission.gaps))
        .with("stop_reason", stop_reason)
        .with("planes", guard.usage())
        .with("settings", given.settings.effective());
    if !submission.sections.is_empty() {
        let answer =
            if context.task.output_path.ends_with(".json") { facts_json(worked) } else { report.assemble() };
        rollout.submitted = Some(Submitted::Content(answer.into_bytes()));
    }
    rollout
}

/// The facts of all sections as one object, for outputs that are data; for a report with one section only its facts.
fn facts_json(worked: &[Worked]) -> String {
    let of = |section: &Worked| -> Value {
        section.facts.iter().map(|fact| (fact.key.clone(), fact.value.clone())).collect::<Map<_, _>>().into()
    };
    let value = match worked {
        [one] => of(one),
        all => all.iter().map(|section| (section.id.clone(), of(section))).collect::<Map<_, _>>().into(),
    };
    serde_json::to_string_pretty(&value).unwrap_or_default()
}
