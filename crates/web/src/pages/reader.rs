//! The trace of an attempt on a page: events for the script's reader, and the same as plain HTML.

use std::fmt::Write as _;

use aec_ledger::record::TrialRecord;
use aec_report::html::TraceEntry;

use crate::href::{Asked, Href};
use crate::html::Html;
use crate::site::Site;
use crate::trace::{Part, TraceMap};
use crate::words;

/// Adds the trace of a record, or the requested part of it.
pub(super) fn trace(html: &mut Html, site: &Site, asked: &Asked, record: &TrialRecord) {
    html.heading("Trace");
    let path = record.outputs.trajectory_path.as_ref();
    let Some(artefact) = record.all_artefacts().find(|artefact| Some(&artefact.path) == path) else {
        html.hint("This attempt has no trace.");
        return;
    };
    let place = site.ledger.contents().path(artefact.digest);
    let from = asked.number("from").and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
    let read = site
        .traces
        .get(&artefact.digest.hex(), 0, || TraceMap::read(&place, Some(artefact.digest)))
        .and_then(|map| map.part(&place, from).map(|(first, part)| (map, first, part)));
    match read {
        Ok((map, first, part)) => {
            steps(html, asked, &map, first, &part);
            show(html, &part.entries, None);
            steps(html, asked, &map, first, &part);
        }
        Err(error) => {
            html.note(&format!("The trace cannot be shown: {error}. `aec-bench ledger verify` says more."));
        }
    }
}

/// Links to the previous and next parts.
fn steps(html: &mut Html, asked: &Asked, map: &TraceMap, first: usize, part: &Part) {
    let end = first + part.read;
    if first == 0 && end >= map.events {
        return;
    }
    let link = |from: usize| asked.without("from").with("from", &from.to_string());
    html.raw("<p class=\"pager\">");
    if let Some(before) = map.before(first) {
        html.link(&link(before), "‹ Earlier");
    }
    html.raw("<span>").text(&format!(
        "events {} – {} of {}",
        words::count(first + 1),
        words::count(end),
        words::count(map.events)
    ));
    html.raw("</span>");
    if end < map.events {
        html.link(&link(end), "Later ›");
    }
    html.raw("</p>\n");
}

/// The events for the script's reader, and the same as plain HTML for readers without a script.
pub(super) fn show(html: &mut Html, entries: &[TraceEntry], stream: Option<&Href>) {
    html.raw("<div class=\"reader needs-script\" id=\"reader\"");
    if let Some(stream) = stream {
        html.raw(" data-stream=\"").text(stream.as_str()).raw("\"");
    }
    html.raw("></div>\n").json("entries", &entries);
    html.raw("<noscript><div class=\"plain-trace\">\n");
    for entry in entries {
        html.raw("<article class=\"entry\"><div class=\"rail\"><span class=\"role\">").text(&entry.role);
        html.raw("</span><span class=\"time\">turn ")
            .text(&entry.step.to_string())
            .raw("</span></div><div class=\"body\">");
        let mut said = String::new();
        if let Some(tool) = &entry.tool {
            let _ = write!(said, "{tool} ");
        }
        if let Some(code) = entry.exit_code {
            let _ = write!(said, "exit {code} ");
        }
        if !said.is_empty() {
            html.raw("<p><b>").text(&said).raw("</b></p>");
        }
        for text in [&entry.reasoning, &entry.text, &entry.arguments, &entry.stdout, &entry.stderr] {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                html.verbatim(text);
            }
        }
        html.raw("</div></article>\n");
    }
    html.raw("</div></noscript>\n");
}
