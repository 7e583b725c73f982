//! `lambda_rlm`: a report from documents by plan. Sources are cut where their structure allows, read in parts, merged in a
//! balanced tree, checked and written section by section; every statement can be traced to bytes of a source.
//!
//! No model decides what happens next, so what a run costs is known before it begins.

mod given;
mod prompts;
mod section;

use std::sync::OnceLock;

use aec_rlm::plan::{CallShape, Plan, Request};
use aec_rlm::settings::{Guardrails, Overrides};
use aec_rlm::template::ReportState;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use self::given::Given;
use self::section::{Shared, Worked};
use super::advisor::Advisor;
use super::guard::{Guard, Plane};
use super::{End, Rollout, TrialContext};
use crate::workspace::blocking;

/// Runs the harness.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let (given, plan) = match prepare(context).await {
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
    let mut rollout = finish(context, &given, &plan, &guard, &report, &worked, end);
    rollout.resolved_model = resolved.into_inner();
    rollout
}

async fn prepare(context: &mut TrialContext) -> Result<(Given, Plan), End> {
    let task = std::sync::Arc::clone(&context.task);
    let mut given = blocking(move || Given::read(&task)).await?.map_err(End::Task)?;
    let parameters = &context.agent.parameters;
    let without_use = given.settings.tighten(&Overrides {
        max_turns: parameters.given_turns,
        token_budget: parameters.token_budget,
        max_cost_usd: parameters.max_cost_usd,
        ..Overrides::default()
    });
    given.notes.extend(without_use.iter().map(|name| format!("`{name}` has no meaning for this harness")));
    let instruction = context.task.instruction.clone();
    context.begin(None, &instruction);
    for note in &given.notes {
        context.trajectory.note(note.clone(), Map::new());
    }
    let planner = given.settings.planner.clone();
    let call = CallShape::for_window(planner.context_window_chars);
    let requests: Vec<Request<'_>> = given
        .template
        .order()
        .flat_map(|section| {
            given.sources_of(section).0.into_iter().map(|(source, _)| Request {
                section: &section.id,
                source: &source.label,
                text: &source.text,
                form: source.form,
            })
        })
        .collect();
    let plan = Plan::make(&requests, &planner, &call)
        .map_err(|error| End::Task(format!("there is no plan: {error}")))?;
    context
        .trajectory
        .note(format!("the plan:\n{plan}"), Map::from_iter([("plan".to_owned(), json!(plan.totals))]));
    Ok((given, plan))
}

/// Works on all sections, those at once that wait for no other.
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
    plan: &Plan,
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
        .with("plan", json!(plan.totals))
        .with("stop_reason", stop_reason)
        .with("planes", guard.usage())
        .with("settings", given.settings.effective());
    if !submission.sections.is_empty() {
        rollout.submitted = Some(if context.task.output_path.ends_with(".json") {
            facts_json(worked)
        } else {
            report.assemble()
        });
    }
    rollout
}

/// The facts of all sections as one object, for outputs that are data; of a report with one section its facts alone.
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
