//! Which columns of a table are shown, how wide they are, and the lines that result.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use super::{Table, Way};
use crate::output::{HEADER, STRONG};
use crate::progress::text::{cut, cut_front, wrap};

/// Columns between two cells.
const GAP: usize = 2;

/// Flexible columns do not get narrower than this.
const NARROWEST: usize = 8;

/// Flexible columns get narrower than this only if no other column can be left out.
const COMFORTABLE: usize = 24;

/// Columns that take several lines have room for their words, unless these are longer.
const LONGEST_WORD: usize = 32;

impl Table<'_> {
    /// The columns that are left if as many as necessary are left out.
    pub(super) fn kept(&self, asked: &[usize], most: usize) -> Vec<usize> {
        let mut kept = asked.to_vec();
        if !self.view.columns.is_empty() {
            return kept;
        }
        // Columns that say nothing go first.
        let (empty, full): (Vec<&str>, Vec<&str>) = self.spare.iter().copied().partition(|title| {
            self.place(title).is_some_and(|column| self.rows.iter().all(|row| is_nothing(cell(row, column))))
        });
        for title in empty.into_iter().chain(full) {
            let needed: Vec<usize> = kept.iter().map(|column| self.comfortable(*column)).collect();
            if total(&needed) <= most {
                break;
            }
            kept.retain(|column| self.header[*column] != title);
        }
        kept
    }

    /// The widths of columns so that every row fits; `None` if there are none without cutting what must not be cut.
    pub(super) fn widths(&self, columns: &[usize], most: usize) -> Option<Vec<usize>> {
        let mut widths = self.natural(columns);
        while total(&widths) > most {
            let flexible = (0..columns.len())
                .filter(|at| widths[*at] > self.least(columns[*at]))
                // What takes more lines loses nothing, so it gives way first.
                .max_by_key(|at| {
                    let wraps = self.way(columns[*at]) == Some(Way::Wrap) && widths[*at] > COMFORTABLE;
                    (wraps, widths[*at])
                })?;
            widths[flexible] -= 1;
        }
        Some(widths)
    }

    /// The widths at which nothing is cut.
    pub(super) fn natural(&self, columns: &[usize]) -> Vec<usize> {
        columns.iter().map(|column| self.natural_width(*column)).collect()
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| cell(row, column).width());
        cells.chain([self.title_width(column)]).max().unwrap_or(0)
    }

    fn title_width(&self, column: usize) -> usize {
        if self.has_header { self.header[column].width() } else { 0 }
    }

    /// The width to which a column is narrowed while other columns can still be left out. What is left of an id is
    /// of no use in other commands, so ids are not narrowed.
    fn comfortable(&self, column: usize) -> usize {
        match self.way(column) {
            Some(Way::Cut | Way::Wrap) => self.least(column).max(self.natural_width(column).min(COMFORTABLE)),
            Some(Way::CutFront) | None => self.natural_width(column),
        }
    }

    /// The least width of a column.
    fn least(&self, column: usize) -> usize {
        let natural = self.natural_width(column);
        let least = NARROWEST.max(self.title_width(column));
        match self.way(column) {
            Some(Way::Cut | Way::CutFront) => natural.min(least),
            Some(Way::Wrap) => {
                let words = self.rows.iter().flat_map(|row| cell(row, column).split(' '));
                let longest = words.map(UnicodeWidthStr::width).max().unwrap_or(0);
                natural.min(least.max(longest.min(LONGEST_WORD)))
            }
            None => natural,
        }
    }

    fn way(&self, column: usize) -> Option<Way> {
        let named = self.flexible.iter().find(|(title, _)| *title == self.header[column]);
        named.map(|(_, way)| *way)
    }

    pub(super) fn lines(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut text = String::new();
        if self.has_header {
            let titles: Vec<&str> = columns.iter().map(|column| self.header[*column]).collect();
            text.push_str(&HEADER.render().to_string());
            push_line(&mut text, &titles, widths);
            text.push_str(&HEADER.render_reset().to_string());
            text.push('\n');
        }
        for row in &self.rows {
            let part = |(column, width): (&usize, &usize)| {
                parts(cell(row, *column), self.way(*column).unwrap_or(Way::Cut), *width)
            };
            let cells: Vec<Vec<Cow<'_, str>>> = columns.iter().zip(widths).map(part).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let pieces: Vec<&str> =
                    cells.iter().map(|cell| cell.get(line).map_or("", AsRef::as_ref)).collect();
                self.push_row(&mut text, &pieces, widths);
                text.push('\n');
            }
        }
        text
    }

    fn push_row(&self, text: &mut String, pieces: &[&str], widths: &[usize]) {
        match (pieces, widths) {
            ([title, says @ ..], [width, others @ ..]) if !self.has_header => {
                let missing = " ".repeat(width.saturating_sub(title.width()));
                text.push_str(&format!("{STRONG}{title}{missing}{STRONG:#}{}", " ".repeat(GAP)));
                push_line(text, says, others);
            }
            _ => push_line(text, pieces, widths),
        }
    }

    /// Every row as a block of lines, one for each cell.
    pub(super) fn blocks(&self, columns: &[usize], most: usize) -> String {
        let titles = columns.iter().map(|column| self.header[*column].width()).max().unwrap_or(0);
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            for column in columns {
                let title = self.header[*column];
                let room = most.saturating_sub(titles + GAP);
                for (line, piece) in wrap(cell(row, *column), room).iter().enumerate() {
                    let title = if line == 0 { title } else { "" };
                    let missing = " ".repeat(titles.saturating_sub(title.width()) + GAP);
                    text.push_str(&format!("{HEADER}{title}{HEADER:#}{missing}{piece}\n"));
                }
            }
        }
        text
    }

    pub(super) fn place(&self, title: &str) -> Option<usize> {
        self.header.iter().position(|other| *other == title)
    }
}

fn cell<'c>(row: &'c [Cow<'_, str>], column: usize) -> &'c str {
    row.get(column).map_or("", AsRef::as_ref)
}

/// Whether a cell tells nothing that its absence would not tell.
fn is_nothing(cell: &str) -> bool {
    matches!(cell, "" | "-" | "—" | "0" | "none" | "unpriced")
}

/// The lines of a cell in a column of this width.
fn parts(cell: &str, way: Way, width: usize) -> Vec<Cow<'_, str>> {
    match way {
        _ if cell.width() <= width => vec![Cow::Borrowed(cell)],
        Way::Cut => vec![Cow::Owned(cut(cell, width))],
        Way::CutFront => vec![Cow::Owned(cut_front(cell, width))],
        Way::Wrap => wrap(cell, width).into_iter().map(Cow::Owned).collect(),
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn push_line(text: &mut String, cells: &[&str], widths: &[usize]) {
    let last = cells.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
    for (column, cell) in cells.iter().enumerate().take(last + 1) {
        text.push_str(cell);
        if column < last {
            let width = widths.get(column).copied().unwrap_or(0);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + GAP));
        }
    }
}
