//! Writes on a screen, but never outside the given area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::progress::text::{cut, width};

pub(crate) struct Pen<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) color: bool,
}

impl Pen<'_> {
    /// Writes one line of an area, cut at its end.
    pub(crate) fn line(&mut self, area: Rect, row: u16, text: &str, style: Style) {
        let area = area.intersection(self.buffer.area);
        if row < area.height && area.width > 0 {
            let text = cut(text, usize::from(area.width));
            self.buffer.set_stringn(area.x, area.y + row, text, usize::from(area.width), style);
        }
    }

    /// Colours only emphasise what the words already say.
    pub(crate) fn colored(&self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// The rule above an area.
    pub(crate) fn title(&mut self, area: Rect, text: &str, focused: bool) {
        let rule = usize::from(area.width).saturating_sub(width(text) + 4);
        let line = format!("── {text} {}", "─".repeat(rule));
        let style = if focused { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        self.line(area, 0, &line, style);
    }
}
