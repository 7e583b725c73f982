//! What a cycle needs next, and what follows from what it has: decisions alone, without tasks, agents or models. The
//! engine acts on them; simulations of thousands of runs do so too.

use aec_base::digest::Digest;

use crate::config::Acceptance;
use crate::event::{Decided, Event};
use crate::gate::{self, Bar, Rejection, Standing, Verdict};
use crate::run::Settings;
use crate::state::{Open, State, Status, Test};

/// What a cycle needs next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Todo {
    /// The parent is to be measured.
    Learn,
    /// A candidate is to be made.
    Propose,
    /// The candidate is to be measured on the tasks of its parent.
    Screen,
    /// Whether it is worth a test is to be decided.
    EnterTest,
    /// So many tasks that the test has not had are to be worked on by both sides of the test.
    Look(usize),
    /// The test is over.
    Decide(Option<Rejection>, Standing),
}

/// What a cycle needs next.
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

/// A test begins, unless the candidate was worse than its parent where it was made, or no test is left. What the test
/// needs depends on what the run knows at this moment.
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
    // One that won a test against somebody who is not the best any more was looked at before.
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

/// What standings are measured by when there is no test any more.
fn no_bar(acceptance: &Acceptance) -> Bar {
    Bar {
        test: 0,
        needed: f64::INFINITY,
        threshold: acceptance.improvement_threshold,
        max_tasks: acceptance.max_tasks,
    }
}
