//! Searches everything that has a name, by words or by a prefix of an id.

use aec_ledger::index::Filter;
use aec_report::label::PageLabels;
use aec_task::dataset::store::Store;
use aec_task::search::{HitKind, TemplateSummary, search};

use super::Page;
use crate::href::{self, Asked, Href};
use crate::html::{Align, Cell, Html, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// Most hits of one kind; there are six kinds.
const HITS: usize = super::ROWS / 6;

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let query = asked.get("q").unwrap_or_default().trim();
    let mut body = Html::default();
    body.raw("<h1>Search</h1>\n<form class=\"tools\"><input type=\"text\" name=\"q\" aria-label=\"Search\" value=\"");
    body.text(query).raw("\"><button type=\"submit\">Search</button></form>\n");
    if query.is_empty() {
        body.hint("Type words of a task or template, or the beginning of the id of a trial, an experiment, an evolution or a dataset.");
        return Ok(Page::new("Search", "search", body));
    }
    let mut rows = Vec::new();
    rows.extend(experiments(site, query)?);
    rows.extend(trials(site, query)?);
    rows.extend(evolutions(site, query));
    rows.extend(datasets(site, query));
    rows.extend(files(site, query));
    if rows.is_empty() {
        body.note("Nothing has all of these words.");
    } else {
        table(&mut body, &[("kind", Align::Left), ("name", Align::Left), ("about", Align::Left)], rows);
        body.hint(&format!("The best {HITS} of each kind are shown at most."));
    }
    Ok(Page::new("Search", "search", body))
}

fn row(kind: &str, href: Href, name: String, about: String) -> Vec<Cell> {
    vec![kind.into(), Cell::Link(href, name), about.into()]
}

/// A hit whose name is short for a whole one.
fn labelled(kind: &str, href: Href, label: &str, whole: &str, about: Cell) -> Vec<Cell> {
    vec![kind.into(), Cell::label_link(href, label, whole), about]
}

fn has(text: &str, query: &str) -> bool {
    text.to_lowercase().contains(&query.to_lowercase())
}

fn experiments(site: &Site, query: &str) -> Result<Vec<Vec<Cell>>, Trouble> {
    let snapshot = site.snapshot()?;
    let found = snapshot.experiments.iter().filter(|name| has(name.as_str(), query)).take(HITS);
    Ok(found
        .map(|name| {
            let trials = snapshot.summary(name.as_str()).map_or(0, |summary| summary.trials.count);
            let about = format!("{} trials", words::count(trials));
            row("experiment", href::experiment(name.as_str()), name.to_string(), about)
        })
        .collect())
}

fn evolutions(site: &Site, query: &str) -> Vec<Vec<Cell>> {
    let found = super::evolution::found(site, |name| has(name, query), HITS);
    found.into_iter().map(|(href, name, kind)| row(kind, href, name, String::new())).collect()
}

fn trials(site: &Site, query: &str) -> Result<Vec<Vec<Cell>>, Trouble> {
    let id = query.rsplit('/').next().unwrap_or(query);
    if id.len() < 4 || site.snapshot()?.summaries.is_empty() {
        return Ok(Vec::new());
    }
    let filter = Filter { trial_prefix: Some(id.to_owned()), limit: Some(HITS), ..Filter::default() };
    let (found, _) = site.ask(|index| index.query(&filter))?;
    let labels = PageLabels::of(
        found.iter().map(|trial| trial.task_id.as_str()),
        found.iter().map(|trial| trial.trial_id.as_str()),
    );
    Ok(found
        .iter()
        .map(|trial| {
            let href = href::trial(trial.experiment_id.as_str(), &trial.trial_id, trial.attempt);
            let label = labels.attempt(trial.trial_id.as_str(), trial.attempt);
            let mut about = Html::default();
            about.label(labels.task(&trial.task_id), &trial.task_id);
            about.text(&format!(", {}, {}", trial.agent, trial.outcome.name()));
            let label = format!("{}/{label}", trial.experiment_id);
            labelled("trial", href, &label, &trial.file().id(), Cell::Html(about))
        })
        .collect())
}

fn datasets(site: &Site, query: &str) -> Vec<Vec<Cell>> {
    let (manifests, _) = Store::new(&site.places.datasets).list();
    let fits = |text: &str| has(text, query);
    manifests
        .iter()
        .filter(|manifest| fits(&manifest.reference()) || fits(&manifest.description.summary))
        .take(HITS)
        .map(|manifest| {
            let href = Href::new(["datasets", &manifest.reference()]);
            row("dataset", href, manifest.reference(), manifest.description.summary.clone())
        })
        .collect()
}

fn files(site: &Site, query: &str) -> Vec<Vec<Cell>> {
    let (catalogue, library) = (site.catalogue(), site.library());
    let templates: Vec<TemplateSummary> = library.templates.iter().map(TemplateSummary::from).collect();
    let hits = search(query, &catalogue.tasks, &templates);
    let of = |kind: HitKind| hits.iter().filter(move |hit| hit.kind == kind).take(HITS);
    let labels = Site::task_labels(&catalogue);
    // A label may have signs that neither an id nor a text has.
    let named = catalogue.tasks.iter().map(|task| task.id.as_str()).filter(|id| labels.get(id) == query);
    let named = named.filter(|id| !of(HitKind::Task).any(|hit| hit.name == *id)).map(|id| (id, ""));
    named
        .chain(of(HitKind::Task).map(|hit| (hit.name.as_str(), hit.summary.as_str())))
        .map(|(id, summary)| labelled("task", href::task(id), labels.get(id), id, summary.into()))
        .chain(of(HitKind::Template).map(|hit| {
            let href = Href::new(std::iter::once("templates").chain(hit.name.split('/')));
            row("template", href, hit.name.clone(), hit.summary.clone())
        }))
        .collect()
}
