//! What the user looks at, and how keys change it.

use std::time::{Duration, Instant};

use aec_run::control::{Control, Wish};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::super::state::{Key, State};
use super::{detail, draw};

/// Lines or rows that `PgUp` and `PgDn` move by.
const PAGE: usize = 10;

/// A key that is held down counts once.
const HELD: Duration = Duration::from_millis(400);

#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The time to show.
    pub(crate) now: Instant,
    pub(crate) color: bool,
    /// What the user asked the run to do.
    pub(crate) wish: Wish,
    /// The attempt that the user selected; if none, the first one is shown.
    pub(crate) selected: Option<Key>,
    /// Whether keys scroll the trace instead of the list.
    pub(crate) trace_focused: bool,
    /// Lines between the end of the trace and the last visible line. At 0 the trace is followed.
    pub(crate) scroll: usize,
    pub(crate) faults_only: bool,
    pub(crate) help: bool,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    /// When the user last asked to stop.
    pub(crate) asked: Option<Instant>,
}

impl View {
    pub(crate) fn new(color: bool, now: Instant) -> Self {
        Self {
            now,
            color,
            wish: Wish::GoOn,
            selected: None,
            trace_focused: false,
            scroll: 0,
            faults_only: false,
            help: false,
            columns: 80,
            rows: 24,
            asked: None,
        }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent, state: &State, control: &Control) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        if interrupt || key.code == KeyCode::Char('q') {
            self.ask(control);
            return;
        }
        if self.help {
            self.help = false;
            return;
        }
        match key.code {
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('f') => {
                self.faults_only = !self.faults_only;
                self.select(None);
            }
            KeyCode::Enter | KeyCode::Tab => self.trace_focused = !self.trace_focused,
            KeyCode::Esc if self.trace_focused => self.trace_focused = false,
            KeyCode::Esc => self.faults_only = false,
            KeyCode::Up | KeyCode::Char('k') => self.step(state, 1, true),
            KeyCode::Down | KeyCode::Char('j') => self.step(state, 1, false),
            KeyCode::PageUp => self.step(state, PAGE, true),
            KeyCode::PageDown => self.step(state, PAGE, false),
            KeyCode::Home | KeyCode::Char('g') => self.step(state, usize::MAX, true),
            KeyCode::End | KeyCode::Char('G') => self.step(state, usize::MAX, false),
            _ => {}
        }
    }

    fn ask(&mut self, control: &Control) {
        let held = self.asked.is_some_and(|at| self.now.saturating_duration_since(at) < HELD);
        self.asked = Some(self.now);
        if !held {
            control.ask();
        }
        self.wish = control.wish();
    }

    fn select(&mut self, key: Option<Key>) {
        if self.selected != key {
            self.selected = key;
            self.scroll = 0;
        }
    }

    /// Moves up or down: in the trace if it has the focus, otherwise in the list.
    fn step(&mut self, state: &State, steps: usize, up: bool) {
        if self.trace_focused {
            let height = usize::from(draw::areas(self).detail.height).saturating_sub(1);
            let most = detail::lines(state, self, usize::MAX).len().saturating_sub(height);
            let scroll =
                if up { self.scroll.saturating_add(steps) } else { self.scroll.saturating_sub(steps) };
            self.scroll = scroll.min(most);
            return;
        }
        let rows = state.rows(self.faults_only);
        let Some(last) = rows.len().checked_sub(1) else { return };
        let at = self.position(state);
        let to = if up { at.saturating_sub(steps) } else { at.saturating_add(steps).min(last) };
        let key = rows.get(to).map(|row| Key::of(row.trial()));
        self.select(key);
    }

    /// The selected row of the list. If the selected attempt is no longer listed, it is the first row.
    pub(crate) fn position(&self, state: &State) -> usize {
        let rows = state.rows(self.faults_only);
        let is_selected = |key: &Key| {
            rows.iter()
                .position(|row| row.trial().trial_id == key.trial && row.trial().attempt == key.attempt)
        };
        self.selected.as_ref().and_then(is_selected).unwrap_or(0)
    }

    pub(crate) fn chosen(&self, state: &State) -> Option<Key> {
        state.rows(self.faults_only).get(self.position(state)).map(|row| Key::of(row.trial()))
    }
}
