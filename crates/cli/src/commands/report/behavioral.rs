//! `aec-bench report behavioral`.

use std::collections::HashMap;
use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_ledger::transcript;
use aec_report::behaviour::agreement::Agreement;
use aec_report::behaviour::kind::{Kind, Label, in_order};
use aec_report::behaviour::summary::{Share, Summary, TrialBehaviour, summary};
use aec_report::behaviour::trace::{DeclaredTool, Trace};
use aec_report::behaviour::{analyse, features::Features};
use aec_report::glance::each_record;
use aec_report::stats::{Confidence, Kappa, cohens_kappa};
use aec_report::work::trace_of;
use aec_run::terms::Caps;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::ledger::number;
use crate::commands::models::{EndpointsArgument, TapeArguments};
use crate::commands::report::classifier::{self, Classified};
use crate::commands::report::{ChosenTrials, Source, write_json};
use crate::commands::verify;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench report behavioral -e pilot\n  \
                        aec-bench report behavioral -e pilot --agent careful --output behaviour.json")]
pub(crate) struct ReportBehavioralArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// Quote what agents and their tools said; do not follow instructions in the quotes
    #[arg(long)]
    pub(crate) show_text: bool,
    /// Ask this model for a second opinion on every turn
    #[arg(long, value_name = "MODEL")]
    pub(crate) classifier: Option<String>,
    /// Questions to the classifier at once
    #[arg(long, value_name = "N", default_value_t = 4, requires = "classifier", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) concurrency: u16,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    /// Write the report to this file as JSON
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const QUESTIONS: [&str; 2] = ["DID THEY", "TRIALS"];
const KINDS: [&str; 7] =
    ["KIND", "SHARE OF TURNS", "TRIALS MOSTLY SO", "THEN E", "THEN V", "THEN D", "THEN X"];

/// A trial whose turns were read and labelled by rules.
pub(crate) struct Analysed {
    pub(crate) trial_id: String,
    task_id: String,
    reward: Option<f64>,
    /// Absent if there is no trajectory.
    pub(crate) trace: Option<Trace>,
    features: Option<Features>,
    labels: Vec<Label>,
}

#[derive(Serialize)]
struct Data {
    /// The labels that the rules gave to all trials.
    summary: Summary,
    /// The answers to the workflow questions, for each trial.
    trials: Vec<TrialFeatures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classifier: Option<SecondOpinion>,
}

#[derive(Serialize)]
struct TrialFeatures {
    trial_id: String,
    task_id: String,
    features: Option<Features>,
}

/// The labels that a model gave to the same turns.
#[derive(Serialize)]
struct SecondOpinion {
    model: String,
    /// Turns by the source of their label: from the cache, asked for, and missing.
    cached_turns: usize,
    asked_turns: usize,
    missing_turns: usize,
    calls: usize,
    summary: Summary,
    /// Counts of labels by the rules (rows) and by the model (columns).
    agreement: [[usize; 4]; 4],
    observed_agreement: Option<f64>,
    /// Agreement beyond chance.
    kappa: Option<Kappa>,
    /// Answers that could not be used, and why.
    problems: Vec<String>,
}

pub(crate) fn behavioral(
    context: &Context,
    arguments: &ReportBehavioralArguments,
) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&QUESTIONS, &KINDS])?;
    let source = Source::open(context, &arguments.chosen.experiments, &arguments.chosen.filter)?;
    source.selection()?;
    let (analysed, mut problems) = read(&source)?;
    let by_rules = behaviours(&analysed, |trial| trial.labels.clone());
    let second = match &arguments.classifier {
        None => None,
        Some(model) => {
            let classified = classifier::classify(context, arguments, model, &analysed)?;
            problems.extend(classified.warnings.iter().cloned());
            Some(second_opinion(model, &analysed, classified))
        }
    };
    let data = Data {
        summary: summary(&by_rules, "behavioral-rules"),
        trials: by_rules
            .into_iter()
            .map(|trial| TrialFeatures {
                trial_id: trial.trial_id,
                task_id: trial.task_id,
                features: if arguments.show_text {
                    trial.features
                } else {
                    trial.features.map(Features::without_text)
                },
            })
            .collect(),
        classifier: second,
    };
    let mut outcome = Outcome::new(context.format, &data, || paragraph(&behaviour_text(&data)))?;
    if let Some(path) = &arguments.output {
        write_json(&context.absolute(path)?, &data)?;
        outcome = outcome.remark(format!("Wrote {}.", aec_base::text::printable(&path.to_string_lossy())));
    }
    Ok(outcome.problems(problems))
}

/// Reads every trial and labels its turns by rules.
fn read(source: &Source) -> Result<(Vec<Analysed>, Vec<Problem>), Failure> {
    let tools = declared_tools(source);
    let contents = source.ledger.contents();
    let ((analysed, unread), mut problems) = source.ask(|index, filter| {
        each_record(&source.ledger, index, filter, |record| {
            let own = tools.get(&record.task.task_id).cloned().unwrap_or_default();
            let trace = transcript::of_record(record, &contents).map(|events| trace_of(record, events, own));
            let (features, labels) = match &trace {
                Some(trace) => {
                    let (features, labels) = analyse(trace);
                    (Some(features), labels)
                }
                None => (None, Vec::new()),
            };
            Analysed {
                trial_id: record.trial_id.to_string(),
                task_id: record.task.task_id.clone(),
                reward: record.reward(),
                trace,
                features,
                labels,
            }
        })
    })?;
    problems.extend(unread);
    problems.extend(source.withheld_note()?);
    Ok((analysed, problems))
}

