//! The next step of a cycle: decisions only, without tasks, agents or models. The engine acts on them, and so do
//! simulations of thousands of runs.

use aec_base::digest::Digest;

use crate::config::Acceptance;
use crate::event::{Decided, Event};
use crate::gate::{self, Bar, Rejection, Standing, Verdict};
use crate::run::Settings;
use crate::state::{Open, State, Status, Test};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Todo {
    /// Measure the parent.
    Learn,
    /// Make a candidate.
    Propose,
    /// Measure the candidate on the tasks of its parent.
    Screen,
    /// Decide whether the candidate is worth a test.
    EnterTest,
    /// Run both sides of the test on this many tasks that are new to it.
    Look(usize),
    /// The test is over.
    Decide(Option<Rejection>, Standing),
}

pub fn todo(open: &Open, settings: &Settings) -> Todo {
    match (&open.learned, &open.proposed, &open.screened, &open.test) {
        (None, ..) => Todo::Learn,
        (_, None, ..) => Todo::Propose,
        (_, _, None, _) => Todo::Screen,
        (_, _, _, None) => Todo::EnterTest,
        (_, _, _, Some(test)) => after_look(test, settings),
    }
}

fn after_look(test: &Test, settings: &Settings) -> Todo {
    let standing = || gate::standing(&test.bar, &test.pairs);
    match gate::verdict(&test.bar, &test.pairs) {
        Verdict::Accepted => Todo::Decide(None, standing()),
        Verdict::Rejected(rejection) => Todo::Decide(Some(rejection), standing()),
        Verdict::Open => {
            let left = (test.bar.max_tasks as usize).saturating_sub(test.pairs.len());
            Todo::Look((settings.batch_size as usize).min(left))
        }
    }
}

/// Starts a test, unless the candidate was worse than its parent on the tasks that it was made from, or no test is
/// left. The requirements of the test depend on the state at this moment.
pub fn enter_test(state: &State, acceptance: &Acceptance, open: &Open, candidate: Digest) -> Event {
    let started = &open.started;
    let pairs: Vec<_> =
        open.screened.iter().flatten().copied().zip(open.learned.iter().flatten().copied()).collect();
    let accepted = u32::try_from(state.accepted.len()).unwrap_or(u32::MAX);
    let reject = |rejection, standing| {
        Event::Decided(Decided {
            agent: started.agent.clone(),
            cycle: started.cycle,
            candidate,
            against: started.parent,
            rejection: Some(rejection),
            standing,
        })
    };
    let Some(bar) = gate::bar(acceptance, state.tests, accepted, state.started.horizon) else {
        return reject(Rejection::NoTestLeft, gate::standing(&no_bar(acceptance), &pairs));
    };
    let screen = gate::standing(&bar, &pairs);
    // A candidate that won a test against a former best one was already compared with its parent.
    let is_new = state.candidates.get(&candidate).is_some_and(|known| known.status == Status::Open);
    if is_new && screen.pairs > 0 && screen.difference < 0.0 {
        return reject(Rejection::WorseThanParent, screen);
    }
    Event::TestStarted {
        agent: started.agent.clone(),
        cycle: started.cycle,
        candidate,
        against: state.champion,
        bar,
    }
}

/// The requirements for computing a standing when no test is left.
fn no_bar(acceptance: &Acceptance) -> Bar {
    Bar {
        test: 0,
        needed: f64::INFINITY,
        threshold: acceptance.improvement_threshold,
        max_tasks: acceptance.max_tasks,
    }
}
