//! What is shown of a run.

mod bars;
mod lines;
mod pace;
mod phrases;
#[cfg(test)]
mod samples;
mod screen;
mod state;
mod summary;
mod trace;

use std::time::Instant;

use aec_base::secret::Redactor;
use aec_run::control::{Control, Wish};
use aec_run::event::RunEvent;
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use serde_json::Value;

use self::lines::Lines;
use self::screen::{View, draw};
use self::state::State;
pub(crate) use self::summary::{TALLY_COLUMNS, summary_text, tally_table};
use crate::failure::Failure;
use crate::progress::events;
use crate::progress::painter::{Display, Mode, Painter, Show, draws_color};

/// The display of a run.
pub(crate) struct RunShow {
    state: State,
    lines: Lines,
    /// What the user looks at on the full screen.
    view: View,
}

impl RunShow {
    pub(crate) fn begin(
        display: Display,
        color: bool,
        redactor: Redactor,
        control: Control,
    ) -> Result<Painter<Self>, Failure> {
        Painter::new(display, Self::new(redactor, color, Instant::now()), color, control)
    }

    fn new(redactor: Redactor, color: bool, now: Instant) -> Self {
        let view = View::new(draws_color(color), now);
        Self { state: State::new(redactor, now), lines: Lines::new(now), view }
    }
}

impl Show for RunShow {
    type Event<'a> = &'a RunEvent;

    fn record(event: &&RunEvent) -> Option<Value> {
        events::of_run(event)
    }

    fn on(&mut self, event: &RunEvent, mode: Mode, now: Instant) -> Vec<String> {
        self.state.apply(event, now);
        match mode {
            Mode::Lines => self.lines.on(event, &self.state, now),
            Mode::Bars => bars::above(event, &self.state).into_iter().collect(),
            Mode::Quiet | Mode::Screen => Vec::new(),
        }
    }

    fn picture(&self, wish: Wish, now: Instant, columns: usize) -> Vec<String> {
        bars::picture(&self.state, wish, now, columns)
    }

    fn draw(&mut self, frame: &mut Frame<'_>, wish: Wish, now: Instant) {
        let (columns, rows) = (frame.area().width, frame.area().height);
        self.view = View { now, wish, columns, rows, ..self.view.clone() };
        draw(frame, &self.state, &self.view);
    }

    fn key(&mut self, key: KeyEvent, control: &Control, now: Instant) {
        self.view.now = now;
        self.view.key(key, &self.state, control);
    }

    fn changes(&self) -> u64 {
        self.state.changes()
    }
}