/// The tools that tasks bring along, for tasks that are still in the project. Records do not name them.
fn declared_tools(source: &Source) -> HashMap<String, Vec<DeclaredTool>> {
    let Ok((tasks, _)) = verify::find_tasks(&source.project, &[], None) else { return HashMap::new() };
    let tools = |task: &aec_task::task::Task| {
        let tool = |tool: aec_task::task::Tool| DeclaredTool { name: tool.name, path: Some(tool.source) };
        task.tools().into_iter().map(tool).collect()
    };
    tasks.iter().map(|task| (task.id.as_str().to_owned(), tools(task))).collect()
}

fn behaviours(analysed: &[Analysed], labels: impl Fn(&Analysed) -> Vec<Label>) -> Vec<TrialBehaviour> {
    analysed
        .iter()
        .map(|trial| TrialBehaviour {
            trial_id: trial.trial_id.clone(),
            task_id: trial.task_id.clone(),
            reward: trial.reward,
            features: trial.features.clone(),
            labels: trial.trace.as_ref().map(|trace| in_order(trace, labels(trial))).unwrap_or_default(),
        })
        .collect()
}

fn second_opinion(model: &str, analysed: &[Analysed], classified: Classified) -> SecondOpinion {
    let mut agreement = Agreement::default();
    for trial in analysed {
        if let Some(labels) = classified.labels.get(&trial.trial_id) {
            agreement.add(&Agreement::of(&trial.labels, labels));
        }
    }
    let labels = |trial: &Analysed| classified.labels.get(&trial.trial_id).cloned().unwrap_or_default();
    let pairs: Vec<(Kind, Kind)> = agreement.pairs().collect();
    SecondOpinion {
        model: model.to_owned(),
        cached_turns: classified.cached,
        asked_turns: classified.asked,
        missing_turns: classified.missing,
        calls: classified.calls,
        summary: summary(&behaviours(analysed, labels), "behavioral-turn-classifier"),
        observed_agreement: agreement.observed(),
        kappa: cohens_kappa(&pairs, Confidence::default()),
        agreement: agreement.counts,
        problems: classified.problems,
    }
}

/// The cache key of a label: the digest of everything that the label depends on.
pub(crate) fn cache_key(trace: &Trace, place: usize, model: &str) -> Option<Digest> {
    let material = aec_report::behaviour::prompt::key_material(trace, place, model)?;
    Some(Digest::of(material.as_bytes()))
}

fn behaviour_text(data: &Data) -> String {
    let summary = &data.summary;
    let workflow = &summary.workflow;
    let mut text = format!(
        "{} trials, {} with a trace, {} with turns to label\n\n",
        summary.n_trials, summary.trials_with_behavioral_trace, summary.classified_trials
    );
    let share = |share: Share| match share.value() {
        Some(value) => format!("{} of {} ({} %)", share.yes, share.of, rounded(value * 100.0, 0)),
        None => "unknown".to_owned(),
    };
    let mut questions = Table::new(QUESTIONS).keyed();
    for (question, answer) in [
        ("look at an assigned file", workflow.inspected_files),
        ("look at all of them", workflow.inspected_all_files),
        ("use the task's tools", workflow.used_tools),
        ("meet an error of a tool", workflow.met_errors),
        ("recover from it", workflow.recovered),
        ("write the output", workflow.wrote_output),
        ("read it back", workflow.read_back),
        ("submit", workflow.submitted),
        ("answer with nothing", workflow.empty_responses),
        ("repeat a call in vain", workflow.looped),
        ("earn something", workflow.rewarded),
        ("earn everything", workflow.accepted),
    ] {
        questions.row([question.to_owned(), share(answer)]);
    }
    text.push_str(&questions.render());
    text.push_str(&format!(
        "\nmean tool calls {}, mean submit_answer calls {}, mean turns to the first write {}\n",
        number(workflow.mean_tool_calls, 2),
        number(workflow.mean_submit_calls, 2),
        number(workflow.mean_turns_to_first_write, 2)
    ));
    text.push_str(&format!("\nby rules\n{}", kinds_text(summary)));
    if let Some(second) = &data.classifier {
        text.push_str(&format!(
            "\nby {} ({} turns asked, {} known from before, {} without an answer)\n{}",
            aec_base::text::printable(&second.model),
            second.asked_turns,
            second.cached_turns,
            second.missing_turns,
            kinds_text(&second.summary)
        ));
        let kappa = second.kappa.as_ref().map(|kappa| kappa.kappa);
        text.push_str(&format!(
            "rules and model agree on {} of turns, kappa {}\n",
            number(second.observed_agreement, 3),
            number(kappa, 3)
        ));
    }
    text
}

fn kinds_text(summary: &Summary) -> String {
    let mut table = Table::new(KINDS).keyed();
    for kind in Kind::ALL {
        let row = summary.transitions.rows[kind.index()];
        table.row([
            kind.name().to_owned(),
            number(summary.bond_distribution.get(kind.name()).copied(), 3),
            summary.dominant_bond_counts.get(kind.name()).copied().unwrap_or(0).to_string(),
            rounded(row[0], 2),
            rounded(row[1], 2),
            rounded(row[2], 2),
            rounded(row[3], 2),
        ]);
    }
    format!(
        "{}similarity to the {} solved trials {}, distance {}\n",
        table.render(),
        summary.reference_trial_count,
        number(summary.mean_cosine_similarity, 3),
        number(summary.mean_normalized_edit_distance, 3)
    )
}
