//! Plain tables for terminals and pipes: aligned columns, two spaces apart, nothing else.

use std::borrow::Cow;

use aec_base::text::printable;
use unicode_width::UnicodeWidthStr as _;

use crate::output::HEADER;

/// Rows of text under a header.
pub(crate) struct Table<'a> {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cow<'a, str>>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(header: impl Into<Vec<&'static str>>) -> Self {
        Self { header: header.into(), rows: Vec::new() }
    }

    /// Adds a row. Foreign text is made safe here, line breaks included.
    pub(crate) fn row<C: Into<Cow<'a, str>>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let safe = |cell: C| match cell.into() {
            Cow::Borrowed(text) => printable(text),
            Cow::Owned(text) => Cow::Owned(printable(&text).into_owned()),
        };
        let one_line = |cell: Cow<'a, str>| {
            if cell.contains(['\n', '\t']) { Cow::Owned(cell.replace(['\n', '\t'], " ")) } else { cell }
        };
        self.rows.push(cells.into_iter().map(safe).map(one_line).collect());
    }

    pub(crate) fn render(&self) -> String {
        let widths: Vec<usize> = self
            .header
            .iter()
            .enumerate()
            .map(|(column, title)| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
                cells.chain([title.width()]).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        let titles: Vec<Cow<'_, str>> = self.header.iter().map(|title| Cow::Borrowed(*title)).collect();
        text.push_str(&HEADER.render().to_string());
        push_row(&mut text, &titles, &widths);
        text.push_str(&HEADER.render_reset().to_string());
        text.push('\n');
        for row in &self.rows {
            push_row(&mut text, row, &widths);
            text.push('\n');
        }
        text
    }
}

fn push_row(text: &mut String, cells: &[Cow<'_, str>], widths: &[usize]) {
    let last = cells.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
    for (column, cell) in cells.iter().enumerate().take(last + 1) {
        text.push_str(cell);
        if column < last {
            let width = widths.get(column).copied().unwrap_or(0);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + 2));
        }
    }
}
