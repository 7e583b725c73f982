//! `aec-bench ledger annotate`.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_ledger::annotate::{Annotation, Annotations, Judgment, SCHEMA_VERSION};
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{find, open, shorten};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger annotate reference/ --judgment pass --reviewer mia\n  \
                        aec-bench ledger annotate reference/ --judgment fail --category units\n  \
                        aec-bench ledger annotate reference/ --list")]
pub(crate) struct LedgerAnnotateArguments {
    /// Record: TRIAL or EXPERIMENT/TRIAL, or its unique beginning; TRIAL.2 is the second attempt
    #[arg(value_name = "TRIAL")]
    pub(crate) id: String,
    /// Your judgment of the answer
    #[arg(long, value_name = "JUDGMENT", value_parser = ["pass", "fail", "defer"], required_unless_present = "list")]
    pub(crate) judgment: Option<String>,
    /// Kind of mistake, in your own words
    #[arg(long, value_name = "WORD")]
    pub(crate) category: Vec<String>,
    /// Anything else you want to note
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Your name or id
    #[arg(long, value_name = "ID")]
    pub(crate) reviewer: Option<String>,
    /// Your discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) discipline: Option<String>,
    /// Show existing annotations and add none
    #[arg(long, conflicts_with_all = ["judgment", "category", "note", "reviewer", "discipline"])]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

/// Longest word and longest note, in characters.
const LONGEST_WORD: usize = 200;
const LONGEST_NOTE: usize = 100_000;

#[derive(Serialize)]
struct Data {
    id: String,
    file: PathBuf,
    annotations: Vec<Annotation>,
}

pub(crate) fn annotate(context: &Context, arguments: &LedgerAnnotateArguments) -> Result<Outcome, Failure> {
    check(arguments)?;
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let row = find(&project, &ledger, &arguments.id)?;
    let file = row.file();
    // Reads the record from its file, because the index may be out of date.
    let digest = file.read(&ledger).map_err(|broken| broken.problem)?.digest;
    let annotations = Annotations::new(&project.settings.path(Setting::Feedback));
    if let Some(judgment) = judgment(arguments) {
        let redactor = context.redactor();
        let said = |text: &String| redactor.scrub(text.clone());
        let annotation = Annotation {
            schema_version: SCHEMA_VERSION,
            reviewer_id: arguments.reviewer.as_ref().map(said),
            reviewer_discipline: arguments.discipline.as_ref().map(said),
            timestamp: context.created_at()?,
            judgment,
            categories: arguments.category.iter().map(said).collect(),
            notes: arguments.note.as_ref().map(said),
            record: digest,
        };
        annotations.append(&file, &annotation)?;
    }
    let (found, mut problems) = annotations.read(&file);
    shorten(&project, &mut problems);
    let place = annotations.path(&file);
    let data = Data { id: file.id(), file: project.shown(&place).to_path_buf(), annotations: found };
    let outcome = Outcome::new(context.format, &data, || {
        if arguments.list { annotations_text(&data.annotations, digest) } else { String::new() }
    })?;
    let outcome = if !arguments.list {
        outcome.remark(format!("Annotated {} in {}.", data.id, data.file.display()))
    } else if data.annotations.is_empty() {
        outcome.remark(format!("{} has no annotations.", data.id))
    } else {
        outcome
    };
    Ok(outcome.problems(problems))
}

fn judgment(arguments: &LedgerAnnotateArguments) -> Option<Judgment> {
    // The argument parser has checked the word, and that it is present unless the annotations are only listed.
    [Judgment::Pass, Judgment::Fail, Judgment::Defer]
        .into_iter()
        .find(|judgment| arguments.judgment.as_deref() == Some(judgment.name()))
}

fn check(arguments: &LedgerAnnotateArguments) -> Result<(), Failure> {
    let words = arguments.category.iter().chain(&arguments.reviewer).chain(&arguments.discipline);
    for word in words {
        if word.trim().is_empty() || word.chars().count() > LONGEST_WORD || word.chars().any(char::is_control)
        {
            let problem = Problem::error(format!("`{}` is not a word for an annotation", printable(word)));
            let problem = problem
                .why(format!("it is empty, longer than {LONGEST_WORD} characters or has control characters"));
            return Err(Failure::usage(problem.fix("write a short word; --note takes longer texts")));
        }
    }
    if arguments.note.as_ref().is_some_and(|note| note.chars().count() > LONGEST_NOTE) {
        let problem = Problem::error(format!("the note is longer than {LONGEST_NOTE} characters"));
        return Err(Failure::usage(problem.fix("put it into a file and name the file")));
    }
    Ok(())
}

/// Annotations as text. An annotation made on another version of the record is marked as such.
pub(crate) fn annotations_text(annotations: &[Annotation], record: Digest) -> String {
    let mut shown = String::new();
    for annotation in annotations {
        let who = annotation.reviewer_id.as_deref().unwrap_or("an unnamed reviewer");
        let discipline =
            annotation.reviewer_discipline.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        let categories = match annotation.categories.as_slice() {
            [] => String::new(),
            categories => format!(" [{}]", categories.join(", ")),
        };
        let stale = if annotation.record == record { "" } else { ", on another version of the record" };
        let line = format!(
            "{} {} by {who}{discipline}{categories}{stale}",
            annotation.timestamp,
            annotation.judgment.name()
        );
        shown.push_str(&format!("{}\n", printable(&line).replace('\n', " ")));
        for line in annotation.notes.iter().flat_map(|notes| notes.lines()) {
            shown.push_str(&format!("  {}\n", printable(line)));
        }
    }
    shown
}
