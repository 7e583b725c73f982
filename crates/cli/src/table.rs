//! Plain tables for terminals and pipes: aligned columns, two spaces apart, nothing else.
//!
//! On a pipe a table is as wide as it needs to be. On a terminal it is made to fit: cells with a short form use it,
//! then less important columns are left out, then the widest cells are cut.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use aec_base::problem::Problem;
use aec_base::text::{one_of, printable};
use clap::Args;
use unicode_width::UnicodeWidthStr as _;

use crate::failure::Failure;
use crate::output::HEADER;
use crate::progress::text::cut;

/// Columns between two cells.
const GAP: usize = 2;

/// Cells are not cut to less than this.
const NARROWEST: usize = 8;

/// Columns of the terminal that tables are printed to; 0 if there is no terminal.
static COLUMNS: AtomicUsize = AtomicUsize::new(0);

/// Sets the width of the terminal.
pub(crate) fn set_terminal(columns: Option<usize>) {
    COLUMNS.store(columns.unwrap_or(0), Ordering::Relaxed);
}

/// How a list is shown.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TableArguments {
    /// Show all columns and whole ids, whatever the width
    #[arg(long, conflicts_with = "columns")]
    wide: bool,
    /// Show these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
}

impl TableArguments {
    /// Refuses columns that the table does not have.
    pub(crate) fn check(&self, header: &[&'static str]) -> Result<(), Failure> {
        let unknown = self.columns.iter().find(|name| !header.iter().any(|title| is_named(title, name)));
        let Some(name) = unknown else { return Ok(()) };
        let names: Vec<String> = header.iter().map(|title| title.to_lowercase().replace(' ', "-")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let problem = Problem::error(format!("there is no column `{}`", printable(name)));
        Err(Failure::usage(problem.fix(format!("name some of {}", one_of(&names)))))
    }
}

/// The user types names of columns in lower case, with `-` for a space.
fn is_named(title: &str, name: &str) -> bool {
    title.to_lowercase().replace(' ', "-") == name.to_lowercase().replace(' ', "-")
}

pub(crate) struct Table<'a> {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cow<'a, str>>>,
    short: Vec<(&'static str, Vec<String>)>,
    /// Columns that may be left out, in this order.
    spare: Vec<&'static str>,
    width: Option<usize>,
    chosen: Vec<String>,
    /// Whether the command has `--wide`.
    has_wide: bool,
}

impl<'a> Table<'a> {
    pub(crate) fn new(header: impl Into<Vec<&'static str>>) -> Self {
        let width = Some(COLUMNS.load(Ordering::Relaxed)).filter(|columns| *columns > 0);
        Self {
            header: header.into(),
            rows: Vec::new(),
            short: Vec::new(),
            spare: Vec::new(),
            width,
            chosen: Vec::new(),
            has_wide: false,
        }
    }

    /// Applies the user's choice of columns and width.
    #[must_use]
    pub(crate) fn shown(mut self, arguments: &TableArguments) -> Self {
        self.width = self.width.filter(|_| !arguments.wide);
        self.chosen.clone_from(&arguments.columns);
        self.has_wide = true;
        self
    }

    /// Names columns that may be left out if the terminal is too narrow, in this order.
    #[must_use]
    pub(crate) fn spare(mut self, columns: impl Into<Vec<&'static str>>) -> Self {
        self.spare = columns.into();
        self
    }

    /// Sets short forms for the cells of a column, one for each row, to use on terminals.
    pub(crate) fn shorten(
        &mut self,
        column: &'static str,
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) {
        self.short.push((column, cells.into_iter().map(Into::into).collect()));
    }

    /// Adds a row. Foreign text is made safe here, including line breaks.
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

    pub(crate) fn render(mut self) -> String {
        self.choose();
        let mut hidden = Vec::new();
        if let Some(columns) = self.width {
            self.use_short_forms();
            hidden = self.spare_columns(columns);
            self.cut_cells(columns);
        }
        let widths = self.widths();
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
        if !hidden.is_empty() {
            let more = if self.has_wide { "; --wide shows everything" } else { "" };
            text.push_str(&format!("(no room for {}{more})\n", hidden.join(", ")));
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(column, title): (usize, &&str)| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain([title.width()]).max().unwrap_or(0)
        };
        self.header.iter().enumerate().map(width).collect()
    }

    /// Keeps only the columns that the user named, in that order.
    fn choose(&mut self) {
        if self.chosen.is_empty() {
            return;
        }
        let place = |name: &String| self.header.iter().position(|title| is_named(title, name));
        let places: Vec<usize> = self.chosen.iter().filter_map(place).collect();
        self.header = places.iter().map(|at| self.header[*at]).collect();
        for row in &mut self.rows {
            *row = places.iter().map(|at| row.get(*at).cloned().unwrap_or_default()).collect();
        }
        self.spare.clear();
    }

    fn use_short_forms(&mut self) {
        for (title, cells) in std::mem::take(&mut self.short) {
            let Some(column) = self.header.iter().position(|other| *other == title) else { continue };
            for (row, cell) in self.rows.iter_mut().zip(cells) {
                if let Some(place) = row.get_mut(column) {
                    *place = Cow::Owned(printable(&cell).into_owned());
                }
            }
        }
    }

    /// Leaves out columns until the others fit, and returns those left out.
    fn spare_columns(&mut self, columns: usize) -> Vec<&'static str> {
        let mut gone = Vec::new();
        for title in std::mem::take(&mut self.spare) {
            if total(&self.widths()) <= columns {
                break;
            }
            if let Some(column) = self.header.iter().position(|other| *other == title) {
                self.header.remove(column);
                for row in self.rows.iter_mut().filter(|row| column < row.len()) {
                    row.remove(column);
                }
                gone.push(title);
            }
        }
        gone
    }

    /// Cuts the widest cells until every row fits.
    fn cut_cells(&mut self, columns: usize) {
        let mut widths = self.widths();
        while total(&widths) > columns {
            let least = |column: usize| self.header[column].width().max(NARROWEST);
            let wide = widths.iter_mut().enumerate().filter(|(column, width)| **width > least(*column));
            let Some((_, widest)) = wide.max_by_key(|(_, width)| **width) else { break };
            *widest -= 1;
        }
        for row in &mut self.rows {
            for (cell, width) in row.iter_mut().zip(&widths) {
                if cell.width() > *width {
                    *cell = Cow::Owned(cut(cell, *width));
                }
            }
        }
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn push_row(text: &mut String, cells: &[Cow<'_, str>], widths: &[usize]) {
    let last = cells.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
    for (column, cell) in cells.iter().enumerate().take(last + 1) {
        text.push_str(cell);
        if column < last {
            let width = widths.get(column).copied().unwrap_or(0);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + GAP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: Option<usize>, arguments: &TableArguments) -> String {
        let mut table = Table::new(["TASK", "REWARD", "MODEL", "TAGS"]).spare(["TAGS", "MODEL"]);
        table.width = width;
        let mut table = table.shown(arguments);
        table.row(["generated/suite/civil/pipes/school-easy-20260524-000", "0.5", "gpt-4.1-mini", "a b c"]);
        table.row(["electrical/voltage-drop", "1.0", "-", ""]);
        table.shorten("TASK", ["pipes/school-easy", "electrical/voltage-drop"]);
        anstream::adapter::strip_str(&table.render()).to_string()
    }

    #[test]
    fn a_table_fits_its_terminal() {
        let wide = table(None, &TableArguments::default());
        assert!(wide.contains("school-easy-20260524-000") && wide.contains("a b c"), "{wide}");
        let some = table(Some(60), &TableArguments::default());
        assert!(some.contains("pipes/school-easy ") && some.contains("gpt-4.1-mini"), "{some}");
        for columns in 20..200 {
            let fits = table(Some(columns), &TableArguments::default());
            let rows: Vec<&str> = fits.lines().filter(|line| !line.starts_with('(')).collect();
            assert_eq!(rows.len(), 3);
            assert!(rows.iter().all(|row| row.width() <= columns), "{columns}: {fits}");
        }
        assert!(table(Some(40), &TableArguments::default()).contains("(no room for TAGS, MODEL"));
        let all = TableArguments { wide: true, columns: Vec::new() };
        assert_eq!(table(Some(40), &all), wide);
    }

    #[test]
    fn named_columns_are_shown_in_their_order() {
        let chosen = TableArguments { wide: false, columns: vec!["reward".to_owned(), "TASK".to_owned()] };
        let text = table(Some(60), &chosen);
        assert!(text.starts_with("REWARD  TASK\n0.5     pipes/school-easy\n"), "{text}");
        assert!(chosen.check(&["TASK", "REWARD"]).is_ok());
        assert!(chosen.check(&["TASK"]).is_err());
    }
}
