//! `aec-bench ledger show`.

use std::path::{Path, PathBuf};

use aec_base::decimal::rounded;
use aec_base::settings::Setting;
use aec_base::text::{self, printable};
use aec_judge::verdict::Judged;
use aec_ledger::annotate::{Annotation, Annotations};
use aec_ledger::index::{Attempts, Filter};
use aec_ledger::layout::stem;
use aec_ledger::read::Stored;
use aec_ledger::record::TrialRecord;
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::annotate::annotations_text;
use crate::commands::ledger::{ask, find, number, open, shorten};
use crate::commands::verify::{FIELD_COLUMNS, fields_text};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::progress::figures::UNPRICED;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger show reference/")]
pub(crate) struct LedgerShowArguments {
    /// Record: TRIAL or EXPERIMENT/TRIAL, or its unique beginning; TRIAL.2 is the second attempt
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

const FILES: [&str; 2] = ["FILE", "BYTES"];

#[derive(Serialize)]
struct Data {
    id: String,
    path: PathBuf,
    /// Directory with the readable files of the attempt; absent if it is not on this machine.
    job: Option<PathBuf>,
    digest: aec_base::digest::Digest,
    /// Number of attempts at the trial.
    attempts: usize,
    record: TrialRecord,
    annotations: Vec<Annotation>,
}

pub(crate) fn show(context: &Context, arguments: &LedgerShowArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&FIELD_COLUMNS, &FILES])?;
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let row = find(&project, &ledger, &arguments.id)?;
    let file = row.file();
    let Stored { record, digest, .. } = file.read(&ledger).map_err(|broken| broken.problem)?;
    let all = Filter {
        experiments: vec![file.experiment.to_string()],
        fields: vec![("trial_id".to_owned(), file.trial.to_string())],
        attempts: Attempts::All,
        ..Filter::default()
    };
    let (attempts, _) = ask(&project, &ledger, |index| index.count(&all))?;
    let feedback = project.settings.path(Setting::Feedback);
    let (annotations, mut problems) = Annotations::new(&feedback).read(&file);
    shorten(&project, &mut problems);
    let job = project.settings.path(Setting::Jobs).join(file.experiment.as_str());
    let job = job.join(stem(&file.trial, file.attempt));
    let data = Data {
        id: file.id(),
        path: project.shown(&file.path(&ledger)).to_path_buf(),
        job: job.is_dir().then(|| project.shown(&job).to_path_buf()),
        digest,
        attempts,
        record,
        annotations,
    };
    Ok(Outcome::new(context.format, &data, || show_text(&data))?.problems(problems))
}

fn show_text(data: &Data) -> String {
    let record = &data.record;
    let mut facts = Table::facts();
    for (title, value) in lines(data) {
        facts.row([title.to_owned(), value]);
    }
    let mut shown = format!("{STRONG}{}{STRONG:#}\n{}", printable(&data.id), facts.render());
    let section = |title: &str, body: &str| format!("\n{STRONG}{title}{STRONG:#}\n{body}");
    if let Some(fields) =
        record.evaluation.as_ref().and_then(|evaluation| fields_text(evaluation.breakdown.as_ref()?))
    {
        shown.push_str(&section("Fields", &fields));
    }
    if let Some(evaluation) = &record.evaluation {
        for (title, said) in
            [("Verifier, stdout", &evaluation.stdout), ("Verifier, stderr", &evaluation.stderr)]
        {
            if !said.trim().is_empty() {
                shown.push_str(&section(title, &format!("{}\n", printable(said.trim_end()))));
            }
        }
    }
    let mut files = Table::new(FILES).keyed().cut_front(["FILE"]);
    for artefact in record.all_artefacts() {
        files.row([artefact.path.clone(), artefact.size.to_string()]);
    }
    if record.all_artefacts().next().is_some() {
        shown.push_str(&section("Files", &files.render()));
    }
    if !data.annotations.is_empty() {
        shown.push_str(&section("Annotations", &annotations_text(&data.annotations, data.digest)));
    }
    shown
}

