//! The full screen: evaluations above, the latest rollouts below, and the conversation of the selected one.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::problem::Problem;
use aec_run::control::{Control, Wish};
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::state::{Latest, State, Tally};
use super::{Shared, rollout};
use crate::failure::Failure;
use crate::progress::Terminal;
use crate::progress::figures::{bar, guess, money};
use crate::progress::text::{cut, fill};

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(66);
const CELLS: usize = 20;

/// Shows evaluations on the full screen. Dropping it restores the terminal.
pub(crate) struct Screen {
    over: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Screen {
    pub(super) fn new(shared: Arc<Shared>, control: Control) -> Result<Self, Failure> {
        if !std::io::stderr().is_terminal() {
            let problem = Problem::error("--tui needs a terminal, and stderr is none");
            return Err(Failure::usage(problem.fix("leave out --tui: progress is then printed in lines")));
        }
        let terminal = Terminal::open().map_err(|error| {
            let problem = Problem::error(format!("the terminal cannot be used for the full screen: {error}"));
            Failure::environment(problem.fix("leave out --tui"))
        })?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let painter = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || paint(&shared, &ends, terminal, &control))?;
        Ok(Self { over, painter: Some(painter) })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(painter) = self.painter.take() {
            // The thread restores the terminal on its way out, also when it panics.
            let _unused = painter.join();
        }
    }
}

/// What is looked at.
#[derive(Default)]
struct View {
    selected: usize,
    scroll: u16,
}

fn paint(shared: &Shared, over: &AtomicBool, mut terminal: Terminal, control: &Control) {
    let mut view = View::default();
    while !over.load(Ordering::Acquire) {
        let drawn =
            terminal.draw(|frame| draw(frame, &shared.state(), &view, control.wish(), Instant::now()));
        if drawn.is_err() || keys(&mut view, shared, control).is_err() {
            return;
        }
    }
}

/// Waits for keys until the next frame is due, and does what they say.
fn keys(view: &mut View, shared: &Shared, control: &Control) -> std::io::Result<()> {
    let until = Instant::now() + FRAME;
    while poll(until.saturating_duration_since(Instant::now()))? {
        let Event::Key(key) = read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let most = shared.state().latest.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => control.ask(),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => control.ask(),
            KeyCode::Down | KeyCode::Char('j') => {
                *view = View { selected: (view.selected + 1).min(most), scroll: 0 };
            }
            KeyCode::Up | KeyCode::Char('k') => {
                *view = View { selected: view.selected.saturating_sub(1), scroll: 0 };
            }
            KeyCode::PageDown | KeyCode::Char(' ') => view.scroll = view.scroll.saturating_add(10),
            KeyCode::PageUp => view.scroll = view.scroll.saturating_sub(10),
            _ => {}
        }
    }
    Ok(())
}

fn draw(frame: &mut Frame<'_>, state: &State, view: &View, wish: Wish, now: Instant) {
    let area = frame.area();
    let columns = usize::from(area.width);
    let evaluations = u16::try_from(state.evaluations.len()).unwrap_or(u16::MAX);
    let above = evaluations.saturating_add(2).min(area.height / 3);
    let parts = Layout::vertical([
        Constraint::Length(above),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [head, list, detail, foot] = parts.areas(area);
    let mut lines = vec![Line::styled(cut(&title(state, now), columns), Modifier::BOLD)];
    lines.extend(state.evaluations.iter().map(|tally| Line::raw(cut(&row(tally), columns))));
    frame.render_widget(Paragraph::new(lines), head);
    let rows = usize::from(list.height);
    let first = view.selected.saturating_sub(rows.saturating_sub(1));
    let latest = state.latest.iter().enumerate().skip(first).take(rows).map(|(at, latest)| {
        let style =
            if at == view.selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        Line::styled(cut(&latest_row(latest, state), columns), style)
    });
    frame.render_widget(Paragraph::new(latest.collect::<Vec<_>>()), list);
    let shown = state.latest.get(view.selected).and_then(|latest| Some((latest, latest.row.as_ref()?)));
    let text: Vec<Line<'_>> = match shown {
        Some((latest, row)) => {
            let lines = rollout::lines(row, &name(state, latest.evaluation), &state.redactor);
            lines.into_iter().map(Line::raw).collect()
        }
        None => Vec::new(),
    };
    let wrap = ratatui::widgets::Wrap { trim: false };
    frame.render_widget(Paragraph::new(text).wrap(wrap).scroll((view.scroll, 0)), detail);
    let said = match wish {
        Wish::GoOn => "q stop   ↑↓ choose a rollout   space and page keys scroll it",
        Wish::Finish => "stopping: what runs is finished; q once more to give up",
        Wish::GiveUp => "giving up",
    };
    frame.render_widget(Paragraph::new(Line::styled(cut(said, columns), Modifier::DIM)), foot);
}

fn title(state: &State, now: Instant) -> String {
    let (done, all) = state.progress();
    let left = state.left(now).map(|left| format!(", about {} left", guess(left))).unwrap_or_default();
    let stopping = state.stopping.as_deref().map(|why| format!("  stopping: {why}")).unwrap_or_default();
    format!("{done} of {all} rollouts{left}{stopping}")
}

fn row(tally: &Tally) -> String {
    let started = &tally.started;
    #[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
    let share = tally.done() as f64 / started.total().max(1) as f64;
    let reward = tally.mean().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}"));
    let over = if tally.is_over { "  done" } else { "" };
    format!(
        "{} {} {}/{}  reward {reward}  errors {}  retries {}  {}  {}{over}",
        bar(share, CELLS),
        fill(&started.env_id, 24),
        tally.done(),
        started.total(),
        tally.errors,
        tally.retries,
        money(tally.spent()),
        started.model
    )
}

fn latest_row(latest: &Latest, state: &State) -> String {
    let reward = latest.reward.map_or_else(|| "-".to_owned(), |reward| format!("{reward:.3}"));
    format!(
        "{} example {:>5} rollout {:>3}  reward {reward:>6}  {:>7.2} s  {}",
        fill(&name(state, latest.evaluation), 24),
        latest.example_id,
        latest.rollout_number,
        latest.seconds,
        latest.stop
    )
}

fn name(state: &State, evaluation: usize) -> String {
    state.evaluations.get(evaluation).map(|tally| tally.started.env_id.clone()).unwrap_or_default()
}
