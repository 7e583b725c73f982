//! The terminal while it shows a full screen, and how it is restored: at the end, when this is dropped, and before a
//! panic is reported.

use std::io::{self, BufWriter, Stderr, stderr};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// A frame is written in one go.
const FRAME_BYTES: usize = 64 * 1024;

/// A terminal that shows a full screen on stderr.
pub(crate) struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    taken: Arc<Taken>,
    hook: Arc<Hook>,
}

/// Whether the full screen is active. Only the first caller of `give_back` restores the terminal.
#[derive(Default)]
struct Taken(AtomicBool);

impl Taken {
    fn take(&self) -> io::Result<()> {
        enable_raw_mode()?;
        self.0.store(true, Ordering::Release);
        execute!(stderr(), EnterAlternateScreen, Hide)
    }

    fn give_back(&self) {
        if self.0.swap(false, Ordering::AcqRel) {
            // If the terminal is gone, nothing can be done about it.
            let _unused = disable_raw_mode();
            // The screen is cleared first: after a resize some terminals keep lines of it.
            let _unused = execute!(stderr(), Clear(ClearType::All), MoveTo(0, 0), LeaveAlternateScreen, Show);
        }
    }
}

impl Terminal {
    pub(crate) fn open() -> io::Result<Self> {
        let taken = Arc::new(Taken::default());
        if let Err(error) = taken.take() {
            taken.give_back();
            return Err(error);
        }
        let hook: Arc<Hook> = Arc::from(std::panic::take_hook());
        let (told, given_back) = (Arc::clone(&hook), Arc::clone(&taken));
        std::panic::set_hook(Box::new(move |panic| {
            given_back.give_back();
            told(panic);
        }));
        let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, stderr()));
        match ratatui::Terminal::new(backend) {
            Ok(inner) => Ok(Self { inner, taken, hook }),
            Err(error) => {
                taken.give_back();
                std::panic::set_hook(Box::new(move |panic| hook(panic)));
                Err(error)
            }
        }
    }

    /// Draws a frame. A panic in another thread restores the terminal; if the run continues, because the panic ended
    /// only one trial, the full screen is entered again.
    pub(crate) fn draw(&mut self, content: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if !self.taken.0.load(Ordering::Acquire) {
            self.taken.take()?;
            let size = self.inner.size()?;
            self.inner.resize(ratatui::layout::Rect::new(0, 0, size.width, size.height))?;
        }
        self.inner.draw(content)?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.taken.give_back();
        // Hooks cannot be changed during a panic; by then ours does nothing more.
        if !std::thread::panicking() {
            let hook = Arc::clone(&self.hook);
            std::panic::set_hook(Box::new(move |panic| hook(panic)));
        }
    }
}
