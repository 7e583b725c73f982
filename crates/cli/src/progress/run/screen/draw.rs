//! Draws a frame of the full screen from a state and a view alone.

use aec_run::control::Wish;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::super::state::State;
use super::detail::{self, Kind};
use super::header::header;
use super::list::list;
use super::pen::Pen;
use super::view::View;
use crate::progress::text::cut;

/// From this width on, the list and the trace are side by side.
const SIDE_BY_SIDE: u16 = 120;

/// Lines above the list.
const HEADER: u16 = 5;

/// Where the parts of the screen are. A part that does not fit has no height.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Areas {
    pub(crate) header: Rect,
    pub(crate) list: Rect,
    pub(crate) detail: Rect,
    pub(crate) keys: Rect,
}

/// Divides the screen among its parts.
pub(crate) fn areas(view: &View) -> Areas {
    let (columns, rows) = (view.columns, view.rows);
    let header = Rect::new(0, 0, columns, HEADER.min(rows));
    let keys = Rect::new(0, rows.saturating_sub(1), columns, u16::from(rows > HEADER));
    let rest = rows.saturating_sub(HEADER + 1);
    if columns >= SIDE_BY_SIDE {
        let left = columns * 11 / 20;
        let list = Rect::new(0, HEADER, left, rest);
        return Areas { header, list, detail: Rect::new(left + 1, HEADER, columns - left - 1, rest), keys };
    }
    let list = if view.trace_focused { (rest / 4).max(3) } else { (rest / 2).max(4) }.min(rest);
    let list = Rect::new(0, HEADER, columns, list);
    let detail = Rect::new(0, HEADER + list.height, columns, rest - list.height);
    Areas { header, list, detail, keys }
}

pub(crate) fn draw(frame: &mut Frame<'_>, state: &State, view: &View) {
    let mut pen = Pen { buffer: frame.buffer_mut(), color: view.color };
    let areas = areas(view);
    header(&mut pen, areas.header, state, view);
    list(&mut pen, areas.list, state, view);
    trace(&mut pen, areas.detail, state, view);
    pen.line(areas.keys, 0, &key_line(view), Style::new().add_modifier(Modifier::DIM));
    if view.help {
        help(&mut pen, areas.list.union(areas.detail));
    }
}

fn trace(pen: &mut Pen<'_>, area: Rect, state: &State, view: &View) {
    if area.height == 0 {
        return;
    }
    let scroll = if view.scroll > 0 { format!(", {} lines up", view.scroll) } else { String::new() };
    let title = match view.chosen(state) {
        Some(key) => format!("{} attempt {}{scroll}", key.trial, key.attempt),
        None => "trace".to_owned(),
    };
    pen.title(area, &cut(&title, usize::from(area.width).saturating_sub(4)), view.trace_focused);
    let height = usize::from(area.height - 1);
    let lines = detail::lines(state, view, height.saturating_add(view.scroll));
    for (row, (kind, text)) in (1..).zip(lines.iter().take(height)) {
        let style = match kind {
            Kind::Head => pen.colored(Color::Cyan).add_modifier(Modifier::BOLD),
            Kind::Body => Style::new(),
            Kind::Fault => pen.colored(Color::Red),
        };
        pen.line(area, row, text, style);
    }
}

fn key_line(view: &View) -> String {
    let stop = match view.wish {
        Wish::GoOn => "q finish and stop",
        Wish::Finish => "q cancel running trials",
        Wish::GiveUp => "stopping",
    };
    let keys = if view.trace_focused { "↑↓ scroll, Enter list" } else { "↑↓ select, Enter trace" };
    format!("{stop}, {keys}, f faults, ? help")
}

const HELP: [&str; 11] = [
    "",
    "  ↑ ↓  j k        select a trial, or scroll the trace",
    "  PgUp PgDn       ten at once",
    "  g G  Home End   first and last; the end of a trace is followed",
    "  Enter Tab       keys for the trace, or for the list",
    "  f               faults only, or all trials",
    "  Esc             back to the list, then to all trials",
    "  q  Ctrl-C       start no further trial, finish those that run",
    "  q  once more    cancel those that run; everything is recorded",
    "  ?               this help; any key closes it",
    "",
];

fn help(pen: &mut Pen<'_>, area: Rect) {
    let blank = " ".repeat(usize::from(area.width));
    for row in 0..area.height {
        pen.line(area, row, &blank, Style::reset());
    }
    pen.title(area, "keys", true);
    for (row, text) in (1..).zip(HELP) {
        pen.line(area, row, text, Style::new());
    }
}
