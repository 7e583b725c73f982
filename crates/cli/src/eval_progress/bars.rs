//! Evaluations on a terminal: a bar with the running reward, and a line for each evaluation when there are several.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::text::count;
use aec_run::control::{Control, Wish};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ratatui::crossterm::terminal::window_size;

use super::Shared;
use super::lines::{header, progress};
use super::state::{State, Tally};
use crate::progress::figures::{guess, money};
use crate::progress::text::cut;

/// How often it is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// Evaluations with a line of their own.
const SHOWN: usize = 12;

/// Draws on a thread of its own.
pub(crate) struct Bars {
    over: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Bars {
    pub(super) fn new(shared: Arc<Shared>, color: bool, control: Control) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let painter = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || paint(&shared, &ends, color, &control))?;
        Ok(Self { over, painter: Some(painter) })
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(painter) = self.painter.take() {
            painter.thread().unpark();
            let _unused = painter.join();
        }
    }
}

fn paint(shared: &Shared, over: &AtomicBool, color: bool, control: &Control) {
    let drawn = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        drawn.set_style(style);
    }
    let mut told = false;
    loop {
        let ends = over.load(Ordering::Acquire);
        let columns = window_size().map_or(80, |size| usize::from(size.columns)).max(2) - 1;
        let (headers, picture) = {
            let state = shared.state();
            let headers: Vec<String> = if told {
                Vec::new()
            } else {
                state.evaluations.iter().flat_map(|tally| header(&tally.started)).collect()
            };
            told |= !headers.is_empty();
            (headers, picture(&state, control.wish(), Instant::now(), columns))
        };
        for line in headers {
            drawn.println(cut(&line, columns));
        }
        if ends {
            // What it came to stays on the screen.
            if let Some(first) = picture.first() {
                drawn.println(first);
            }
            drawn.finish_and_clear();
            return;
        }
        let picture = picture.join("\n");
        let picture = if color { picture } else { anstream::adapter::strip_str(&picture).to_string() };
        if !picture.is_empty() {
            drawn.set_message(picture);
        }
        std::thread::park_timeout(FRAME);
    }
}

/// What is shown, line by line.
fn picture(state: &State, wish: Wish, now: Instant, columns: usize) -> Vec<String> {
    if state.evaluations.is_empty() {
        return Vec::new();
    }
    let mut first = progress(state);
    if let Some(left) = state.left(now) {
        first.push_str(&format!(", about {} left", guess(left)));
    }
    let mut lines = vec![cut(&first, columns)];
    if state.evaluations.len() > 1 {
        lines.extend(state.evaluations.iter().take(SHOWN).map(|tally| cut(&line(tally), columns)));
        let more = state.evaluations.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(format!("  and {}", count(more, "more evaluation")));
        }
    }
    match wish {
        Wish::GoOn => {}
        Wish::Finish => lines.push(cut("Stopping: what runs is finished. Once more to give up.", columns)),
        Wish::GiveUp => lines.push(cut("Giving up.", columns)),
    }
    lines
}

fn line(tally: &Tally) -> String {
    let reward = tally.mean().map_or_else(|| "no reward yet".to_owned(), |mean| format!("reward {mean:.2}"));
    let started = &tally.started;
    format!(
        "  {} with {}: {}/{}, {reward}, {}",
        started.env_id,
        started.model,
        tally.done(),
        started.total(),
        money(tally.spent())
    )
}
