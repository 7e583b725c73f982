//! Progress as plain lines, for logs and pipes: the beginning, trials that are not simply scored, a summary now and
//! then, why it stops, and the end.

use std::time::{Duration, Instant};

use aec_run::event::RunEvent;

use super::phrases;
use super::state::State;

/// Shortest time between summaries, unless a tenth of the trials ended in between.
const APART: Duration = Duration::from_secs(10);

/// Shortest time between summaries if no trial ended in between.
const IDLE: Duration = Duration::from_mins(1);

/// Decides which lines to print.
#[derive(Debug)]
pub(crate) struct Lines {
    last: Instant,
    done: usize,
    tenths: usize,
}

impl Lines {
    pub(crate) fn new(now: Instant) -> Self {
        Self { last: now, done: 0, tenths: 0 }
    }

    /// The lines for an event, after the state has been updated.
    pub(crate) fn on(&mut self, event: &RunEvent, state: &State, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        match event {
            RunEvent::Started(started) => {
                lines.push(phrases::start(started));
                self.last = now;
            }
            RunEvent::TrialEnded(_) => {
                lines.extend(state.latest().and_then(|ended| phrases::fault(state, ended)));
                lines.extend(self.summary(state, now));
            }
            RunEvent::Tick(_) => lines.extend(self.summary(state, now)),
            RunEvent::Stopping(reason) => lines.push(phrases::stopping(state, reason)),
            RunEvent::Ended(_) => lines.extend(phrases::end(state)),
            RunEvent::TrialStarted(_) | RunEvent::Stage(..) | RunEvent::Trace(..) => {}
        }
        lines
    }

    fn summary(&mut self, state: &State, now: Instant) -> Option<String> {
        let (done, to_run) = (state.done(), state.to_run());
        let tenths = (done * 10).checked_div(to_run).unwrap_or(0);
        let quiet = now.saturating_duration_since(self.last);
        let apart = if done == self.done { IDLE } else { APART };
        if tenths == self.tenths && quiet < apart {
            return None;
        }
        *self = Self { last: now, done, tenths };
        let stuck = phrases::stuck(state, now).map(|stuck| format!("; {stuck}")).unwrap_or_default();
        Some(format!("{}{stuck}", phrases::so_far(state, now)))
    }
}

#[cfg(test)]
mod tests {
    use aec_judge::verdict::Outcome;
    use aec_run::event::{StopReason, Tick};

    use super::super::samples::{self, Play};
    use super::*;

    /// The lines of a run with this many trials, one every `apart` milliseconds.
    fn play(trials: usize, apart: u64) -> String {
        let mut play = Play::new();
        let mut lines = Lines::new(play.now);
        let mut text = String::new();
        let mut say = |play: &mut Play, event: &RunEvent| {
            play.apply(event);
            for line in lines.on(event, &play.state, play.now) {
                text.push_str(&format!("{:>7.1} {line}\n", play.seconds()));
            }
        };
        say(&mut play, &samples::started(trials));
        for number in 0..trials {
            let trial = samples::trial(number, 1);
            say(&mut play, &RunEvent::TrialStarted(std::sync::Arc::clone(&trial)));
            play.wait(apart);
            let (outcome, fault) = match number % 17 {
                5 => (Outcome::InfraFault, Some("the room is \u{1b}[31mgone\nwith secret-value")),
                11 => (Outcome::AgentFault, Some("no output")),
                _ => (Outcome::Scored, None),
            };
            say(&mut play, &samples::ended(&trial, outcome, fault));
        }
        say(&mut play, &RunEvent::Stopping(StopReason::Time));
        say(&mut play, &RunEvent::Ended(Box::new(samples::run_ended())));
        text
    }

    #[test]
    fn a_fast_run_speaks_at_every_tenth() {
        insta::assert_snapshot!(play(50, 100));
    }

    #[test]
    fn a_slow_run_speaks_every_ten_seconds() {
        insta::assert_snapshot!(play(50, 4_000));
    }

    #[test]
    fn a_run_that_hangs_says_so_now_and_then() {
        let mut play = Play::new();
        let mut lines = Lines::new(play.now);
        let started = samples::started(10);
        play.apply(&started);
        let mut text = lines.on(&started, &play.state, play.now);
        play.apply(&RunEvent::TrialStarted(samples::trial(1, 1)));
        for _ in 0..800 {
            play.wait(500);
            let tick = RunEvent::Tick(Tick::default());
            play.apply(&tick);
            text.extend(lines.on(&tick, &play.state, play.now));
        }
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn reasons_to_stop() {
        let mut play = Play::new();
        play.apply(&samples::started(10));
        play.apply(&RunEvent::TrialStarted(samples::trial(1, 1)));
        let mut lines = Lines::new(play.now);
        let reasons = [
            StopReason::Asked,
            StopReason::Insisted,
            StopReason::Budget("$5.00 are spent".to_owned()),
            StopReason::Time,
            StopReason::Faults("10 in a row".to_owned()),
            StopReason::Storage("the disk is full".to_owned()),
        ];
        let said: Vec<String> = reasons
            .into_iter()
            .flat_map(|reason| lines.on(&RunEvent::Stopping(reason), &play.state, play.now))
            .collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