fn lines(data: &Data) -> Vec<(&'static str, String)> {
    let record = &data.record;
    let mut lines = vec![
        ("attempt", format!("{} of {}", record.attempt, data.attempts)),
        ("outcome", record.outcome.name().to_owned()),
        ("reward", reward_text(record)),
    ];
    if let Some(fault) = &record.fault {
        let kind = fault.kind.as_deref().map(|kind| format!(", {kind}")).unwrap_or_default();
        let again = if fault.retryable { "; another attempt may go better" } else { "" };
        lines.push(("fault", format!("{}{kind}: {}{again}", fault.boundary.name(), fault.message)));
    }
    if let Some(evaluation) = &record.evaluation {
        lines.extend(evaluation.validity.errors.iter().map(|error| ("error", error.clone())));
    }
    let task = &record.task;
    let difficulty = task.difficulty.as_deref().unwrap_or("unknown difficulty");
    lines.push(("task", format!("{} ({}, {difficulty}, family {})", task.task_id, task.domain, task.family)));
    lines.push(("revision", task.task_revision.to_string()));
    lines.extend(record.dataset_id.clone().map(|dataset| ("dataset", dataset)));
    let agent = &record.agent;
    let model = agent.model.as_deref().unwrap_or("no model");
    lines.push(("agent", format!("{} ({}, {model})", agent.name, agent.adapter)));
    lines.push(("repetition", record.repetition.to_string()));
    if let Some(output) = &record.outputs.agent_output {
        let why = output.error_message.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let status = format!("{:?}", output.status).to_lowercase();
        lines.push(("agent's end", format!("{status}{why}")));
    }
    lines.push(("cost", cost_text(record)));
    lines.push(("time", time_text(record)));
    lines.push(("sandbox", sandbox_text(record)));
    lines.push(("record", data.path.display().to_string()));
    lines.push(("digest", data.digest.to_string()));
    if let Some(job) = &data.job {
        lines.push(("files", job.display().to_string()));
        let outputs = &record.outputs;
        for (label, path) in [
            ("answer", &outputs.raw_output_path),
            ("conversation", &outputs.conversation_path),
            ("trajectory", &outputs.trajectory_path),
        ] {
            lines.extend(path.as_ref().map(|path| (label, Path::new(job).join(path).display().to_string())));
        }
    }
    lines
}

fn reward_text(record: &TrialRecord) -> String {
    let judged = record.evaluation.as_ref().map(|evaluation| match evaluation.judged {
        _ if evaluation.trusted => "judged elsewhere, trusted because of --trust-rewards",
        Judged::Native => "judged natively",
        Judged::Room => "judged in a clean room",
        Judged::Elsewhere => "judged elsewhere",
    });
    match (record.reward(), judged) {
        (Some(reward), Some(judged)) => format!("{reward} ({judged})"),
        (None, Some(judged)) => format!("none ({judged})"),
        _ => "none (not judged)".to_owned(),
    }
}

fn cost_text(record: &TrialRecord) -> String {
    let cost = &record.cost;
    let dollars = cost
        .estimated_cost_usd
        .map_or_else(|| UNPRICED.to_owned(), |dollars| format!("${}", rounded(dollars, 4)));
    let calls = text::count(usize::try_from(cost.model_calls).unwrap_or(usize::MAX), "call");
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let mut parts = vec![
        calls,
        format!("{} tokens in", tokens(cost.tokens_in)),
        format!("{} out", tokens(cost.tokens_out)),
    ];
    for (count, words) in [
        (cost.unbilled_calls, "calls not billed"),
        (cost.unpriced_calls, "calls without a price"),
        (cost.unsettled_calls, "calls with an unknown end"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    format!("{dollars} ({})", parts.join(", "))
}

fn time_text(record: &TrialRecord) -> String {
    let timing = &record.timing;
    format!(
        "{} s from {} (setup {}, agent {}, judge {})",
        rounded(timing.total_seconds, 2),
        record.timestamp,
        number(timing.setup_seconds, 2),
        number(timing.agent_seconds, 2),
        number(timing.verification_seconds, 2)
    )
}

fn sandbox_text(record: &TrialRecord) -> String {
    let environment = &record.environment;
    let level = environment
        .sandbox
        .map_or_else(|| "elsewhere".to_owned(), |level| format!("{level:?}").to_lowercase());
    let network = if environment.network { "network" } else { "no network" };
    let time = environment.timeout_sec.map(|seconds| format!(", {seconds} s at most")).unwrap_or_default();
    format!("{level} ({}, {network}{time})", environment.compute_backend)
}
