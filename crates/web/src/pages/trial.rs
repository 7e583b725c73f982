//! One attempt: its facts, the parts of its answer, its trace and its files; live events while it runs.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::name::Name;
use aec_judge::settle::order::Source;
use aec_ledger::layout::stem;
use aec_ledger::read::RecordFile;
use aec_ledger::record::TrialRecord;
use aec_report::label::PageLabels;
use aec_report::trace::TraceFacts;

use super::marks::marks;
use super::{Page, ROWS, crumbs, experiments, pair, reader};
use crate::href::{self, Asked, Href, record_file};
use crate::html::{Align, Cell, Class, Html, facts, table};
use crate::live;
use crate::records::Evaluated;
use crate::respond::Trouble;
use crate::site::Site;
use crate::trace::start;
use crate::words;

/// A longer trajectory is not read completely to count calls.
const COUNTED_BYTES: u64 = 8 * 1024 * 1024;

/// Most links to other trials of the same task.
const OTHERS: usize = 12;

/// Bytes of an answer that are shown.
const ANSWER_BYTES: u64 = 64 * 1024;

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let (experiment, stem) = (&asked.segments[1], &asked.segments[2]);
    let missing = || {
        Trouble::missing(
            "there is no such trial",
            "its experiment lists the trials that there are; it may also have been removed",
        )
    };
    let file = record_file(experiment, stem).ok_or_else(missing)?;
    if live::is_recorded(site, &file) {
        return recorded(site, asked, &file);
    }
    if live::is_live(site, &file) {
        return under_way(site, &file);
    }
    // It may have been recorded between the two checks.
    if live::is_recorded(site, &file) { recorded(site, asked, &file) } else { Err(missing()) }
}

pub(crate) fn read(site: &Site, file: &RecordFile) -> Result<TrialRecord, Trouble> {
    let stored = file.read(&site.ledger).map_err(|broken| {
        Trouble::internal(
            format!("the record cannot be used: {}", broken.problem.what),
            broken.problem.fix.unwrap_or_else(|| "run `aec-bench ledger verify`".to_owned()),
        )
    })?;
    Ok(stored.record)
}

fn recorded(site: &Site, asked: &Asked, file: &RecordFile) -> Result<Page, Trouble> {
    let record = read(site, file)?;
    let labels = labels(site, &file.experiment);
    let title = labels.attempt(file.trial.as_str(), file.attempt);
    let mut body = Html::default();
    head(&mut body, site, file, &record, &title);
    summary(&mut body, site, file, &record, &labels);
    others(&mut body, site, file);
    fields(&mut body, &record);
    body.heading("Prompt");
    fold(&mut body, "What the agent was asked", &record.inputs.instruction);
    if let Some(prompt) = &record.inputs.system_prompt {
        fold(&mut body, "Standing instructions", prompt);
    }
    answer(&mut body, site, &record);
    reader::trace(&mut body, site, asked, &record);
    artefacts(&mut body, file, &record);
    Ok(Page::new(title, "", body))
}

/// The labels of an experiment. A trial is shown even if the ledger does not answer.
pub(super) fn labels(site: &Site, experiment: &Name) -> Arc<PageLabels> {
    site.labels(experiment).unwrap_or_default()
}

fn head(html: &mut Html, site: &Site, file: &RecordFile, record: &TrialRecord, title: &str) {
    let experiment = file.experiment.as_str();
    crumbs(html, &[(Href::new::<&str>([]), "Experiments"), (href::experiment(experiment), experiment)]);
    let counted = match record.outcome {
        aec_judge::verdict::Outcome::AgentFault => Some(0.0),
        _ => record.reward(),
    };
    let class = Class::of(counted);
    html.raw("<div class=\"head\"><h1><code>")
        .label(title, &stem(&file.trial, file.attempt))
        .raw("</code></h1><span class=\"badge ");
    html.raw(class.style())
        .raw("\">")
        .text(class.name())
        .raw(" ")
        .text(&words::share(record.reward()))
        .raw("</span>");
    for (at, label, id) in neighbours(site, file) {
        html.raw("<a id=\"").raw(id).raw("\" href=\"").text(at.as_str()).raw("\">").text(label).raw("</a>");
    }
    html.raw("</div>\n");
}

/// The experiment of an attempt, if it is in the cache.
fn experiment(site: &Site, file: &RecordFile) -> Option<Arc<Evaluated>> {
    let snapshot = site.snapshot().ok()?;
    site.evaluated.known(file.experiment.as_str(), site.state(&snapshot, &file.experiment))
}

