//! The one painter: shows progress as lines, as bars or on the full screen. It draws on a separate thread, so that a
//! slow terminal delays nothing else.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::problem::Problem;
use aec_run::control::{Control, Wish};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind, poll, read};
use ratatui::crossterm::terminal::window_size;
use serde_json::Value;

use super::events::EventLog;
use super::outlet::Outlet;
use super::terminal::Terminal;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;

/// How often bars are drawn.
const BAR: Duration = Duration::from_millis(100);

/// Shortest time between two frames of the full screen.
const FRAME: Duration = Duration::from_millis(66);

/// Longest time between two frames: clocks on the full screen advance even if nothing happens.
const IDLE: Duration = Duration::from_secs(1);

/// How a command shows its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Quiet,
    /// Lines, for logs and pipes.
    Lines,
    Bars,
    Screen,
}

impl Mode {
    /// The mode that fits the flags and the terminal.
    pub(crate) fn of(context: &Context, full_screen: bool, plain: bool) -> Self {
        let terminal = context.is_terminal() && !plain && context.format != Format::Json;
        Self::choose(context.quiet, full_screen, terminal)
    }

    fn choose(quiet: bool, full_screen: bool, terminal: bool) -> Self {
        if quiet {
            Self::Quiet
        } else if full_screen {
            Self::Screen
        } else if terminal {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}

/// How a command shows its progress to people and to other programs.
pub(crate) struct Display {
    pub(crate) mode: Mode,
    pub(crate) events: Option<EventLog>,
}

impl Display {
    pub(crate) fn quiet() -> Self {
        Self { mode: Mode::Quiet, events: None }
    }
}

/// Something whose progress can be shown.
pub(crate) trait Show: Send + 'static {
    type Event<'a>;

    /// The JSON of an event, for other programs.
    fn record(event: &Self::Event<'_>) -> Option<Value>;

    /// Updates the state with an event, and returns the lines to print about it: in a log, or above bars.
    fn on(&mut self, event: Self::Event<'_>, mode: Mode, now: Instant) -> Vec<String>;

    /// The lines at the bottom of a terminal, at most `columns` wide.
    fn picture(&self, wish: Wish, now: Instant, columns: usize) -> Vec<String>;

    /// The line of the picture that stays when the bars end.
    fn remains(&self, _now: Instant, _columns: usize) -> Option<String> {
        None
    }

    fn draw(&mut self, _frame: &mut Frame<'_>, _wish: Wish, _now: Instant) {}

    /// Handles a key.
    fn key(&mut self, _key: KeyEvent, _control: &Control, _now: Instant) {}

    /// Grows with every change that a frame shows.
    fn changes(&self) -> u64 {
        0
    }
}

/// Shows something. Dropping it restores the terminal.
pub(crate) struct Painter<S: Show> {
    watcher: Watcher<S>,
    thread: Option<JoinHandle<()>>,
}

/// Receives events from any thread.
pub(crate) struct Watcher<S>(Arc<Shared<S>>);

impl<S> Clone for Watcher<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Shared<S> {
    mode: Mode,
    show: Mutex<S>,
    /// Prints lines, in modes that have them.
    outlet: Mutex<Option<Outlet>>,
    /// Writes events for other programs, if the user asked for them.
    events: Mutex<Option<EventLog>>,
    over: AtomicBool,
}

impl<S> Shared<S> {
    fn show(&self) -> MutexGuard<'_, S> {
        self.show.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outlet(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> MutexGuard<'_, Option<EventLog>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Show> Watcher<S> {
    /// Updates the display with an event.
    pub(crate) fn on(&self, event: S::Event<'_>) {
        if let Some(events) = &*self.0.events()
            && let Some(record) = S::record(&event)
        {
            events.write(&record);
        }
        if self.0.mode == Mode::Quiet {
            return;
        }
        let mut show = self.0.show();
        // Lines are passed on while the state is locked, so that they keep their order.
        let lines = show.on(event, self.0.mode, Instant::now());
        if let Some(outlet) = &mut *self.0.outlet() {
            for line in lines {
                outlet.print(line);
            }
        }
    }
}

impl<S: Show> Painter<S> {
    /// Starts the display. The full screen needs a terminal.
    pub(crate) fn new(display: Display, show: S, color: bool, control: Control) -> Result<Self, Failure> {
        let Display { mode, events } = display;
        let (show, over) = (Mutex::new(show), AtomicBool::new(false));
        let shared =
            Arc::new(Shared { mode, show, outlet: Mutex::default(), events: Mutex::new(events), over });
        let seen = Arc::clone(&shared);
        let thread = || std::thread::Builder::new().name("progress".to_owned());
        let thread = match mode {
            Mode::Quiet => None,
            Mode::Lines => {
                *shared.outlet() = Some(Outlet::stderr(color)?);
                None
            }
            Mode::Bars => {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
                if let Ok(style) = ProgressStyle::with_template("{msg}") {
                    bar.set_style(style);
                }
                let above = bar.clone();
                *shared.outlet() = Some(Outlet::new(move |line| above.println(line.trim_end_matches('\n')))?);
                Some(thread().spawn(move || paint_bars(&seen, &bar, draws_color(color), &control))?)
            }
            Mode::Screen => {
                let terminal = open_terminal()?;
                Some(thread().spawn(move || paint_screen(&seen, terminal, &control))?)
            }
        };
        Ok(Self { watcher: Watcher(shared), thread })
    }

    pub(crate) fn watcher(&self) -> Watcher<S> {
        self.watcher.clone()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.watcher.0.mode
    }

    pub(crate) fn on(&self, event: S::Event<'_>) {
        self.watcher.on(event);
    }

    /// Ends the display: all lines are printed and the terminal is restored when this returns.
    pub(crate) fn finish(&mut self) {
        drop(self.watcher.0.outlet().take());
        drop(self.watcher.0.events().take());
        self.watcher.0.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread restores the terminal when it ends, also after a panic.
            let _unused = thread.join();
        }
    }
}

impl<S: Show> Drop for Painter<S> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Whether bars and the full screen use colours: they do not go through a stream that handles `NO_COLOR`.
pub(crate) fn draws_color(color: bool) -> bool {
    color && anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

fn open_terminal() -> Result<Terminal, Failure> {
    if !std::io::stderr().is_terminal() {
        let problem = Problem::error("--tui needs a terminal, and stderr is not one");
        return Err(Failure::usage(problem.fix("leave out --tui: progress is then printed in lines")));
    }
    Terminal::open().map_err(|error| {
        let problem = Problem::error(format!("the terminal cannot be used for the full screen: {error}"));
        Failure::environment(problem.fix("leave out --tui"))
    })
}

fn paint_bars<S: Show>(shared: &Shared<S>, bar: &ProgressBar, color: bool, control: &Control) {
    let plain = |text: String| if color { text } else { anstream::adapter::strip_str(&text).to_string() };
    loop {
        let over = shared.over.load(Ordering::Acquire);
        // The last column stays free: some terminals move to the next line when it is used.
        let columns = window_size().map_or(80, |size| usize::from(size.columns)).max(2) - 1;
        if over {
            if let Some(line) = shared.show().remains(Instant::now(), columns) {
                bar.println(plain(line));
            }
            bar.finish_and_clear();
            return;
        }
        let picture = shared.show().picture(control.wish(), Instant::now(), columns).join("\n");
        if !picture.is_empty() {
            bar.set_message(plain(picture));
        }
        std::thread::park_timeout(BAR);
    }
}

fn paint_screen<S: Show>(shared: &Shared<S>, mut terminal: Terminal, control: &Control) {
    let mut drawn: Option<Instant> = None;
    let mut changes = 0;
    let mut pressed = false;
    while !shared.over.load(Ordering::Acquire) {
        // The effect of a key that arrived between two frames is shown with the next one.
        match keys(shared, control, drawn) {
            Ok(now) => pressed |= now,
            Err(_) => return,
        }
        let age = drawn.map_or(IDLE, |at| at.elapsed());
        let changed = pressed || age >= IDLE || shared.show().changes() != changes;
        if !changed || age < FRAME {
            continue;
        }
        pressed = false;
        let result = terminal.draw(|frame| {
            let mut show = shared.show();
            changes = show.changes();
            show.draw(frame, control.wish(), Instant::now());
        });
        if result.is_err() {
            return;
        }
        drawn = Some(Instant::now());
    }
}

/// Waits for keys until the next frame is due, and handles them.
fn keys<S: Show>(shared: &Shared<S>, control: &Control, drawn: Option<Instant>) -> std::io::Result<bool> {
    let wait = match drawn.map(|at| FRAME.saturating_sub(at.elapsed())) {
        None => Duration::ZERO,
        Some(Duration::ZERO) => FRAME,
        Some(rest) => rest,
    };
    let mut pressed = false;
    let mut more = poll(wait)?;
    while more {
        pressed = true;
        if let Event::Key(key) = read()?
            && key.kind != KeyEventKind::Release
        {
            shared.show().key(key, control, Instant::now());
        }
        more = poll(Duration::ZERO)?;
    }
    Ok(pressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surroundings_choose_the_mode() {
        assert_eq!(Mode::choose(false, false, true), Mode::Bars);
        assert_eq!(Mode::choose(false, false, false), Mode::Lines);
        assert_eq!(Mode::choose(false, true, true), Mode::Screen);
        assert_eq!(Mode::choose(true, true, true), Mode::Quiet);
    }
}
