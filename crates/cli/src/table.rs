//! Plain tables for terminals and pipes: aligned columns, two spaces apart, nothing else.
//!
//! On a pipe a table is as wide as it needs to be. On a terminal it is made to fit: ids become labels, then less
//! important columns are left out, then names are cut and sentences take more lines. Numbers are never cut: if they do
//! not fit even so, every row becomes a block with one line for each cell.

mod layout;
#[cfg(test)]
mod tests;
mod view;

use std::borrow::Cow;

use aec_base::label::{Beginnings, Labels};
use aec_base::text::printable;
use aec_report::label::PageLabels;

use crate::progress::text::wrap;

pub(crate) use view::{TableArguments, paragraph, set_terminal};
use view::{View, column_name};

/// What is done to the cells of a column that are too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Their ends are cut off.
    Cut,
    /// Their beginnings are cut off.
    CutFront,
    /// They take more lines.
    Wrap,
}

pub(crate) struct Table<'a> {
    header: Vec<&'static str>,
    /// Whether the header is shown, or the first cell of each row is its title.
    has_header: bool,
    rows: Vec<Vec<Cow<'a, str>>>,
    short: Vec<(&'static str, Vec<String>)>,
    /// Columns that may be left out, in this order.
    spare: Vec<&'static str>,
    /// Columns that may be narrower than their cells.
    flexible: Vec<(&'static str, Way)>,
    /// Whether the first column is shown even if the user names others.
    keyed: bool,
    view: View,
}

impl<'a> Table<'a> {
    pub(crate) fn new(header: impl Into<Vec<&'static str>>) -> Self {
        Self {
            header: header.into(),
            has_header: true,
            rows: Vec::new(),
            short: Vec::new(),
            spare: Vec::new(),
            flexible: Vec::new(),
            keyed: false,
            view: View::current(),
        }
    }

    /// A table of two columns without a header: each row is a title and what it says.
    pub(crate) fn facts() -> Self {
        let mut table = Self::new(["", "VALUE"]).wrap(["VALUE"]);
        table.has_header = false;
        table.view.columns.clear();
        table
    }

    /// Names columns that may be left out if the terminal is too narrow, in this order.
    #[must_use]
    pub(crate) fn spare(mut self, columns: impl Into<Vec<&'static str>>) -> Self {
        self.spare = columns.into();
        self
    }

    /// Names columns whose cells may lose their ends.
    #[must_use]
    pub(crate) fn cut<const N: usize>(mut self, columns: [&'static str; N]) -> Self {
        self.flexible.extend(columns.map(|column| (column, Way::Cut)));
        self
    }

    /// Names columns whose cells may lose their beginnings, such as ids and paths, whose ends differ.
    #[must_use]
    pub(crate) fn cut_front<const N: usize>(mut self, columns: [&'static str; N]) -> Self {
        self.flexible.extend(columns.map(|column| (column, Way::CutFront)));
        self
    }

    /// Names columns whose cells may take several lines.
    #[must_use]
    pub(crate) fn wrap<const N: usize>(mut self, columns: [&'static str; N]) -> Self {
        self.flexible.extend(columns.map(|column| (column, Way::Wrap)));
        self
    }

    /// Shows the first column even if the user names others: without it nobody knows what a row is about.
    #[must_use]
    pub(crate) fn keyed(mut self) -> Self {
        self.keyed = true;
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

    /// On terminals, labels replace the ids of tasks in a column.
    pub(crate) fn label_tasks(&mut self, column: &'static str) {
        // Ids may be written with dots instead of slashes, as in datasets.
        let ids: Vec<Cow<'_, str>> = self
            .cells(column)
            .map(|id| if id.contains('/') { Cow::Borrowed(id) } else { Cow::Owned(id.replace('.', "/")) })
            .collect();
        let labels = Labels::of(ids.iter().map(AsRef::as_ref));
        let short: Vec<String> = ids.iter().map(|id| labels.get(id).to_owned()).collect();
        self.shorten(column, short);
    }

    /// On terminals, beginnings replace the ids of trials, or of records as EXPERIMENT/TRIAL, in a column.
    pub(crate) fn label_trials(&mut self, column: &'static str) {
        let trials: Vec<&str> =
            self.cells(column).map(|id| id.split_once('/').map_or(id, |(_, trial)| trial)).collect();
        let labels = Beginnings::of(trials.iter().copied());
        let short: Vec<String> = trials.iter().map(|id| labels.get(id).to_owned()).collect();
        self.shorten(column, short);
    }

    /// On terminals, families that are named after their only task get the label of that task.
    pub(crate) fn label_families(&mut self, column: &'static str) {
        let labels = PageLabels::of_families(self.cells(column));
        let short: Vec<String> =
            self.cells(column).map(|family| labels.family(family).into_owned()).collect();
        self.shorten(column, short);
    }

    fn cells(&self, column: &str) -> impl Iterator<Item = &str> {
        let at = self.header.iter().position(|title| *title == column);
        self.rows.iter().map(move |row| at.and_then(|at| row.get(at)).map_or("", AsRef::as_ref))
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
        let asked = self.asked();
        let Some(most) = self.view.most() else {
            return self.lines(&asked, &self.natural(&asked));
        };
        self.use_short_forms();
        let kept = self.kept(&asked, most);
        let Some(widths) = self.widths(&kept, most) else { return self.blocks(&asked, most) };
        let mut text = self.lines(&kept, &widths);
        let hidden: Vec<&str> =
            asked.iter().filter(|column| !kept.contains(column)).map(|column| self.header[*column]).collect();
        if !hidden.is_empty() {
            let more = if self.view.has_wide() { "; --wide shows everything" } else { "" };
            let hint = format!("(no room for {}{more})", hidden.join(", "));
            for line in wrap(&hint, most) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }

    /// The columns that the user named, in that order; all columns if the table has none of them.
    fn asked(&self) -> Vec<usize> {
        let place =
            |name: &String| self.header.iter().position(|title| column_name(title) == column_name(name));
        let mut asked: Vec<usize> = self.view.columns.iter().filter_map(place).collect();
        if asked.is_empty() {
            return (0..self.header.len()).collect();
        }
        if self.keyed && !asked.contains(&0) {
            asked.insert(0, 0);
        }
        asked
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
}