fn others(html: &mut Html, site: &Site, file: &RecordFile) {
    let Some(evaluated) = experiment(site, file) else { return };
    let selection = &evaluated.selection;
    let Some(this) = selection.trials.iter().find(|trial| *trial.id == *file.trial.as_str()) else { return };
    let same = selection.trials.iter().filter(|trial| trial.task == this.task && trial.id != this.id);
    let mut same = same.take(OTHERS).peekable();
    if same.peek().is_none() {
        return;
    }
    html.raw("<p>Compare with ");
    for (at, trial) in same.enumerate() {
        if at > 0 {
            html.raw(" · ");
        }
        let Ok(name) = Name::parse(&trial.id) else { continue };
        let other = format!("{}/{}", file.experiment, stem(&name, trial.attempt));
        let label = format!(
            "{} {} ({})",
            selection.agents[trial.agent].name,
            trial.repetition,
            words::share(trial.counted())
        );
        html.link(&pair::address(&file.id(), &other), &label);
    }
    html.raw("</p>\n");
}

fn neighbours(site: &Site, file: &RecordFile) -> Vec<(Href, &'static str, &'static str)> {
    let Some(evaluated) = experiment(site, file) else { return Vec::new() };
    let trials = &evaluated.selection.trials;
    let Some(at) = trials.iter().position(|trial| *trial.id == *file.trial.as_str()) else {
        return Vec::new();
    };
    let link = |at: usize| {
        let trial = trials.get(at)?;
        let name = Name::parse(&trial.id).ok()?;
        Some(href::trial(file.experiment.as_str(), &name, trial.attempt))
    };
    let before = at.checked_sub(1).and_then(link).map(|href| (href, "‹ Previous", "previous"));
    before.into_iter().chain(link(at + 1).map(|href| (href, "Next ›", "next"))).collect()
}

/// The facts of an attempt, if its trajectory is short enough to be read completely.
pub(super) fn done(record: &TrialRecord, contents: &ContentStore) -> TraceFacts {
    let trajectory = record.outputs.trajectory_path.as_ref();
    let size =
        record.all_artefacts().find(|artefact| Some(&artefact.path) == trajectory).map(|found| found.size);
    if size.is_some_and(|size| size <= COUNTED_BYTES) {
        TraceFacts::read(record, contents)
    } else {
        TraceFacts::of(record, None)
    }
}

fn summary(html: &mut Html, site: &Site, file: &RecordFile, record: &TrialRecord, labels: &PageLabels) {
    let done = done(record, &site.ledger.contents());
    let traced = |count: u64| if done.has_trace { words::maybe(Some(count)) } else { String::new() };
    let optional = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let fault = record.fault.as_ref().map(|fault| {
        format!("{}: {}", done.error_type.as_deref().unwrap_or_else(|| fault.boundary.name()), fault.message)
    });
    let others: Vec<u32> = (1..=file.attempt + 1)
        .filter(|attempt| *attempt != file.attempt)
        .filter(|attempt| live::is_recorded(site, &RecordFile { attempt: *attempt, ..file.clone() }))
        .take(ROWS)
        .collect();
    let task = record.task.task_id.as_str();
    let mut attempts = Html::of(&file.attempt.to_string());
    for attempt in &others {
        attempts.raw(" · ").link(
            &href::trial(file.experiment.as_str(), &file.trial, *attempt),
            &format!("attempt {attempt}"),
        );
    }
    facts(
        html,
        &[
            ("trial id", stem(&file.trial, file.attempt).into()),
            ("task", Cell::label_link(href::task(task), labels.task(task), task)),
            ("task id", if labels.task(task) == task { "" } else { task }.into()),
            ("revision", record.task.task_revision.hex()[..12].to_owned().into()),
            ("difficulty", optional(record.task.difficulty.as_deref()).into()),
            ("family", Cell::label(labels.family(&record.task.family), &record.task.family)),
            ("agent", record.agent.name.to_string().into()),
            ("harness", record.agent.adapter.clone().into()),
            ("model", optional(record.agent.model.as_deref()).into()),
            ("answered as", optional(record.agent.resolved_model.as_deref()).into()),
            ("repetition", record.repetition.to_string().into()),
            (
                "attempt",
                if others.is_empty() { file.attempt.to_string().into() } else { Cell::Html(attempts) },
            ),
            ("outcome", record.outcome.name().into()),
            ("class", done.class.name().into()),
            ("fault", fault.unwrap_or_default().into()),
            ("stopped by", done.stop_condition.clone().into()),
            ("turns", traced(done.turns_used).into()),
            ("tool calls", traced(done.tool_calls).into()),
            ("tool errors", traced(done.tool_errors).into()),
            ("handed in", if done.submit_reached { "yes" } else { "no" }.into()),
            ("answer from", optional(done.output_source.map(Source::name)).into()),
            (
                "tokens in / out",
                format!("{} / {}", words::maybe(record.cost.tokens_in), words::maybe(record.cost.tokens_out))
                    .into(),
            ),
            ("cost", words::dollars(record.cost.estimated_cost_usd).into()),
            ("time", words::seconds(Some(record.timing.total_seconds)).into()),
            ("began (UTC)", words::moment(record.timestamp.as_str()).into()),
            ("ran on", record.environment.compute_backend.clone().into()),
        ],
    );
}

