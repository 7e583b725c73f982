//! The first page: every experiment with its results so far.

use std::time::{Duration, Instant};

use aec_base::name::Name;
use aec_ledger::index::Summary;

use super::{Page, Pager, empty};
use crate::href::{self, Asked};
use crate::html::{Align, Cell, Html, table};
use crate::records::Overall;
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// How long a page may spend on new intervals; the remaining ones come with the next load.
const PATIENCE: Duration = Duration::from_millis(400);

/// An experiment with more attempts is not summed up again and again while it runs.
const LARGE: usize = 5_000;

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let snapshot = site.snapshot()?;
    let mut body = Html::default();
    body.raw("<h1>Experiments</h1>\n");
    let mut experiments: Vec<(Option<&Summary>, &Name)> =
        snapshot.experiments.iter().map(|name| (snapshot.summary(name.as_str()), name)).collect();
    if experiments.is_empty() {
        empty(
            &mut body,
            "Nothing was run in this project yet. An experiment appears here as soon as it starts:",
            "aec-bench run --config experiment.yaml",
        );
        body.hint(
            "`aec-bench quickstart` goes through the whole loop without a key or a network, in seconds.",
        );
        return Ok(Page::new("Experiments", "", body));
    }
    // The experiment with the latest trial comes first; one without any trial has just begun.
    let last = |summary: Option<&Summary>| summary.and_then(|summary| summary.last.clone());
    experiments.sort_by(|a, b| (a.0.is_some(), last(b.0), a.1).cmp(&(b.0.is_some(), last(a.0), b.1)));
    if !snapshot.problems.is_empty() {
        body.note(&format!(
            "{} in the ledger cannot be read and are not counted here; `aec-bench ledger verify` names them.",
            aec_base::text::count(snapshot.problems.len(), "file")
        ));
    }
    let pager = Pager::new(asked, experiments.len());
    let started = Instant::now();
    let mut waiting = 0;
    let mut rows = Vec::new();
    for (summary, name) in &experiments[pager.range()] {
        let changes = summary.is_some_and(|summary| summary.attempts > LARGE) && site.is_running(name);
        let overall = if started.elapsed() < PATIENCE && !changes {
            Some(site.overall(name)?)
        } else {
            site.known_overall(name)?
        };
        waiting += usize::from(overall.is_none() && !changes);
        rows.push(row(site, name, *summary, overall.as_deref()));
    }
    table(
        &mut body,
        &[
            ("experiment", Align::Left),
            ("state", Align::Left),
            ("trials", Align::Right),
            ("mean reward", Align::Right),
            ("95 % interval", Align::Right),
            ("cost", Align::Right),
            ("last trial (UTC)", Align::Right),
        ],
        rows,
    );
    pager.show(&mut body, asked, "experiments");
    if waiting > 0 {
        body.hint("Intervals of some experiments are not ready yet; load the page again to see them.");
    }
    body.hint("The mean leaves out trials that failed through no fault of the agent. Its interval takes tasks as units. A mean marked with * is not of all trials: the rewards of some are unknown.");
    Ok(Page::new("Experiments", "", body))
}

fn row(site: &Site, name: &Name, summary: Option<&Summary>, overall: Option<&Overall>) -> Vec<Cell> {
    let state = match overall {
        Some(overall) => site.doing(name, &overall.group, overall.plan.as_ref()).name(),
        None if site.is_running(name) => "running",
        None => "",
    };
    let recorded = summary.map_or(0, |summary| summary.trials.count);
    let withheld = summary.and_then(|summary| summary.trials.unknown).map_or(0, |unknown| unknown.withheld);
    let planned = overall.map_or(0, |overall| overall.group.missing) + recorded + withheld;
    let trials = if planned > recorded {
        format!("{} of {}", words::count(recorded), words::count(planned))
    } else {
        words::count(recorded)
    };
    let mean = match (overall, summary) {
        (Some(overall), _) => words::mean(&overall.group),
        (None, Some(summary)) => words::mean_of(&summary.trials),
        (None, None) => words::share(None),
    };
    let mut title = Html::default();
    title.link(&href::experiment(name.as_str()), name.as_str());
    if let Some(text) = overall.and_then(|overall| overall.plan.as_ref()?.name.as_deref()) {
        title.raw(" <span class=\"quiet\">").text(text).raw("</span>");
    }
    let last = summary.and_then(|summary| summary.last.as_ref());
    vec![
        Cell::Html(title),
        Cell::Html(badge(state)),
        trials.into(),
        mean.into(),
        words::span(overall.and_then(|overall| overall.group.interval)).into(),
        summary.map_or_else(|| words::cost(0.0, 0), cost).into(),
        last.map_or_else(|| words::UNKNOWN.to_owned(), |last| words::moment(last.as_str())).into(),
    ]
}

fn cost(summary: &Summary) -> String {
    words::cost(summary.cost_usd, summary.trials.without_cost)
}

pub(crate) fn badge(state: &'static str) -> Html {
    let mut html = Html::default();
    if !state.is_empty() {
        html.raw("<span class=\"state state-").raw(state).raw("\">").raw(state).raw("</span>");
    }
    html
}
