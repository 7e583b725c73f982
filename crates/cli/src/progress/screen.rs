//! The full screen: trials as they run, and what the selected one does. Keys are read and frames drawn on one thread;
//! the run only leaves its events here.

mod detail;
mod draw;
mod header;
mod list;
mod pen;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::problem::Problem;
use aec_run::control::Control;
use aec_run::event::RunEvent;
use ratatui::crossterm::event::{Event, poll, read};

pub(crate) use self::terminal::Terminal;
use self::view::View;
use super::state::State;
use crate::failure::Failure;

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(66);

/// Clocks on the screen go on even when nothing happens.
const IDLE: Duration = Duration::from_secs(1);

/// Shows a run on the full screen. Dropping it restores the terminal.
pub(crate) struct Screen {
    shared: Arc<Shared>,
    painter: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    over: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Screen {
    pub(crate) fn new(state: State, color: bool, control: Control) -> Result<Self, Failure> {
        if !std::io::stderr().is_terminal() {
            let problem = Problem::error("--tui needs a terminal, and stderr is none");
            return Err(Failure::usage(problem.fix("leave out --tui: progress is then printed in lines")));
        }
        let terminal = Terminal::open().map_err(|error| {
            let problem = Problem::error(format!("the terminal cannot be used for the full screen: {error}"));
            Failure::environment(problem.fix("leave out --tui"))
        })?;
        let shared = Arc::new(Shared { state: Mutex::new(state), over: AtomicBool::new(false) });
        let seen = Arc::clone(&shared);
        let view = View::new(color, Instant::now());
        let painter = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || paint(&seen, terminal, view, &control))?;
        Ok(Self { shared, painter: Some(painter) })
    }

    pub(crate) fn on(&mut self, event: &RunEvent) {
        self.shared.state().apply(event, Instant::now());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(painter) = self.painter.take() {
            // The thread restores the terminal on its way out, also when it panics.
            let _unused = painter.join();
        }
    }
}

fn paint(shared: &Shared, mut terminal: Terminal, mut view: View, control: &Control) {
    let mut drawn: Option<Instant> = None;
    let mut changes = 0;
    let mut pressed = false;
    while !shared.over.load(Ordering::Acquire) {
        // A key that came too early for a frame is shown with the next one.
        match keys(shared, &mut view, control, drawn) {
            Ok(now) => pressed |= now,
            Err(_) => return,
        }
        let age = drawn.map_or(IDLE, |at| at.elapsed());
        let changed = pressed || age >= IDLE || shared.state().changes() != changes;
        if !changed || age < FRAME {
            continue;
        }
        pressed = false;
        view.now = Instant::now();
        view.wish = control.wish();
        let result = terminal.draw(|frame| {
            view.columns = frame.area().width;
            view.rows = frame.area().height;
            let state = shared.state();
            changes = state.changes();
            draw::draw(frame, &state, &view);
        });
        if result.is_err() {
            return;
        }
        drawn = Some(Instant::now());
    }
}

/// Waits for keys until the next frame is due, and does what they say.
fn keys(
    shared: &Shared,
    view: &mut View,
    control: &Control,
    drawn: Option<Instant>,
) -> std::io::Result<bool> {
    let wait = match drawn.map(|at| FRAME.saturating_sub(at.elapsed())) {
        None => Duration::ZERO,
        Some(Duration::ZERO) => FRAME,
        Some(rest) => rest,
    };
    let mut pressed = false;
    let mut more = poll(wait)?;
    while more {
        pressed = true;
        if let Event::Key(key) = read()? {
            view.now = Instant::now();
            view.key(key, &shared.state(), control);
        }
        more = poll(Duration::ZERO)?;
    }
    Ok(pressed)
}
