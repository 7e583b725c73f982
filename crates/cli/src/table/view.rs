//! How the user wants tables to be shown, and on how wide a terminal.
//!
//! Both are facts of the process, as colours are, so that a table deep inside a report need not be told.

use std::sync::{PoisonError, RwLock};

use aec_base::problem::Problem;
use aec_base::text::{one_of, printable};
use clap::Args;
use unicode_width::UnicodeWidthStr as _;

use crate::failure::Failure;
use crate::progress::text::wrap;

static VIEW: RwLock<View> = RwLock::new(View { terminal: None, wide: None, columns: Vec::new() });

#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Columns of the terminal; absent if output goes elsewhere.
    terminal: Option<usize>,
    /// Whether everything is shown whatever the width; absent if the command has no such option.
    wide: Option<bool>,
    /// Titles of the columns that the user named.
    pub(super) columns: Vec<String>,
}

impl View {
    pub(super) fn current() -> Self {
        VIEW.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The width that tables must fit into.
    pub(super) fn most(&self) -> Option<usize> {
        self.terminal.filter(|_| self.wide != Some(true))
    }

    pub(super) fn has_wide(&self) -> bool {
        self.wide.is_some()
    }

    #[cfg(test)]
    pub(super) fn of(terminal: Option<usize>, arguments: &TableArguments) -> Self {
        Self { terminal, wide: Some(arguments.wide), columns: arguments.columns.clone() }
    }
}

/// Sets the width of the terminal.
pub(crate) fn set_terminal(columns: Option<usize>) {
    VIEW.write().unwrap_or_else(PoisonError::into_inner).terminal = columns.filter(|columns| *columns > 0);
}

/// A text with line breaks between words, so that it fits the terminal. Lines that fit stay as they are.
pub(crate) fn paragraph(text: &str) -> String {
    let Some(most) = View::current().most() else { return text.to_owned() };
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if anstream::adapter::strip_str(line.trim_end()).to_string().width() <= most {
            shown.push_str(line);
        } else {
            shown.push_str(&wrap(line, most).join("\n"));
            shown.push_str(if line.ends_with('\n') { "\n" } else { "" });
        }
    }
    shown
}

/// How the tables of a command are shown.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TableArguments {
    /// Show all columns and whole ids, whatever the width
    #[arg(long, conflicts_with = "columns")]
    pub(super) wide: bool,
    /// Show these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) columns: Vec<String>,
}

impl TableArguments {
    /// Applies the user's choice to the tables of the command, which have these headers. Refuses columns that none of
    /// them has.
    pub(crate) fn apply(&self, headers: &[&[&'static str]]) -> Result<(), Failure> {
        self.check(headers)?;
        let mut view = VIEW.write().unwrap_or_else(PoisonError::into_inner);
        view.wide = Some(self.wide);
        view.columns.clone_from(&self.columns);
        Ok(())
    }

    pub(super) fn check(&self, headers: &[&[&'static str]]) -> Result<(), Failure> {
        let mut names: Vec<String> = Vec::new();
        for name in headers.iter().copied().flatten().map(|title| column_name(title)) {
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        let Some(unknown) = self.columns.iter().find(|named| !names.contains(&column_name(named))) else {
            return Ok(());
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let problem = Problem::error(format!("there is no column `{}`", printable(unknown)));
        Err(Failure::usage(problem.fix(format!("name some of {}", one_of(&names)))))
    }
}

/// What the user types for a column: its title in lower case, with `-` for a space.
pub(super) fn column_name(title: &str) -> String {
    title.to_lowercase().replace([' ', '_'], "-")
}
