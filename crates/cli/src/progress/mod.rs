//! Readers of a run's events: nothing, plain lines, bars, or the full screen. Each draws on a thread of its own, so
//! that a slow terminal does not hold up the run.

mod bars;
pub(crate) mod figures;
mod lines;
pub(crate) mod outlet;
mod pace;
mod phrases;
#[cfg(test)]
mod samples;
mod screen;
mod state;
mod summary;
pub(crate) mod text;
mod trace;

use std::time::Instant;

use aec_base::secret::Redactor;
use aec_run::control::Control;
use aec_run::event::RunEvent;

use self::bars::Bars;
use self::lines::Lines;
use self::outlet::Outlet;
use self::screen::Screen;
pub(crate) use self::screen::Terminal;
use self::state::State;
pub(crate) use self::summary::{summary_text, tally_table};
use crate::failure::Failure;

/// How a run tells what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all.
    Quiet,
    /// Lines, for logs and pipes.
    Lines,
    /// Bars on a terminal.
    Bars,
    /// The full screen.
    Screen,
}

/// What decides how a run tells what it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) quiet: bool,
    /// `--tui`.
    pub(crate) full_screen: bool,
    pub(crate) json: bool,
    /// Whether stderr is a terminal that can move its cursor.
    pub(crate) terminal: bool,
}

impl Mode {
    /// The mode for what is wanted.
    pub(crate) fn choose(wanted: Wanted) -> Self {
        if wanted.quiet {
            Self::Quiet
        } else if wanted.full_screen {
            Self::Screen
        } else if wanted.terminal && !wanted.json {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}

/// Tells what a run does. Dropping it restores the terminal.
pub(crate) struct Progress(Reader);

enum Reader {
    Quiet,
    Lines(Box<Told>),
    Bars(Bars),
    Screen(Screen),
}

/// Lines, and what they tell of.
struct Told {
    state: State,
    lines: Lines,
    outlet: Outlet,
}

impl Progress {
    /// Begins. The full screen needs a terminal.
    pub(crate) fn new(
        mode: Mode,
        color: bool,
        redactor: Redactor,
        control: Control,
    ) -> Result<Self, Failure> {
        let now = Instant::now();
        let state = State::new(redactor, now);
        // Bars and the full screen do not go through a stream that knows about NO_COLOR.
        let drawn = color && anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
        Ok(Self(match mode {
            Mode::Quiet => Reader::Quiet,
            Mode::Lines => Reader::Lines(Box::new(Told {
                state,
                lines: Lines::new(now),
                outlet: Outlet::stderr(color)?,
            })),
            Mode::Bars => Reader::Bars(Bars::new(state, drawn, control)?),
            Mode::Screen => Reader::Screen(Screen::new(state, drawn, control)?),
        }))
    }

    /// Whether anybody looks at what trials do in detail.
    pub(crate) fn wants_traces(&self) -> bool {
        matches!(self.0, Reader::Screen(_))
    }

    /// Takes in what happened.
    pub(crate) fn on(&mut self, event: &RunEvent) {
        match &mut self.0 {
            Reader::Quiet => {}
            Reader::Lines(told) => {
                let now = Instant::now();
                told.state.apply(event, now);
                for line in told.lines.on(event, &told.state, now) {
                    told.outlet.print(line);
                }
            }
            Reader::Bars(bars) => bars.on(event),
            Reader::Screen(screen) => screen.on(event),
        }
    }

    /// Ends, and restores the terminal.
    pub(crate) fn finish(self) {
        drop(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surroundings_choose_the_mode() {
        let terminal = Wanted { terminal: true, ..Wanted::default() };
        assert_eq!(Mode::choose(terminal), Mode::Bars);
        assert_eq!(Mode::choose(Wanted { json: true, ..terminal }), Mode::Lines);
        assert_eq!(Mode::choose(Wanted::default()), Mode::Lines);
        assert_eq!(Mode::choose(Wanted { full_screen: true, ..terminal }), Mode::Screen);
        assert_eq!(Mode::choose(Wanted { full_screen: true, quiet: true, ..terminal }), Mode::Quiet);
    }

    #[test]
    fn only_the_full_screen_wants_traces() {
        let quiet = Progress::new(Mode::Quiet, true, Redactor::default(), Control::default()).unwrap();
        assert!(!quiet.wants_traces());
        quiet.finish();
    }
}