fn fields(html: &mut Html, record: &TrialRecord) {
    html.heading("Fields");
    let marks = marks(record);
    if marks.is_empty() {
        html.hint("The verifier said nothing about parts of the answer.");
    } else {
        let columns = [
            ("field", Align::Left),
            ("score", Align::Right),
            ("status", Align::Left),
            ("expected", Align::Left),
            ("got", Align::Left),
            ("message", Align::Left),
        ];
        let more = marks.len().saturating_sub(ROWS);
        let rows = marks.into_iter().take(ROWS).map(|mark| {
            vec![
                mark.name.into(),
                Cell::Result(Class::of(mark.score), words::share(mark.score)),
                mark.status.into(),
                mark.expected.into(),
                mark.got.into(),
                mark.message.into(),
            ]
        });
        table(html, &columns, rows);
        if more > 0 {
            html.hint(&format!("and {} more", words::count(more)));
        }
    }
    verifier_output(html, record);
}

fn verifier_output(html: &mut Html, record: &TrialRecord) {
    let Some(evaluation) = &record.evaluation else { return };
    for (title, text) in
        [("What the verifier printed", &evaluation.stdout), ("Its error output", &evaluation.stderr)]
    {
        if !text.trim().is_empty() {
            fold(html, title, text);
        }
    }
}

/// Untrusted text that the user can unfold.
fn fold(html: &mut Html, title: &str, text: &str) {
    html.raw("<details><summary>").text(title).raw(" <span class=\"quiet\">");
    html.text(&words::count(text.chars().count())).raw(" characters</span></summary>");
    html.verbatim(&aec_report::html::clip(text, 100_000)).raw("</details>\n");
}

fn answer(html: &mut Html, site: &Site, record: &TrialRecord) {
    if record.outputs.raw_output_path.is_none() {
        return;
    }
    html.heading("Answer");
    match answer_text(site, record) {
        Some(text) => fold(html, "As it was judged", &text),
        None => {
            html.hint("It is too long to be shown here, missing or damaged; see the files below.");
        }
    }
}

/// The answer, if it exists and is short enough to be shown.
pub(super) fn answer_text(site: &Site, record: &TrialRecord) -> Option<String> {
    let path = record.outputs.raw_output_path.as_ref()?;
    let artefact = record.all_artefacts().find(|artefact| artefact.path == *path)?;
    let bytes = site.ledger.contents().read(artefact.digest, ANSWER_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn artefacts(html: &mut Html, file: &RecordFile, record: &TrialRecord) {
    html.heading("Files");
    let submitted = record.outputs.submission.iter().flat_map(|submission| &submission.files);
    let all = record
        .all_artefacts()
        .map(|artefact| (artefact.path.clone(), artefact.digest, artefact.size))
        .chain(submitted.map(|(path, file)| (format!("submission/{path}"), file.digest, file.size)));
    let mut rows: Vec<Vec<Cell>> = all
        .map(|(path, digest, size)| {
            let href = Href::new(["artefact", &digest.hex()]).with("trial", &file.id());
            vec![Cell::Link(href, path), words::bytes(size).into(), digest.hex()[..12].to_owned().into()]
        })
        .collect();
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    table(html, &[("file", Align::Left), ("size", Align::Right), ("digest", Align::Left)], rows);
    if more > 0 {
        html.hint(&format!("and {} more; `aec-bench ledger show --json` has all", words::count(more)));
    }
}

fn under_way(site: &Site, file: &RecordFile) -> Result<Page, Trouble> {
    let path = live::trajectory(site, file);
    let part = crate::trace::read_part(&path, 0, crate::trace::PART, start(&path)).map_err(|error| {
        Trouble::internal(format!("the trace cannot be read: {error}"), "load the page again")
    })?;
    let whole = stem(&file.trial, file.attempt);
    let title = labels(site, &file.experiment).attempt(file.trial.as_str(), file.attempt);
    let experiment = file.experiment.as_str();
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new::<&str>([]), "Experiments"), (href::experiment(experiment), experiment)]);
    let is_running = site.is_running(&file.experiment);
    let state = if is_running { "running" } else { "incomplete" };
    body.raw("<div class=\"head\"><h1><code>").label(&title, &whole).raw("</code></h1>");
    body.add(&experiments::badge(state)).raw("</div>\n");
    facts(&mut body, &[("trial id", whole.as_str().into())]);
    if is_running {
        body.raw("<p class=\"hint\">This attempt is under way. New events appear as they are written")
            .raw("<noscript>; load the page again to see them</noscript>.</p>\n");
        let stream = Href::new(["live", "trial", experiment, &whole]).with("from", &part.offset.to_string());
        reader::show(&mut body, &part.entries, Some(&stream));
    } else {
        body.note(&format!(
            "No process works on this attempt: its run was killed. `aec-bench run --resume {experiment}` records what there \
             is and tries again."
        ));
        reader::show(&mut body, &part.entries, None);
    }
    Ok(Page::new(title, "", body))
}
