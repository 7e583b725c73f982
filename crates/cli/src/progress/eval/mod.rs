//! Shows evaluations while they run.

mod bars;
mod lines;
mod rollout;
mod screen;
mod state;
mod summary;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use aec_base::problem::Problem;
use aec_eval::engine::Observer;
use aec_eval::event::EvalEvent;
use aec_eval::heartbeat::Pulse;
use aec_run::control::{Control, Wish};
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use serde_json::Value;

use self::lines::Lines;
pub(crate) use self::rollout::lines as rollout_lines;
use self::screen::View;
use self::state::State;
pub(crate) use self::summary::{saved_text, summary_text};
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::events::{self, EventLog};
use crate::progress::painter::{Display, Mode, Painter, Show};

/// How to show evaluations, from flags or their file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) full_screen: bool,
    pub(crate) plain: bool,
    pub(crate) verbose: bool,
}

struct EvalShow {
    state: State,
    lines: Lines,
    view: View,
}

impl Show for EvalShow {
    type Event<'a> = &'a EvalEvent;

    fn record(event: &&EvalEvent) -> Option<Value> {
        Some(events::of_evaluation(event))
    }

    fn on(&mut self, event: &EvalEvent, mode: Mode, now: Instant) -> Vec<String> {
        self.state.apply(event, now);
        match (mode, event) {
            (Mode::Lines, _) => self.lines.on(event, &self.state, now),
            (Mode::Bars, EvalEvent::Started(started)) => started.iter().flat_map(lines::header).collect(),
            _ => Vec::new(),
        }
    }

    fn picture(&self, wish: Wish, now: Instant, columns: usize) -> Vec<String> {
        bars::picture(&self.state, wish, now, columns)
    }

    fn remains(&self, now: Instant, columns: usize) -> Option<String> {
        self.picture(Wish::GoOn, now, columns).into_iter().next()
    }

    fn draw(&mut self, frame: &mut Frame<'_>, wish: Wish, now: Instant) {
        screen::draw(frame, &self.state, &self.view, wish, now);
    }

    fn key(&mut self, key: KeyEvent, control: &Control, _: Instant) {
        self.view.key(key, &self.state, control);
    }

    fn changes(&self) -> u64 {
        self.state.changes
    }
}

/// Shows evaluations while they run, and tells a monitor of them. Dropping it restores the terminal.
pub(crate) struct EvalProgress {
    painter: Painter<EvalShow>,
    wants_rows: bool,
    /// Sends heartbeats to a monitor, if one was named.
    pulse: Arc<OnceLock<Pulse>>,
    warnings: Arc<Mutex<Vec<Problem>>>,
}

impl EvalProgress {
    /// Starts to show evaluations in the mode that fits the flags and the terminal.
    pub(crate) fn new(
        context: &Context,
        shown: Shown,
        events: Option<EventLog>,
        control: Control,
    ) -> Result<Self, Failure> {
        // Details and plain lines would be overwritten by a bar.
        let mode = Mode::of(context, shown.full_screen, shown.plain || shown.verbose);
        let state = State::new(context.redactor(), Instant::now());
        let show = EvalShow { state, lines: Lines::new(shown.verbose), view: View::default() };
        Ok(Self {
            painter: Painter::new(Display { mode, events }, show, context.color, control)?,
            wants_rows: mode == Mode::Screen || (mode == Mode::Lines && shown.verbose),
            pulse: Arc::default(),
            warnings: Arc::default(),
        })
    }

    /// Whether rows are shown, not only totals.
    pub(crate) fn wants_rows(&self) -> bool {
        self.wants_rows
    }

    pub(crate) fn observer(&self) -> Observer {
        let (watcher, pulse) = (self.painter.watcher(), Arc::clone(&self.pulse));
        Arc::new(move |event| {
            if let (EvalEvent::Finished(_), Some(pulse)) = (event, pulse.get()) {
                pulse.beat();
            }
            watcher.on(event);
        })
    }

    /// From now on, tells a monitor of every rollout.
    pub(crate) fn beat(&self, pulse: Pulse) {
        // A run has only one monitor.
        self.pulse.set(pulse).ok();
    }

    /// Collects a warning for the end of the run.
    pub(crate) fn warn(&self) -> impl FnOnce(Problem) + Send + 'static {
        let warnings = Arc::clone(&self.warnings);
        move |problem| warnings.lock().unwrap_or_else(PoisonError::into_inner).push(problem)
    }

    pub(crate) fn warnings(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn on(&self, event: &EvalEvent) {
        self.painter.on(event);
    }

    /// Ends the display and restores the terminal.
    pub(crate) fn finish(&mut self) {
        self.painter.finish();
    }
}
