//! The state of a run, built from its events, with a clock that moves only when a test moves it.

use std::sync::Arc;

use aec_ledger::transcript::Event;

use super::super::samples::{self, Play};
use super::*;

fn note(text: &str) -> Arc<Event> {
    Arc::new(Event { content: Some(text.to_owned()), ..Event::default() })
}

#[test]
fn trials_are_counted_by_agent_and_by_outcome() {
    let mut play = Play::new();
    play.apply(&samples::started(10));
    for number in 0..4 {
        play.trial(number, Outcome::Scored, None);
    }
    play.trial(4, Outcome::AgentFault, Some("no output"));
    play.trial(5, Outcome::Unverified, None);
    let state = &play.state;
    assert_eq!((state.done(), state.to_run(), state.running().len()), (6, 10, 0));
    assert_eq!(state.all.mean_reward(), Some(0.6), "a fault of the agent is worth nothing");
    let means: Vec<Option<f64>> = state.agents.iter().map(AgentTally::mean_reward).collect();
    assert_eq!(means, [Some(2.0 / 3.0), Some(0.5)]);
    assert_eq!(state.unscored().collect::<Vec<_>>(), [(Outcome::AgentFault, 1), (Outcome::Unverified, 1)]);
    assert_eq!(state.rows(false).len(), 6);
    assert_eq!(state.rows(true).len(), 1);
    assert_eq!((state.spent(), state.tokens()), (MicroDollars(6 * 4_200), 6 * 1_500));
}

#[test]
fn an_attempt_that_is_followed_by_another_counts_once() {
    let mut play = Play::new();
    play.apply(&samples::started(1));
    let first = samples::trial(0, 1);
    play.apply(&RunEvent::TrialStarted(Arc::clone(&first)));
    let mut ended = samples::trial_ended(&first, Outcome::InfraFault, Some("gone"));
    ended.retried = true;
    play.apply(&RunEvent::TrialEnded(Box::new(ended)));
    assert_eq!((play.state.done(), play.state.retried), (0, 1));
    let second = samples::trial(0, 2);
    play.apply(&RunEvent::TrialStarted(Arc::clone(&second)));
    play.apply(&samples::ended(&second, Outcome::Scored, None));
    assert_eq!((play.state.done(), play.state.all.scored(), play.state.running().len()), (1, 1, 0));
}

#[test]
fn a_late_end_of_an_earlier_attempt_leaves_the_later_one_alone() {
    let mut play = Play::new();
    let first = samples::trial(0, 1);
    play.apply(&RunEvent::TrialStarted(Arc::clone(&first)));
    play.apply(&RunEvent::TrialStarted(samples::trial(0, 2)));
    play.apply(&samples::ended(&first, Outcome::InfraFault, None));
    assert_eq!(play.state.running().map(|running| running.trial.attempt).collect::<Vec<_>>(), [2]);
}

#[test]
fn what_has_no_price_is_counted() {
    let mut play = Play::new();
    let mut ended = samples::trial_ended(&samples::trial(0, 1), Outcome::Scored, None);
    ended.cost = None;
    play.apply(&RunEvent::TrialEnded(Box::new(ended)));
    assert_eq!((play.state.unpriced, play.state.spent()), (1, MicroDollars::ZERO));
    play.apply(&RunEvent::Tick(Tick { spent: MicroDollars(7), ..Tick::default() }));
    assert_eq!(play.state.spent(), MicroDollars(7));
}

#[test]
fn silence_is_measured_against_what_trials_take() {
    let mut play = Play::new();
    play.apply(&samples::started(10));
    play.apply(&RunEvent::TrialStarted(samples::trial(8, 1)));
    play.apply(&RunEvent::TrialStarted(samples::trial(9, 1)));
    play.wait(299_000);
    assert!(play.state.stuck(play.now).is_empty(), "nothing is known of how long trials take");
    play.trial(0, Outcome::Scored, None);
    assert_eq!(play.state.stuck(play.now).len(), 2, "trials take two seconds");
    play.apply(&RunEvent::Stage(samples::trial(8, 1), Stage::Running));
    let stuck: Vec<&str> =
        play.state.stuck(play.now).iter().map(|running| running.trial.trial_id.as_str()).collect();
    assert_eq!(stuck, ["t0009"]);
    let mut slow = samples::trial_ended(&samples::trial(1, 1), Outcome::Scored, None);
    slow.duration = Duration::from_secs(100);
    play.apply(&RunEvent::TrialEnded(Box::new(slow.clone())));
    slow.trial = samples::trial(2, 1);
    play.apply(&RunEvent::TrialEnded(Box::new(slow)));
    assert!(play.state.stuck(play.now).is_empty(), "trials take a hundred seconds");
}

