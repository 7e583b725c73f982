//! Two trials side by side: what they did, the verifier's marks of both answers, and the answers line by line.

use std::time::Duration;

use aec_base::label::Labels;
use aec_judge::settle::order::Source;
use aec_ledger::index::FindError;
use aec_ledger::read::RecordFile;
use aec_ledger::record::TrialRecord;
use aec_report::html::Field;
use aec_report::trace::TraceFacts;
use similar::{ChangeTag, TextDiff};

use super::marks::marks;
use super::trial::{self, answer_text};
use super::{Page, ROWS};
use crate::href::{self, Asked, Href, record_file};
use crate::html::{Align, Cell, Class, Html, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// Most lines of a difference.
const LINES: usize = 1_000;

/// A difference that takes longer becomes coarser.
const PATIENCE: Duration = Duration::from_millis(200);

type Fact = (&'static str, fn(&TraceFacts) -> String);

const COMPARED: [Fact; 14] = [
    ("agent", |facts| facts.agent.to_string()),
    ("harness", |facts| facts.harness.clone()),
    ("model", |facts| facts.model.clone().unwrap_or_default()),
    ("repetition", |facts| facts.repetition.to_string()),
    ("outcome", |facts| facts.outcome.name().to_owned()),
    ("reward", |facts| words::share(facts.reward)),
    ("class", |facts| facts.class.name().to_owned()),
    ("stopped by", |facts| facts.stop_condition.clone()),
    ("turns", |facts| words::maybe(Some(facts.turns_used))),
    ("tool calls (errors)", |facts| format!("{} ({})", facts.tool_calls, facts.tool_errors)),
    ("answer from", |facts| facts.output_source.map(Source::name).unwrap_or_default().to_owned()),
    ("tokens in / out", |facts| {
        format!("{} / {}", words::maybe(facts.tokens_in), words::maybe(facts.tokens_out))
    }),
    ("cost", |facts| words::dollars(facts.cost_usd)),
    ("time", |facts| words::seconds(Some(facts.seconds))),
];

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let mut body = Html::default();
    body.raw("<h1>Two trials</h1>\n<form class=\"tools\">");
    for (name, label) in [("first", "First trial"), ("second", "Second trial")] {
        body.raw("<input type=\"text\" name=\"").raw(name).raw("\" size=\"44\" aria-label=\"").raw(label);
        body.raw("\" placeholder=\"EXPERIMENT/TRIAL\" value=\"")
            .text(asked.get(name).unwrap_or_default())
            .raw("\">\n");
    }
    body.raw("<button type=\"submit\">Compare</button></form>\n");
    let (Some(first), Some(second)) = (asked.get("first"), asked.get("second")) else {
        body.hint("Name two trials; the beginning of an id will do.");
        return Ok(Page::new("Two trials", "compare", body));
    };
    let files = (find(site, first)?, find(site, second)?);
    let records = (trial::read(site, &files.0)?, trial::read(site, &files.1)?);
    if records.0.task.task_id != records.1.task.task_id {
        body.note("These are trials of different tasks.");
    } else if records.0.task.task_revision != records.1.task.task_revision {
        body.note("These are trials of different revisions of the task: its files were changed in between.");
    }
    facts(&mut body, site, &files, &records);
    fields(&mut body, &marks(&records.0), &marks(&records.1));
    answers(&mut body, site, &records);
    Ok(Page::new("Two trials", "compare", body))
}

/// The trial with this id, or with this unique prefix.
fn find(site: &Site, id: &str) -> Result<RecordFile, Trouble> {
    let exact = id.split_once('/').and_then(|(experiment, stem)| record_file(experiment, stem));
    if let Some(file) = exact.filter(|file| crate::live::is_recorded(site, file)) {
        return Ok(file);
    }
    let (found, _) = site.ask(|index| match index.find(id) {
        Err(FindError::Index(error)) => Err(error),
        found => Ok(found),
    })?;
    let shown = aec_base::text::printable(id);
    match found {
        Ok(row) => {
            Ok(RecordFile { experiment: row.experiment_id, trial: row.trial_id, attempt: row.attempt })
        }
        Err(FindError::Ambiguous(ids)) => Err(Trouble::senseless(
            format!("`{shown}` fits several trials"),
            format!("name one of them: {}", ids.join(", ")),
        )),
        Err(_) => Err(Trouble::missing(
            format!("there is no trial `{shown}`"),
            "write EXPERIMENT/TRIAL, as the address of its page does",
        )),
    }
}

fn facts(
    html: &mut Html,
    site: &Site,
    files: &(RecordFile, RecordFile),
    records: &(TrialRecord, TrialRecord),
) {
    let contents = site.ledger.contents();
    let done = |record: &TrialRecord| trial::done(record, &contents);
    let (first, second) = (done(&records.0), done(&records.1));
    html.raw("<div class=\"scroll\"><table class=\"summary facts\"><thead><tr><th></th>");
    for file in [&files.0, &files.1] {
        let label = trial::labels(site, &file.experiment).attempt(file.trial.as_str(), file.attempt);
        let label = format!("{}/{label}", file.experiment);
        html.raw("<th scope=\"col\">");
        html.label_link(
            &href::trial(file.experiment.as_str(), &file.trial, file.attempt),
            &label,
            &file.id(),
        )
        .raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>\n");
    let labels = Labels::of([first.task_id.as_str(), &second.task_id]);
    let tasks = [&first.task_id, &second.task_id].map(|id| {
        let mut link = Html::default();
        link.label_link(&href::task(id), labels.get(id), id);
        link
    });
    row(html, "task", first.task_id == second.task_id, &tasks);
    for (name, value) in COMPARED {
        let (first, second) = (value(&first), value(&second));
        row(html, name, first == second, &[Html::of(&first), Html::of(&second)]);
    }
    html.raw("</tbody></table></div>\n");
}

fn row(html: &mut Html, name: &'static str, same: bool, values: &[Html; 2]) {
    html.raw(if same { "<tr>" } else { "<tr class=\"differs\">" });
    html.raw("<th scope=\"row\">").raw(name).raw("</th>");
    for value in values {
        html.raw("<td class=\"data\">").add(value).raw("</td>");
    }
    html.raw("</tr>\n");
}

fn fields(html: &mut Html, first: &[Field], second: &[Field]) {
    let others = second.iter().filter(|mark| !first.iter().any(|known| known.name == mark.name));
    let rows: Vec<Vec<Cell>> = first
        .iter()
        .chain(others)
        .take(ROWS)
        .map(|mark| {
            let of = |marks: &[Field]| -> [Cell; 2] {
                match marks.iter().find(|other| other.name == mark.name) {
                    Some(found) => [
                        Cell::Result(Class::of(found.score), words::share(found.score)),
                        found.got.clone().into(),
                    ],
                    None => [words::UNKNOWN.into(), "".into()],
                }
            };
            let [first_score, first_got] = of(first);
            let [second_score, second_got] = of(second);
            vec![
                mark.name.clone().into(),
                mark.expected.clone().into(),
                first_score,
                first_got,
                second_score,
                second_got,
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    html.heading("Fields");
    table(
        html,
        &[
            ("field", Align::Left),
            ("expected", Align::Left),
            ("first", Align::Right),
            ("got", Align::Left),
            ("second", Align::Right),
            ("got", Align::Left),
        ],
        rows,
    );
}

fn answers(html: &mut Html, site: &Site, records: &(TrialRecord, TrialRecord)) {
    html.heading("Answers");
    let texts = (answer_text(site, &records.0), answer_text(site, &records.1));
    let (Some(first), Some(second)) = &texts else {
        html.hint("At least one of them has no answer that can be shown.");
        return;
    };
    if first == second {
        html.hint("Both answers are the same.");
        html.verbatim(first);
        return;
    }
    html.raw("<pre class=\"lines\">\n");
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(first.as_str(), second.as_str());
    for change in diff.iter_all_changes().take(LINES) {
        html.raw(match change.tag() {
            ChangeTag::Delete => "<del>− ",
            ChangeTag::Insert => "<ins>+ ",
            ChangeTag::Equal => "<span>  ",
        });
        html.text(change.value().trim_end_matches('\n'));
        html.raw(match change.tag() {
            ChangeTag::Delete => "</del>\n",
            ChangeTag::Insert => "</ins>\n",
            ChangeTag::Equal => "</span>\n",
        });
    }
    html.raw("</pre>\n");
}

pub(super) fn address(first: &str, second: &str) -> Href {
    Href::new(["trials"]).with("first", first).with("second", second)
}
