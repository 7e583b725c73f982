//! Invented events of runs, for tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aec_base::name::Name;
use aec_base::secret::Redactor;
use aec_judge::settle::outcome::{Boundary, Fault};
use aec_judge::verdict::Outcome;
use aec_model::money::MicroDollars;
use aec_run::event::{RunEnded, RunEvent, RunStarted, TrialEnded, TrialRef};
use aec_run::tally::AgentTally;

use super::state::State;

/// A state, with a clock that moves only when a test moves it.
pub(crate) struct Play {
    pub(crate) state: State,
    pub(crate) now: Instant,
    began: Instant,
}

impl Play {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let redactor = Redactor::default().with([("MY_KEY", "secret-value")]);
        Self { state: State::new(redactor, now), now, began: now }
    }

    pub(crate) fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    pub(crate) fn apply(&mut self, event: &RunEvent) {
        self.state.apply(event, self.now);
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.now.duration_since(self.began).as_secs_f64()
    }

    pub(crate) fn trial(&mut self, number: usize, outcome: Outcome, fault: Option<&str>) {
        let trial = trial(number, 1);
        self.apply(&RunEvent::TrialStarted(Arc::clone(&trial)));
        self.wait(500);
        self.apply(&ended(&trial, outcome, fault));
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub(crate) fn started(to_run: usize) -> RunEvent {
    RunEvent::Started(RunStarted {
        experiment_id: name("fire-egress"),
        session: "s-1".to_owned(),
        planned: to_run + 20,
        done_before: 20,
        interrupted: 0,
        to_run,
        agents: vec![name("oracle"), name("sim")],
        concurrency: 4,
        max_cost: Some(MicroDollars(5_000_000)),
        forecasts: Vec::new(),
    })
}

/// Trials alternate between the two agents.
pub(crate) fn trial(number: usize, attempt: u32) -> Arc<TrialRef> {
    Arc::new(TrialRef {
        trial_id: name(&format!("t{number:04}")),
        task_id: format!("generated/fire/egress-{:02}", number / 2),
        task: format!("fire/egress-{:02}", number / 2),
        agent: name(if number.is_multiple_of(2) { "oracle" } else { "sim" }),
        repetition: 1,
        attempt,
    })
}

/// Half of the trials have a reward of 1, the others of 0.5. Each took two seconds.
pub(crate) fn ended(trial: &Arc<TrialRef>, outcome: Outcome, fault: Option<&str>) -> RunEvent {
    RunEvent::TrialEnded(Box::new(trial_ended(trial, outcome, fault)))
}

pub(crate) fn trial_ended(trial: &Arc<TrialRef>, outcome: Outcome, fault: Option<&str>) -> TrialEnded {
    let reward = if trial.agent.as_str() == "oracle" { 1.0 } else { 0.5 };
    TrialEnded {
        trial: Arc::clone(trial),
        outcome,
        reward: (outcome == Outcome::Scored).then_some(reward),
        fault: fault.map(|message| Fault {
            boundary: Boundary::Sandbox,
            kind: None,
            message: message.to_owned(),
            retryable: false,
        }),
        cost: Some(MicroDollars(4_200)),
        tokens: 1_500,
        duration: Duration::from_secs(2),
        retried: false,
    }
}

pub(crate) fn run_ended() -> RunEnded {
    let tally = |agent: Option<&str>, scored: usize, reward: f64| {
        let mut tally = AgentTally { agent: agent.map(name), planned: scored + 1, ..AgentTally::default() };
        for _ in 0..scored {
            tally.add(Outcome::Scored, Some(reward));
        }
        tally.add(Outcome::AgentFault, None);
        tally
    };
    RunEnded {
        experiment_id: name("fire-egress"),
        agents: vec![tally(Some("oracle"), 24, 1.0), tally(Some("sim"), 24, 0.5)],
        all: tally(None, 49, 0.75),
        recorded: 50,
        spent: Some(MicroDollars(421_337)),
        unpriced: 0,
        tokens: 1_234_567,
        calls: 80,
        unsettled_calls: 0,
        stopped: None,
        head: None,
        duration: Duration::from_secs(185),
    }
}
