//! `aec-bench ledger export`.

use std::io::{self, Write};
use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::text;
use aec_ledger::FAMILY;
use aec_ledger::export::{self, Chosen, Existing, ExportError, Exported, Format};
use aec_ledger::index::{Attempts, Index};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{RecordFilterArguments, ask_filtered, open, shorten, withheld};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Outcome};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger export --output trials.csv\n  \
                        aec-bench ledger export -e pilot --latest-attempts --output pilot.parquet")]
pub(crate) struct LedgerExportArguments {
    /// File to write; `-` is stdout, for jsonl and csv
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Format [default: by the file's extension]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::NAMES))]
    pub(crate) format: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Only the latest attempt at each trial, instead of all attempts
    #[arg(long)]
    pub(crate) latest_attempts: bool,
    #[command(flatten)]
    pub(crate) filter: RecordFilterArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Serialize)]
struct Data {
    format: Format,
    file: PathBuf,
    #[serde(flatten)]
    exported: Exported,
}

pub(crate) fn export(context: &Context, arguments: &LedgerExportArguments) -> Result<Outcome, Failure> {
    let to_stdout = arguments.output.as_os_str() == "-";
    let format = format(arguments)?;
    if to_stdout && (format == Format::Parquet || context.format == output::Format::Json) {
        let what = if format == Format::Parquet { "Parquet" } else { "the envelope of --json" };
        let problem = Problem::error(format!("stdout cannot carry the records beside {what}"));
        return Err(Failure::usage(problem.fix("name a file with --output")));
    }
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let attempts = if arguments.latest_attempts { Attempts::Latest } else { Attempts::All };
    let filter = arguments.filter.filter(&ledger, attempts)?;
    let (files, mut problems) = ask_filtered(&project, &ledger, &filter, Index::files)?;
    let withheld = withheld(&ledger, &filter)?;
    let chosen = Chosen { files: &files, withheld: &withheld };
    let exported = if to_stdout {
        let lines = ScrubbedLines { to: io::stdout(), redactor: context.redactor(), line: Vec::new() };
        match export::export(&ledger, chosen, format, lines) {
            // A reader that closed the pipe, as `| head` does, has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exported::default(),
            exported => exported?,
        }
    } else {
        let existing = if arguments.force { Existing::Replace } else { Existing::Keep };
        let path = context.absolute(&arguments.output)?;
        export::export_to(&ledger, chosen, format, &path, existing)?
    };
    // Broken records that the index has reported already are not reported again.
    let mut found = exported.problems.clone();
    shorten(&project, &mut found);
    found.retain(|problem| !problems.contains(problem));
    problems.extend(found);
    let data = Data { format, file: arguments.output.clone(), exported };
    let outcome = Outcome::new(context.format, &data, String::new)?.problems(problems);
    if to_stdout {
        return Ok(outcome);
    }
    let records = text::count(data.exported.records, "record");
    let shown = data.file.to_string_lossy();
    let outcome = outcome.remark(format!("Wrote {records} to {}.", text::printable(&shown)));
    Ok(match data.exported.withheld {
        0 => outcome,
        count => {
            outcome.remark(format!("{} withheld; the file has a row for each.", text::count(count, "trial")))
        }
    })
}

fn format(arguments: &LedgerExportArguments) -> Result<Format, Failure> {
    let ending = arguments.output.extension().and_then(|ending| ending.to_str());
    let named = arguments.format.as_deref().or(ending).and_then(Format::parse);
    named.ok_or_else(|| {
        let problem = Problem::error("the name of the output does not say its format");
        Failure::usage(problem.fix("pass --format jsonl, csv or parquet"))
    })
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Exists(_) => {
                let problem = Problem::error(error.to_string()).id(FAMILY.number(40));
                problem.fix("name another file, or pass --force").into()
            }
            ExportError::Io(error) => error.into(),
        }
    }
}

/// Removes secrets from what is printed, line by line.
struct ScrubbedLines<W> {
    to: W,
    redactor: Redactor,
    line: Vec<u8>,
}

impl<W: Write> Write for ScrubbedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = String::from_utf8_lossy(&self.line).into_owned();
            self.to.write_all(self.redactor.scrub(lines).as_bytes())?;
            self.line = rest;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        self.to.write_all(self.redactor.scrub(rest).as_bytes())?;
        self.to.flush()
    }
}
