//! The report as one HTML file: it opens from disk, loads nothing, and has the same bytes for the same [`Document`].
//!
//! The page contains its data as packed JSON, which its script unpacks; the HTML itself contains a summary. The table
//! of all trials with their fields is always complete. Traces are included as far as the [`Budget`] allows, in the
//! order of [`trace_order`], and the page tells what is missing. Everything that agents, tasks and verifiers wrote is
//! untrusted: it reaches the page only as text, under a policy that runs only the page's own script.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::Serialize;

mod assets;
mod choose;
mod document;
mod pack;
mod page;
mod table;
mod text;
mod traces;

pub use assets::{DOM_SCRIPT, STYLE, TRACE_SCRIPT};
pub use choose::{ResultClass, trace_order, wanted_traces};
pub use document::{
    Agent, Comparison, ComparisonRow, Curve, Document, Experiment, Field, Group, GroupKind, Task, Trace,
    TraceEntry, Trial,
};
pub use text::{clip, escape, thousands};

use page::Page;
use table::Table;
use traces::{Chunk, Packer};

#[derive(Clone, Debug)]
pub struct Budget {
    /// Of the whole file.
    pub bytes: usize,
    /// Characters of one text in a trace; a longer one keeps its head and tail.
    pub text: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 5_000_000, text: 20_000 }
    }
}

#[derive(Clone, Debug)]
pub struct Rendered {
    pub html: String,
    pub omitted: Omitted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Traces that it contains.
    pub kept: usize,
    /// Traces that it leaves out.
    pub traces: usize,
    /// By agent and result.
    pub classes: Vec<OmittedClass>,
    /// Texts in traces that were shortened.
    pub shortened: usize,
    /// Prompts that were left out because the table would not have fitted.
    pub prompts: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OmittedClass {
    /// Index in the document.
    pub agent: usize,
    pub result: ResultClass,
    /// Traces that the report contains.
    pub kept: usize,
    /// Traces that it leaves out.
    pub omitted: usize,
}

#[derive(Debug)]
pub enum HtmlError {
    /// The table of all trials is larger than the budget.
    TooLarge {
        trials: usize,
        /// Bytes of the page without any trace.
        needed: usize,
        budget: usize,
    },
    /// A trial, trace or group refers to something that the document does not contain.
    Dangling {
        from: String,
        to: String,
    },
    /// The document contains the same attempt, or the trace of the same trial, twice.
    Duplicate(String),
    Json(serde_json::Error),
    Compress(std::io::Error),
}

impl fmt::Display for HtmlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { trials, needed, budget } => write!(
                formatter,
                "the table of {} trials takes {} and the report may take {}: allow a larger file, or report fewer \
                 experiments or agents at a time",
                thousands(*trials as u64),
                text::megabytes(*needed),
                text::megabytes(*budget)
            ),
            Self::Dangling { from, to } => {
                write!(formatter, "{from} names {to}, which the report does not have")
            }
            Self::Duplicate(what) => write!(formatter, "{what} is there twice"),
            Self::Json(error) => write!(formatter, "the report's data cannot be written: {error}"),
            Self::Compress(error) => write!(formatter, "the report's data cannot be compressed: {error}"),
        }
    }
}

impl std::error::Error for HtmlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::Compress(error) => Some(error),
            _ => None,
        }
    }
}

/// Makes the page. It is never larger than the budget.
pub fn render(document: &Document, budget: &Budget) -> Result<Rendered, HtmlError> {
    check(document)?;
    let order = trace_order(document);
    let mut table = Table::new(document);
    let mut packed = pack::pack(&table)?;
    let mut prompts = 0;
    // The sizes of the index and of the counts of omitted traces are not known yet. They are below this.
    let margin = 200;
    let size = |packed: &str, prompts: usize| {
        let omitted = Omitted { prompts, shortened: usize::MAX, ..count(document, &order, &[]) };
        Page { document, table: packed, index: "", chunks: &[], omitted: &omitted }.render().len() + margin
    };
    let mut needed = size(&packed, prompts);
    if needed > budget.bytes {
        prompts = table.drop_prompts();
        packed = pack::pack(&table)?;
        needed = size(&packed, prompts);
    }
    let room = budget.bytes.checked_sub(needed).ok_or(HtmlError::TooLarge {
        trials: document.trials.len(),
        needed,
        budget: budget.bytes,
    })?;
    let given: HashMap<usize, &Trace> = document.traces.iter().map(|trace| (trace.trial, trace)).collect();
    let traces: Vec<&Trace> = order.iter().filter_map(|place| given.get(place).copied()).collect();
    let packer = Packer { document, text: budget.text, prompts: prompts == 0 };
    let mut chunks = packer.pack(&traces, room)?;
    loop {
        let omitted = Omitted { prompts, ..count(document, &order, &chunks) };
        let index = pack::pack(&chunks.iter().map(|chunk| &chunk.trials).collect::<Vec<_>>())?;
        let page = Page { document, table: &packed, index: &index, chunks: &chunks, omitted: &omitted };
        let html = page.render();
        // The size of the index was an estimate.
        if html.len() <= budget.bytes || chunks.pop().is_none() {
            return Ok(Rendered { html, omitted });
        }
    }
}

fn count(document: &Document, order: &[usize], chunks: &[Chunk]) -> Omitted {
    let kept: HashSet<usize> = chunks.iter().flat_map(|chunk| chunk.trials.iter().copied()).collect();
    let mut classes: BTreeMap<(usize, ResultClass), (usize, usize)> = BTreeMap::new();
    for place in order {
        let trial = &document.trials[*place];
        let class = classes.entry((trial.agent, ResultClass::of(trial, document.pass_reward))).or_default();
        if kept.contains(place) {
            class.0 += 1;
        } else {
            class.1 += 1;
        }
    }
    let classes = classes
        .into_iter()
        .map(|((agent, result), (kept, omitted))| OmittedClass { agent, result, kept, omitted })
        .collect();
    Omitted {
        kept: kept.len(),
        traces: order.len() - kept.len(),
        classes,
        shortened: chunks.iter().map(|chunk| chunk.shortened).sum(),
        prompts: 0,
    }
}

/// Checks that all references are valid and nothing occurs twice.
fn check(document: &Document) -> Result<(), HtmlError> {
    let dangling = |from: String, kind: &str, place: usize| {
        Err(HtmlError::Dangling { from, to: format!("{kind} number {place}") })
    };
    let mut seen = HashSet::new();
    for trial in &document.trials {
        let name = || format!("trial {}", trial.id);
        for (kind, place, length) in [
            ("task", trial.task, document.tasks.len()),
            ("agent", trial.agent, document.agents.len()),
            ("experiment", trial.experiment, document.experiments.len()),
        ] {
            if place >= length {
                return dangling(name(), kind, place);
            }
        }
        if !seen.insert((trial.id.as_str(), trial.attempt)) {
            return Err(HtmlError::Duplicate(format!("attempt {} of trial {}", trial.attempt, trial.id)));
        }
    }
    let mut traced = HashSet::new();
    for trace in &document.traces {
        if trace.trial >= document.trials.len() {
            return dangling("a trace".to_owned(), "trial", trace.trial);
        }
        if !traced.insert(trace.trial) {
            return Err(HtmlError::Duplicate(format!(
                "the trace of trial {}",
                document.trials[trace.trial].id
            )));
        }
    }
    for group in &document.groups {
        if let Some(agent) = group.agent.filter(|agent| *agent >= document.agents.len()) {
            return dangling(format!("group {}", group.name), "agent", agent);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
