//! The full screen: evaluations above, the latest rollouts below, and the conversation of the selected one.

use std::time::Instant;

use aec_base::decimal::rounded;
use aec_run::control::{Control, Wish};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::rollout;
use super::state::{Latest, State, Tally};
use crate::progress::figures::{bar, guess};
use crate::progress::text::{cut, fill};

const CELLS: usize = 20;

/// Which rollout the user looks at.
#[derive(Default)]
pub(super) struct View {
    selected: usize,
    scroll: u16,
}

impl View {
    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent, state: &State, control: &Control) {
        let most = state.latest.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => control.ask(),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => control.ask(),
            KeyCode::Down | KeyCode::Char('j') => {
                *self = Self { selected: (self.selected + 1).min(most), scroll: 0 };
            }
            KeyCode::Up | KeyCode::Char('k') => {
                *self = Self { selected: self.selected.saturating_sub(1), scroll: 0 };
            }
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            _ => {}
        }
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, view: &View, wish: Wish, now: Instant) {
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
            let lines = rollout::lines(row, state.name(latest.evaluation), &state.redactor);
            lines.into_iter().map(Line::raw).collect()
        }
        None => Vec::new(),
    };
    let wrap = ratatui::widgets::Wrap { trim: false };
    frame.render_widget(Paragraph::new(text).wrap(wrap).scroll((view.scroll, 0)), detail);
    let said = match wish {
        Wish::GoOn => "q stop   ↑↓ choose a rollout   space and page keys scroll it",
        Wish::Finish => "stopping: finishing running rollouts; q once more to cancel them",
        Wish::GiveUp => "giving up",
    };
    frame.render_widget(Paragraph::new(Line::styled(cut(said, columns), Modifier::DIM)), foot);
}

fn title(state: &State, now: Instant) -> String {
    let (done, all) = state.progress();
    let left = state.left(now).map(|left| format!(", about {} left", guess(left))).unwrap_or_default();
    let stopping = state.stopping.as_deref().map(|why| format!("  stopping: {why}")).unwrap_or_default();
    format!("{done} of {all} rollouts, {}{left}{stopping}", state.elapsed(now))
}

fn row(tally: &Tally) -> String {
    let started = &tally.started;
    #[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
    let share = tally.done() as f64 / started.total().max(1) as f64;
    let reward = tally.mean().map_or_else(|| "-".to_owned(), |mean| rounded(mean, 3));
    let over = if tally.is_over { "  done" } else { "" };
    format!(
        "{} {} {}/{}  reward {reward}  errors {}  retries {}  {}  {}{over}",
        bar(share, CELLS),
        fill(&started.env_id, 24),
        tally.done(),
        started.total(),
        tally.errors,
        tally.retries,
        tally.cost(),
        started.model
    )
}

fn latest_row(latest: &Latest, state: &State) -> String {
    let reward = latest.reward.map_or_else(|| "-".to_owned(), |reward| rounded(reward, 3));
    format!(
        "{} example {:>5} rollout {:>3}  reward {reward:>6}  {:>7.2} s  {}",
        fill(state.name(latest.evaluation), 24),
        latest.example_id,
        latest.rollout_number,
        latest.seconds,
        latest.stop
    )
}