#[test]
fn what_is_left_depends_on_whether_trials_are_still_started() {
    let mut play = Play::new();
    play.apply(&samples::started(100));
    assert_eq!(play.state.left(play.now), None);
    for number in 0..10 {
        play.trial(number, Outcome::Scored, None);
    }
    // Nine in five whole seconds, and 90 to go.
    assert_eq!(play.state.left(play.now), Some(Duration::from_secs(50)));
    play.apply(&RunEvent::TrialStarted(samples::trial(10, 1)));
    play.wait(500);
    play.apply(&RunEvent::Stopping(StopReason::Asked));
    assert_eq!(play.state.left(play.now), Some(Duration::from_millis(1_500)));
}

#[test]
fn a_hundred_thousand_trials_leave_a_bounded_state() {
    let mut play = Play::new();
    play.apply(&samples::started(100_000));
    for number in 0..100_000 {
        let fault = (number % 3 == 0).then_some("gone");
        let outcome = if fault.is_some() { Outcome::InfraFault } else { Outcome::Scored };
        let trial = samples::trial(number, 1);
        play.apply(&RunEvent::TrialStarted(Arc::clone(&trial)));
        play.apply(&RunEvent::Trace(Arc::clone(&trial), note("hello")));
        play.wait(2);
        play.apply(&samples::ended(&trial, outcome, fault));
    }
    let state = &play.state;
    assert_eq!(state.done(), 100_000);
    assert_eq!(
        (state.rows(false).len(), state.rows(true).len(), state.traces.len()),
        (RECENT, RECENT, ENDED_TRACES)
    );
    assert!(state.running.is_empty());
}

#[test]
fn traces_belong_to_their_attempt_and_stay_for_a_while() {
    let mut play = Play::new();
    let trial = samples::trial(0, 1);
    play.apply(&RunEvent::Trace(Arc::clone(&trial), note("solve it with secret-value")));
    let bodies = |play: &Play, attempt| -> Vec<String> {
        let key = Key { trial: samples::name("t0000"), attempt };
        let trace = play.state.trace(&key);
        trace.into_iter().flat_map(Trace::entries).map(|entry| entry.body.clone()).collect()
    };
    assert_eq!(bodies(&play, 1), ["solve it with [MY_KEY redacted]"]);
    play.apply(&samples::ended(&trial, Outcome::Scored, None));
    assert_eq!(bodies(&play, 1).len(), 1);
    assert!(bodies(&play, 2).is_empty());
}

#[test]
fn faults_are_safe_to_show() {
    let mut play = Play::new();
    play.trial(0, Outcome::InfraFault, Some("\u{1b}[31msecret-value\nand more"));
    let message = play.state.latest().and_then(|ended| ended.message.clone());
    assert_eq!(message.as_deref(), Some("sandbox: \\u{1b}[31m[MY_KEY redacted] and more"));
    play.trial(1, Outcome::InfraFault, Some(&"x".repeat(1 << 20)));
    assert!(
        play.state.latest().and_then(|ended| ended.message.as_ref()).is_some_and(|text| text.len() < 1_100)
    );
}

#[test]
fn events_out_of_order_and_without_a_beginning_do_no_harm() {
    let mut play = Play::new();
    play.apply(&RunEvent::Ended(Box::new(samples::run_ended())));
    play.trial(3, Outcome::Scored, None);
    play.apply(&RunEvent::Stage(samples::trial(4, 1), Stage::Judged));
    play.apply(&samples::started(0));
    assert_eq!((play.state.to_run(), play.state.done()), (1, 1));
    assert_eq!(play.state.left(play.now), None);
}
