//! The model's instructions, derived from the actual setup, so that they never mention a function that does not exist.

use aec_rlm::report::Status;
use aec_task::long_documents::settings::RlmSettings;

use super::given::Given;
use super::session::{Cell, Setup, Variable};
use crate::harness::tools::cut_text;

/// Bytes of the names of new variables.
const NAMED: usize = 2000;

/// How a model passes its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// As a call of the tool `repl`.
    Tool,
    /// As a fenced block.
    Text,
}

impl Surface {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Text => "text",
        }
    }
}

/// The functions of a session, one per line.
pub(super) fn functions(setup: &Setup) -> String {
    let mut lines = vec![
        (
            "FINAL(value=None)",
            "ends the work; a value is the answer, unless the output file was written".to_owned(),
        ),
        ("FINAL_VAR(name)", "the same with a variable".to_owned()),
        ("SHOW_VARS()", "the variables of this session".to_owned()),
        ("NOTE(key, value), RECALL(key=None)", "notes that nothing makes you forget".to_owned()),
        ("grep(text, pattern, context=3)", "matching lines of a text, as a text".to_owned()),
        ("parallel(callables)", "calls several functions at once; failures are ParallelError".to_owned()),
        ("HELP()", "this list".to_owned()),
    ]
    .into_iter()
    .map(|(name, about)| format!("{name}: {about}"))
    .collect::<Vec<_>>();
    for call in &setup.subcalls {
        lines.push(format!(
            "{}({}): asks a model for {}",
            call.name,
            call.parameters.join(", "),
            call.description
        ));
    }
    for custom in &setup.custom {
        let about =
            if custom.description.is_empty() { "a function of this task" } else { &custom.description };
        lines.push(format!("{}(…): {about}", custom.name));
    }
    if !setup.subcalls.is_empty() {
        lines.push("SUBCALL_LOG: the sub-calls so far, .all(), .last(n), .by_type(name)".to_owned());
    }
    if setup.report {
        lines.push(
            "report: .get_status(), .get_section(id), .get_writing_guidance(id), .fill_section(id, text), .submit()"
                .to_owned(),
        );
        lines.push(
            "fill_parallel(generator, section_ids=None): fills open sections with generator(id)".to_owned(),
        );
    }
    if setup.advisor {
        lines.push(
            "ADVISOR(goal=, problem=, attempt=None): advice of another model; its uses are few".to_owned(),
        );
    }
    lines.join("\n")
}

/// The system prompt.
pub(super) fn system(
    own: Option<&str>,
    output_path: &str,
    surface: Surface,
    given: &Given,
    setup: &Setup,
) -> String {
    let settings = &given.settings;
    let mut parts = Vec::new();
    parts.extend(own.map(|own| own.trim_end().to_owned()));
    let how = match surface {
        Surface::Tool => "Call the tool `repl` with Python code.",
        Surface::Text => {
            "Write one fenced block with the info string `repl`; only the first block of a reply is run."
        }
    };
    parts.push(format!(
        "You work through a Python session that keeps its variables. {how} You see the beginning and the end of what a \
         cell prints; keep long texts in variables and look into them with code instead of printing them. The \
         conversation may be shortened on the way, variables and notes stay. The files of the task are in /workspace. \
         Your output belongs into {output_path}; write that file from Python, or end with FINAL(value). Only a call of \
         FINAL or FINAL_VAR ends the work. You have {} turns.",
        settings.guardrails.max_iterations
    ));
    parts.push(format!("Functions of the session:\n{}", bullets(functions(setup).lines())));
    if !given.inputs.is_empty() {
        let lines = given.inputs.iter().map(|input| {
            let about = settings.inputs.get(&input.name).map_or("", |input| input.description.as_str());
            format!(
                "{} ({}, from {}){}{about}",
                input.name,
                input.kind,
                input.path,
                if about.is_empty() { "" } else { ": " }
            )
        });
        parts.push(format!("Variables that are there already:\n{}", bullets(lines)));
    }
    if let Some(report) = &given.report {
        let status = report.status();
        parts.push(format!(
            "The output is a report of {} sections: fill each with report.fill_section, then call report.submit() and \
             FINAL(). Open now: {}.",
            status.total,
            status.unlocked.join(", ")
        ));
    }
    if !settings.hints.phases.is_empty() {
        parts.push(format!("A way to go about it:\n{}", bullets(&settings.hints.phases)));
    }
    if !settings.hints.prohibited.is_empty() {
        parts.push(format!("You must not:\n{}", bullets(&settings.hints.prohibited)));
    }
    parts.join("\n\n")
}

fn bullets<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> String {
    lines.into_iter().map(|line| format!("- {}", line.as_ref())).collect::<Vec<_>>().join("\n")
}

/// What the model reads of a cell besides its output: errors, changed variables, progress. Long texts are cut to `most`
/// bytes.
pub(super) fn observed(shown: &str, cell: &Cell, before: &[Variable], most: usize) -> String {
    let mut text = shown.trim_end().to_owned();
    if let Some(error) = &cell.error {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&cut_text(error.text.trim_end(), most));
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if cell.lost {
        text.push_str("\n[A new session was started: all variables are gone, notes are not.]");
        return text;
    }
    let named = |variables: &[Variable], others: &[Variable]| {
        let new: Vec<String> = variables
            .iter()
            .filter(|one| others.iter().all(|other| other.name != one.name))
            .map(|one| format!("{} ({}{})", one.name, one.r#type, one.size))
            .collect();
        cut_text(&new.join(", "), NAMED)
    };
    let (new, gone) = (named(&cell.variables, before), named(before, &cell.variables));
    if !new.is_empty() {
        text.push_str(&format!("\n[new: {new}]"));
    }
    if !gone.is_empty() {
        text.push_str(&format!("\n[gone: {gone}]"));
    }
    text
}

/// A line on the progress of the report; more than a line when there is none.
pub(super) fn footer(settings: &RlmSettings, status: Option<&Status>, idle_turns: u32) -> Option<String> {
    const GENTLE: u32 = 10;
    const STRONG: u32 = 20;
    if !settings.execution.scaffolding {
        return None;
    }
    let status = status?;
    let (filled, total) = (status.completed.len(), status.total);
    let next = status.unlocked.first().map(|id| format!(", `{id}` is open")).unwrap_or_default();
    Some(match idle_turns {
        STRONG.. if filled < total => {
            format!(
                "[{filled} of {total} sections are filled, none for {idle_turns} turns{next}. Stop gathering and write.]"
            )
        }
        GENTLE.. if filled < total => {
            format!("[{filled} of {total} sections are filled{next}. What you know may be enough for it.]")
        }
        _ => format!("[{filled} of {total} sections are filled{next}]"),
    })
}
