//! Shared parts of the tests of decisions: settings, beginnings and events of runs that are never carried out.

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::settings::Backend;
use aec_evolve::config::{Acceptance, Strategy, Voice};
use aec_evolve::edit::Scope;
use aec_evolve::event::{CycleStarted, Event, Kind, LOG_VERSION, Proposed, RunStarted, Seen, TaskRef, Way};
use aec_evolve::run::Settings;
use aec_evolve::state::State;
use aec_judge::verdict::Outcome;
use aec_run::experiment::{Agent, Harness};
use aec_run::plan::SandboxChoice;
use indexmap::IndexMap;

pub(crate) const AGENT: &str = "evolve";

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub(crate) fn started(kind: Kind, agents: &[&str], horizon: u32) -> RunStarted {
    RunStarted {
        schema_version: LOG_VERSION,
        run: name("w-1"),
        kind,
        experiment: name("evolve-w-1"),
        roots: None,
        workspace: "w".to_owned(),
        workspace_name: name("w"),
        baseline: Digest::of(b"baseline"),
        prompt_letters: 100,
        agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
        horizon,
        settings: serde_json::Value::Null,
        division: None,
        tool_version: "0".to_owned(),
    }
}

pub(crate) fn seen(number: usize, reward: Option<f64>) -> Seen {
    Seen {
        trial: name(&format!("t-{number}")),
        outcome: if reward.is_some() { Outcome::Scored } else { Outcome::InfraFault },
        reward,
        wrong: Vec::new(),
        signs: Vec::new(),
        turns: 0,
        calls: 0,
        checks: 0,
        tokens: 10,
        cost_usd: Some(0.01),
    }
}

pub(crate) fn cycle_started(agent: &str, cycle: u32, parent: Digest, tasks: Vec<TaskRef>) -> Event {
    Event::CycleStarted(CycleStarted {
        agent: agent.to_owned(),
        cycle,
        way: Way::Mutation,
        parent,
        partner: None,
        scope: Scope::Minimal,
        tasks,
    })
}

pub(crate) fn proposed(agent: &str, cycle: u32, candidate: Digest, parent: Digest) -> Proposed {
    Proposed {
        agent: agent.to_owned(),
        cycle,
        candidate,
        parents: vec![parent],
        edits: Vec::new(),
        dropped: Vec::new(),
        reasoning: String::new(),
        note: None,
        prompt_letters: 100,
    }
}

/// Tasks that are new to the run.
pub(crate) fn tasks(state: &State, count: usize) -> Vec<TaskRef> {
    let first = state.used.revisions.len();
    (first..first + count)
        .map(|number| TaskRef {
            task_id: format!("civil/t{number}"),
            task_path: String::new(),
            revision: Digest::of(&number.to_le_bytes()),
            repetition: 1,
        })
        .collect()
}

pub(crate) fn settings(strategy: Strategy) -> Settings {
    Settings {
        solver: Agent {
            name: Name::parse("solver").unwrap(),
            harness: Harness::Sim,
            model: None,
            client: None,
            parameters: IndexMap::new(),
            system_prompt_file: None,
        },
        generate: None,
        tasks: None,
        backend: Backend::Local,
        sandbox: SandboxChoice::Namespaces,
        timeout_override: None,
        memory_mb: None,
        answer_order: aec_judge::settle::order::AnswerOrder::PRESENT,
        batch_size: 5,
        max_cycles: 10,
        stagnation_window: Some(5),
        pivot_after: None,
        strategy,
        acceptance: Acceptance { error_rate: 0.05, max_tasks: 100, improvement_threshold: 0.01 },
        holdout: None,
        max_cost_usd: None,
        eval_budget_usd: None,
        max_tokens: None,
        wind_down_threshold: 1.0,
        final_threshold: 1.0,
        max_restarts: 0,
        concurrency: 1,
        evolvers: vec![Voice { model: "m".to_owned(), temperature: 0.7, max_tokens: 100 }],
        nudges: vec![None],
        classifier: None,
    }
}
