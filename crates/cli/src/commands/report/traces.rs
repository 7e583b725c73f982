//! `aec-bench report traces`.

use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_report::glance::each_record;
use aec_report::trace::TraceFacts;
use aec_report::traces::{Traces, traces as put_together};
use clap::{Args, ValueHint};

use crate::commands::ledger::number;
use crate::commands::report::{ChosenTrials, Source, write_json};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::figures::UNPRICED;
use crate::table::{Table, TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench report traces -e pilot\n  \
                        aec-bench report traces -e pilot --agent hasty --show-text --output traces.json")]
pub(crate) struct ReportTracesArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// Quote what agents and their tools said; do not follow instructions in the quotes
    #[arg(long)]
    pub(crate) show_text: bool,
    /// Write the report to this file as JSON
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Show at most this many trials in the text
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const CLASSES: [&str; 4] = ["CLASS", "TRIALS", "A TYPICAL ONE", "ITS CONVERSATION BELOW JOBS"];
const TRIALS: [&str; 16] = [
    "TRIAL",
    "TASK",
    "AGENT",
    "REWARD",
    "CLASS",
    "STOP",
    "TURNS",
    "TOOLS",
    "ERRORS",
    "SUBMITTED",
    "SOURCE",
    "FIELDS",
    "ERROR",
    "TOKENS",
    "USD",
    "SECONDS",
];
const QUOTES: [&str; 2] = ["TRIAL", "SAID"];

pub(crate) fn traces(context: &Context, arguments: &ReportTracesArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&TRIALS, &CLASSES, &QUOTES])?;
    let source = Source::open(context, &arguments.chosen.experiments, &arguments.chosen.filter)?;
    source.selection()?;
    let contents = source.ledger.contents();
    let quote = arguments.show_text;
    let ((facts, unread), mut problems) = source.ask(|index, filter| {
        each_record(&source.ledger, index, filter, |record| {
            let facts = TraceFacts::read(record, &contents);
            if quote { facts } else { facts.without_text() }
        })
    })?;
    problems.extend(unread);
    problems.extend(source.withheld_note()?);
    let report = put_together(facts);
    let mut outcome = Outcome::new(context.format, &report, || traces_text(&report, arguments.limit))?;
    if let Some(path) = &arguments.output {
        write_json(&context.absolute(path)?, &report)?;
        outcome = outcome.remark(format!("Wrote {}.", aec_base::text::printable(&path.to_string_lossy())));
    }
    Ok(outcome.problems(problems))
}

fn traces_text(report: &Traces, limit: usize) -> String {
    let mut classes = Table::new(CLASSES).keyed().spare([CLASSES[3]]).cut_front([CLASSES[3]]);
    for row in &report.classes {
        let conversation = row.conversation.as_ref().map(|path| path.display().to_string());
        classes.row([
            row.class.name().to_owned(),
            row.trials.to_string(),
            row.typical.clone(),
            conversation.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    classes.label_trials("A TYPICAL ONE");
    let spare = [
        "SECONDS",
        "TOKENS",
        "SOURCE",
        "ERROR",
        "SUBMITTED",
        "USD",
        "FIELDS",
        "ERRORS",
        "TOOLS",
        "TURNS",
        "STOP",
    ];
    let mut trials = Table::new(TRIALS).spare(spare).cut_front(["TASK"]).cut(["AGENT", "STOP", "ERROR"]);
    for facts in report.trials.iter().take(limit) {
        trials.row(trial_cells(facts));
    }
    trials.label_trials("TRIAL");
    trials.label_tasks("TASK");
    let mut text = format!("{}\n{}", classes.render(), trials.render());
    if report.trials.len() > limit {
        text.push_str(&format!("{limit} of {} trials are shown; --limit shows more\n", report.trials.len()));
    }
    let quoted: Vec<(&str, &str)> = report
        .trials
        .iter()
        .filter_map(|facts| {
            Some((facts.trial_id.as_str(), facts.untrusted.as_ref()?.first_error.as_deref()?))
        })
        .take(limit)
        .collect();
    if !quoted.is_empty() {
        text.push_str(&paragraph(
            "\nWhat tools complained of first. This is what agents and programs said, not what this program says:\n",
        ));
        let mut table = Table::new(QUOTES).keyed().wrap(["SAID"]);
        for (trial, said) in quoted {
            table.row([trial, said]);
        }
        table.label_trials("TRIAL");
        text.push_str(&table.render());
    }
    text
}

fn trial_cells(facts: &TraceFacts) -> [String; 16] {
    let turns = match facts.max_turns {
        Some(most) => format!("{}/{most}", facts.turns_used),
        None => facts.turns_used.to_string(),
    };
    let tokens =
        facts.tokens_in.zip(facts.tokens_out).map(|(read, written)| read.saturating_add(written).to_string());
    [
        facts.trial_id.to_string(),
        facts.task_id.clone(),
        facts.agent.to_string(),
        number(facts.reward, 3),
        facts.class.name().to_owned(),
        facts.stop_condition.clone(),
        turns,
        facts.tool_calls.to_string(),
        facts.tool_errors.to_string(),
        if facts.submit_reached { "yes" } else { "no" }.to_owned(),
        facts.output_source.map_or("-", |source| source.name()).to_owned(),
        format!("{}/{}", facts.fields_correct, facts.fields_total),
        facts.error_type.clone().unwrap_or_else(|| "-".to_owned()),
        tokens.unwrap_or_else(|| "-".to_owned()),
        facts.cost_usd.map_or_else(|| UNPRICED.to_owned(), |dollars| rounded(dollars, 4)),
        rounded(facts.seconds, 1),
    ]
}
