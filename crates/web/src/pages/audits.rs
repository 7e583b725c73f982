//! Results of audits of verifiers, from the output of `audit --json`.

use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_base::file::{Links, read_text};
use aec_base::label::Labels;
use serde::Deserialize;

use super::{Page, Pager, ROWS, empty, task_link};
use crate::href::Asked;
use crate::html::{Align, Cell, Class, Html, select, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// Larger files are not envelopes.
const LIMIT: u64 = 32 * 1024 * 1024;

/// The part of `audit --json` that this page shows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    data: Data,
    errors: Vec<Finding>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    audits: Vec<Audit>,
    notes: Vec<Finding>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Audit {
    task_id: String,
    mutants: Tally,
    equivalents: Tally,
    floor: Option<f64>,
    floor_agent: Option<String>,
    deterministic: Option<bool>,
    cheaters: Tally,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Tally {
    good: usize,
    all: usize,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Finding {
    severity: String,
    id: Option<String>,
    about: Option<String>,
    what: String,
    fix: Option<String>,
}

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let files = files(site);
    let mut body = Html::default();
    body.raw("<h1>Audits</h1>\n");
    if files.is_empty() {
        empty(
            &mut body,
            "No audit is kept in this project. An audit says whether a verifier can be trusted; this keeps one:",
            "mkdir -p artefacts/audits\naec-bench audit --all --json > artefacts/audits/all.json",
        );
        return Ok(Page::new("Audits", "audits", body));
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let chosen = asked.get("file").unwrap_or(names[names.len() - 1]);
    body.raw("<form class=\"tools\">");
    select(&mut body, "file", "File", "the last one", &names, Some(chosen));
    body.raw("<button type=\"submit\">Show</button></form>\n");
    // The name is searched among the existing files; it never becomes a path.
    let Some((name, path)) = files.iter().find(|(name, _)| name == chosen) else {
        return Err(Trouble::missing("there is no such audit", "choose one of the list"));
    };
    let read = read_text(path, LIMIT, Links::Refuse).map_err(|error| error.to_string());
    let envelope: Envelope =
        match read.and_then(|text| aec_base::json::from_str(&text).map_err(|error| error.to_string())) {
            Ok(envelope) => envelope,
            Err(error) => {
                body.note(&format!("{name} is not what `aec-bench audit --json` prints: {error}"));
                return Ok(Page::new("Audits", "audits", body));
            }
        };
    let labels = Labels::of(envelope.data.audits.iter().map(|audit| audit.task_id.as_str()));
    audits(&mut body, asked, &envelope, &labels);
    findings(&mut body, &envelope, &labels);
    Ok(Page::new("Audits", "audits", body))
}

fn files(site: &Site) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs_err::read_dir(&site.places.audits) else { return Vec::new() };
    let mut files: Vec<(String, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, _)| name.ends_with(".json") && !name.starts_with('.'))
        .collect();
    files.sort();
    let more = files.len().saturating_sub(ROWS);
    files.drain(..more);
    files
}

fn tally(tally: Tally) -> Cell {
    if tally.all == 0 {
        return words::UNKNOWN.into();
    }
    let class = if tally.good >= tally.all { Class::Pass } else { Class::Fail };
    Cell::Result(class, format!("{} of {}", tally.good, tally.all))
}

fn audits(html: &mut Html, asked: &Asked, envelope: &Envelope, labels: &Labels) {
    let all = &envelope.data.audits;
    let pager = Pager::new(asked, all.len());
    table(
        html,
        &[
            ("task", Align::Left),
            ("wrong answers that lost", Align::Right),
            ("equal answers that kept", Align::Right),
            ("floor", Align::Right),
            ("deterministic", Align::Left),
            ("cheaters held", Align::Right),
        ],
        all[pager.range()].iter().map(|audit| {
            let floor = match (&audit.floor, &audit.floor_agent) {
                (Some(floor), Some(agent)) => format!("{} ({agent})", rounded(*floor, 3)),
                (floor, _) => words::share(*floor),
            };
            vec![
                task_link(labels, &audit.task_id),
                tally(audit.mutants),
                tally(audit.equivalents),
                floor.into(),
                match audit.deterministic {
                    Some(true) => Cell::Result(Class::Pass, "yes".to_owned()),
                    Some(false) => Cell::Result(Class::Fail, "no".to_owned()),
                    None => words::UNKNOWN.into(),
                },
                tally(audit.cheaters),
            ]
        }),
    );
    pager.show(html, asked, "tasks");
}

fn findings(html: &mut Html, envelope: &Envelope, labels: &Labels) {
    html.heading("Findings");
    let all: Vec<&Finding> = envelope.errors.iter().chain(&envelope.data.notes).collect();
    if all.is_empty() {
        html.hint("Nothing was found.");
        return;
    }
    table(
        html,
        &[
            ("severity", Align::Left),
            ("id", Align::Left),
            ("task", Align::Left),
            ("what", Align::Left),
            ("what to do", Align::Left),
        ],
        all.iter().take(ROWS).map(|finding| {
            let about = finding.about.as_deref().unwrap_or_default();
            vec![
                finding.severity.clone().into(),
                finding.id.clone().unwrap_or_default().into(),
                Cell::label(labels.get(about), about),
                finding.what.clone().into(),
                finding.fix.clone().unwrap_or_default().into(),
            ]
        }),
    );
    if all.len() > ROWS {
        html.hint(&format!("and {} more in the file", words::count(all.len() - ROWS)));
    }
}
