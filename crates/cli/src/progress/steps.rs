//! Shows a command that does one thing after another, such as audits of many tasks. A command that is done within a few
//! seconds shows nothing in a log.

use std::time::{Duration, Instant};

use aec_run::control::{Control, Wish};
use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;
use crate::progress::figures::{grouped, many, span};
use crate::progress::painter::{Display, Mode, Painter, Show, Watcher};
use crate::progress::text::{clean_line, cut};

/// Time after which a line in a log, or the bar of a terminal, is worth reading.
const QUIET: Duration = Duration::from_secs(2);

/// Time between two lines in a log.
const PAUSE: Duration = Duration::from_secs(10);

/// What a command does, in its own words: `audited`, `task`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) done: &'static str,
    pub(crate) noun: &'static str,
}

pub(crate) enum StepEvent {
    /// A step begins; those before it are done, unless steps are only counted.
    At(String),
    /// So much of the present step is done, in words.
    Part(String),
    /// One more is done.
    Done,
}

pub(crate) struct StepsShow {
    words: Words,
    all: usize,
    done: usize,
    /// What is under way, safe to show.
    at: Option<String>,
    part: Option<String>,
    begun: Instant,
    told: Option<Instant>,
    redactor: aec_base::secret::Redactor,
}

impl StepsShow {
    fn line(&self, now: Instant) -> String {
        let mut text = format!(
            "{} of {} {}, {}",
            grouped(self.done as u64),
            many(self.all, self.words.noun),
            self.words.done,
            span(now.saturating_duration_since(self.begun))
        );
        if let Some(at) = &self.at {
            text.push_str(&format!("; now {at}"));
        }
        if let Some(part) = &self.part {
            text.push_str(&format!(", {part}"));
        }
        text
    }
}

impl Show for StepsShow {
    type Event<'a> = StepEvent;

    fn record(_: &StepEvent) -> Option<Value> {
        None
    }

    fn on(&mut self, event: StepEvent, mode: Mode, now: Instant) -> Vec<String> {
        match event {
            StepEvent::At(name) => {
                self.done += usize::from(self.at.is_some());
                self.at = Some(clean_line(&name, &self.redactor));
                self.part = None;
            }
            StepEvent::Part(words) => self.part = Some(words),
            StepEvent::Done => self.done += 1,
        }
        let patience = if self.told.is_some() { PAUSE } else { QUIET };
        let is_due = now.saturating_duration_since(self.told.unwrap_or(self.begun)) >= patience;
        if mode != Mode::Lines || !is_due {
            return Vec::new();
        }
        self.told = Some(now);
        vec![self.line(now)]
    }

    fn picture(&self, _: Wish, now: Instant, columns: usize) -> Vec<String> {
        if now.saturating_duration_since(self.begun) < QUIET {
            return Vec::new();
        }
        vec![cut(&self.line(now), columns)]
    }
}

/// The display of a command that does one thing after another. It ends when it is dropped.
pub(crate) struct Steps(Painter<StepsShow>);

impl Steps {
    pub(crate) fn begin(context: &Context, words: Words, all: usize) -> Result<Self, Failure> {
        let show = StepsShow {
            words,
            all,
            done: 0,
            at: None,
            part: None,
            begun: Instant::now(),
            told: None,
            redactor: context.redactor(),
        };
        let display = Display { mode: Mode::of(context, false, false), events: None };
        Ok(Self(Painter::new(display, show, context.color, Control::default())?))
    }

    /// Begins a step; the one before it is done.
    pub(crate) fn at(&self, name: &str) {
        self.0.on(StepEvent::At(name.to_owned()));
    }

    /// How far the present step is.
    pub(crate) fn part(&self, words: String) {
        self.0.on(StepEvent::Part(words));
    }

    /// Counts steps from any thread.
    pub(crate) fn watcher(&self) -> Watcher<StepsShow> {
        self.0.watcher()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_now_and_then() {
        let begun = Instant::now();
        let words = Words { done: "audited", noun: "task" };
        let mut show = StepsShow {
            words,
            all: 3,
            done: 0,
            at: None,
            part: None,
            begun,
            told: None,
            redactor: aec_base::secret::Redactor::default(),
        };
        let mut at = |seconds: u64, event: StepEvent| {
            show.on(event, Mode::Lines, begun + Duration::from_secs(seconds)).pop()
        };
        let name = |name: &str| StepEvent::At(name.to_owned());
        assert_eq!(at(0, name("civil/a")), None);
        assert_eq!(at(1, name("civil/b")), None);
        let line = at(3, StepEvent::Part("4 of 20 cheaters".to_owned())).unwrap();
        assert_eq!(line, "1 of 3 tasks audited, 3.0 s; now civil/b, 4 of 20 cheaters");
        assert_eq!(at(9, name("civil/\u{1b}[31mc")), None);
        let line = at(14, StepEvent::Part("1 of 20 cheaters".to_owned())).unwrap();
        assert!(
            line.starts_with("2 of 3 tasks audited, 14 s; now civil/") && !line.contains('\u{1b}'),
            "{line}"
        );
    }
}
