//! Readers of what happens during evaluations: nothing, plain lines, a bar, or the full screen. Bar and screen draw on a
//! thread of their own, so that a slow terminal does not hold up a rollout.

mod bars;
mod lines;
mod rollout;
mod screen;
mod state;
mod summary;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use aec_base::problem::Problem;
use aec_eval::event::EvalEvent;
use aec_eval::heartbeat::Pulse;
use aec_eval::sink::Observer;
use aec_run::control::Control;

use self::bars::Bars;
use self::lines::Lines;
pub(crate) use self::rollout::lines as rollout_lines;
use self::screen::Screen;
use self::state::State;
pub(crate) use self::summary::{saved_text, summary_text};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::{Mode, Wanted};

/// How evaluations are to be shown, by flags or by their file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) full_screen: bool,
    /// Lines instead of a bar.
    pub(crate) plain: bool,
    /// Every conversation.
    pub(crate) verbose: bool,
}

/// Shows evaluations while they run. Dropping it restores the terminal.
pub(crate) struct EvalProgress {
    shared: Arc<Shared>,
    painter: Option<Painter>,
    wants_rows: bool,
}

/// What readers and rollouts share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Prints lines; absent where something else shows the state.
    lines: Mutex<Option<Lines>>,
    /// Tells a monitor, where one was named.
    pulse: OnceLock<Pulse>,
    /// What was noticed on the way.
    warnings: Mutex<Vec<Problem>>,
}

enum Painter {
    Bars(Bars),
    Screen(Screen),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pulse_for(&self, event: &EvalEvent) {
        if let (EvalEvent::Finished(_), Some(pulse)) = (event, self.pulse.get()) {
            pulse.beat();
        }
    }

    fn on(&self, event: &EvalEvent) {
        self.pulse_for(event);
        let now = Instant::now();
        let mut state = self.state();
        state.apply(event, now);
        if let Some(lines) = &mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner) {
            lines.say(event, &state, now);
        }
    }
}

impl EvalProgress {
    /// Begins to show evaluations in the way that fits flags and terminal.
    pub(crate) fn new(context: &Context, shown: Shown, control: Control) -> Result<Self, Failure> {
        let mode = Mode::choose(Wanted {
            quiet: context.quiet,
            full_screen: shown.full_screen,
            json: context.format == Format::Json,
            // Details and plain lines do not go together with a bar that is drawn over.
            terminal: context.is_terminal() && !shown.plain && !shown.verbose,
        });
        let lines = match mode {
            Mode::Lines => Some(Lines::new(context.color, shown.verbose)?),
            Mode::Quiet | Mode::Bars | Mode::Screen => None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(context.redactor(), Instant::now())),
            lines: Mutex::new(lines),
            pulse: OnceLock::new(),
            warnings: Mutex::default(),
        });
        let painter = match mode {
            Mode::Quiet | Mode::Lines => None,
            Mode::Bars => Some(Painter::Bars(Bars::new(Arc::clone(&shared), context.color, control)?)),
            Mode::Screen => Some(Painter::Screen(Screen::new(Arc::clone(&shared), control)?)),
        };
        let wants_rows = mode == Mode::Screen || (mode == Mode::Lines && shown.verbose);
        Ok(Self { shared, painter, wants_rows })
    }

    /// Whether rows are shown, not only what they add up to.
    pub(crate) fn wants_rows(&self) -> bool {
        self.wants_rows
    }

    /// What hears of events.
    pub(crate) fn observer(&self) -> Observer {
        if self.painter.is_none()
            && self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            // Nobody looks on, but a monitor may want to hear of it.
            let shared = Arc::clone(&self.shared);
            return Arc::new(move |event| shared.pulse_for(event));
        }
        let shared = Arc::clone(&self.shared);
        Arc::new(move |event| shared.on(event))
    }

    /// Tells a monitor of every rollout from now on.
    pub(crate) fn beat(&self, pulse: Pulse) {
        // There is one monitor in a run.
        self.shared.pulse.set(pulse).ok();
    }

    /// Takes in what there is to say at the end.
    pub(crate) fn warn(&self) -> impl FnOnce(Problem) + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move |problem| shared.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(problem)
    }

    /// What was noticed on the way.
    pub(crate) fn warnings(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.shared.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in what happened.
    pub(crate) fn on(&self, event: &EvalEvent) {
        self.shared.on(event);
    }

    /// Ends the display and gives the terminal back.
    pub(crate) fn finish(&mut self) {
        match self.painter.take() {
            Some(Painter::Bars(bars)) => drop(bars),
            Some(Painter::Screen(screen)) => drop(screen),
            None => {}
        }
        drop(self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
