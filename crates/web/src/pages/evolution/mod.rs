//! Runs of evolution and swarms: a list of them, and a page of each with lineage, scores by cycle, changes and cost.
//! The page of a run is part of the site and can also be a separate file.

mod changes;
mod chart;
mod lineage;
mod run;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use aec_base::label::Labels;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_evolve::event::Kind;
use aec_evolve::run::RunDirectory;
use aec_evolve::view::{CandidateView, RunState, View};
use aec_report::html::STYLE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Page, Pager, ROWS, crumbs, empty, experiments, problems};
use crate::assets::WEB_STYLE;
use crate::evolutions::{Line, Missing, Progress, started};
use crate::href::{self, Asked, Href};
use crate::html::{Align, Cell, Html, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// How long a page may spend on reading new runs; the remaining ones come with the next load.
const PATIENCE: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Candidates of the lineage.
    candidates: usize,
    /// Rows of a table.
    rows: usize,
    /// Characters of all changes together.
    changes: usize,
}

const SITE: Limits = Limits { candidates: ROWS, rows: ROWS, changes: 1_000_000 };

/// A file has no other pages, so it shows more.
const FILE: Limits = Limits { candidates: 500, rows: 2_000, changes: 3_000_000 };

struct Place<'a> {
    limits: Limits,
    /// Present in the site; a file links to nothing.
    site: Option<SitePlace<'a>>,
    /// The candidate that the user asked for.
    chosen: Option<&'a Name>,
    /// Shown right below the name of the run.
    first: Html,
}

struct SitePlace<'a> {
    asked: &'a Asked,
    href: Href,
    /// The experiment's page, if there is one.
    experiment: Option<Href>,
}

/// The page as one file that needs nothing else.
pub fn standalone(view: &View) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"")
        .text(&policy(&[STYLE, WEB_STYLE].concat()))
        .raw("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .raw("<meta name=\"referrer\" content=\"no-referrer\">\n<title>")
        .text(&title(view))
        .raw("</title>\n<style>")
        .raw(STYLE)
        .raw(WEB_STYLE)
        .raw("</style>\n</head>\n<body>\n<main id=\"main\">\n");
    let mut first = Html::default();
    let made = |candidate: &&CandidateView| !candidate.parents.is_empty();
    let mut made = view.candidates.iter().filter(made).peekable();
    if made.peek().is_some() && made.all(|candidate| candidate.diff.is_none()) {
        first.note(&without_workspace(view));
    }
    run::show(&mut html, view, &Place { limits: FILE, site: None, chosen: None, first });
    html.raw("</main>\n<footer><p>Made by aec-bench. One file, no script, no network: a policy in the page forbids both.</p></footer>\n</body>\n</html>\n");
    html.into_string()
}

fn without_workspace(view: &View) -> String {
    format!(
        "Changes are not shown: the workspace {} is not there, is not versioned, or does not have these candidates.",
        view.workspace
    )
}

/// Nothing is loaded, nothing runs, and only this style applies.
fn policy(style: &str) -> String {
    let digest = STANDARD.encode(aec_base::digest::Digest::of(style.as_bytes()).bytes());
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
}

fn title(view: &View) -> String {
    format!("{} · {}", view.run, noun(view.kind))
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Evolution => "evolution",
        Kind::Swarm => "swarm",
    }
}

fn href(directory: &RunDirectory) -> Href {
    Href::new(["evolution", directory.kind.name(), directory.run.as_str()])
}

pub(crate) fn link_from(html: &mut Html, site: &Site, experiment: &Name) {
    if let Some(directory) = site.evolution_of(experiment) {
        html.link(&href(&directory), if directory.kind == Kind::Swarm { "Swarm" } else { "Evolution" });
    }
}

/// Runs whose names contain some words: address, name, kind.
pub(crate) fn found(
    site: &Site,
    fits: impl Fn(&str) -> bool,
    most: usize,
) -> Vec<(Href, String, &'static str)> {
    let runs = site.evolution_runs().unwrap_or_default();
    runs.iter()
        .filter(|run| fits(run.run.as_str()))
        .take(most)
        .map(|run| (href(run), run.run.to_string(), noun(run.kind)))
        .collect()
}

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let directory = site.evolution_run(&asked.segments[1], &asked.segments[2])?;
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new(["evolution"]), "Evolution")]);
    let read = match site.evolution(&directory) {
        Ok(read) => read,
        Err(found) => {
            body.raw("<h1>").text(directory.run.as_str()).raw("</h1>\n");
            problems(&mut body, &found, &Labels::default());
            return Ok(Page::new(directory.run.to_string(), "evolution", body));
        }
    };
    let mut view = (*read).clone();
    // An unknown name chooses nothing.
    let asked_for = asked.get("candidate");
    let chosen = view.candidates.iter().map(|candidate| &candidate.name);
    let chosen = chosen.into_iter().find(|name| asked_for == Some(name.as_str())).cloned();
    let wanted = lineage::choose(&view, SITE.candidates, chosen.as_ref());
    let missing = site.add_differences(&mut view, &wanted);
    let experiment = site.experiment(view.experiment.as_str()).ok();
    let mut first = Html::default();
    if view.state == RunState::Running {
        live(&mut first, &directory, &view);
    }
    match missing {
        Missing::Nothing => {}
        Missing::Workspace => {
            first.note(&without_workspace(&view));
        }
        Missing::Late => {
            first.note("Changes of some candidates are not ready yet; load the page again to see them.");
        }
    }
    let place = Place {
        limits: SITE,
        site: Some(SitePlace {
            asked,
            href: href(&directory),
            experiment: experiment.map(|name| href::experiment(name.as_str())),
        }),
        chosen: chosen.as_ref(),
        first,
    };
    run::show(&mut body, &view, &place);
    Ok(Page::new(title(&view), "evolution", body))
}

/// The progress of a run. The script keeps it up to date; without the script, the page is reloaded.
fn live(html: &mut Html, directory: &RunDirectory, view: &View) {
    let progress = Progress::of(view);
    let stream = Href::new(["live", "evolution", directory.kind.name(), directory.run.as_str()]);
    html.raw("<section class=\"live\" id=\"live-evolution\" aria-label=\"Progress\" data-stream=\"")
        .text(stream.as_str())
        .raw("\" data-cycles=\"")
        .text(&progress.cycles.to_string())
        .raw("\">\n<p id=\"live-counts\">")
        .text(&progress.counts)
        .raw("</p>\n<ul id=\"live-agents\">");
    for agent in &progress.agents {
        html.raw("<li>")
            .text(&format!("{}, cycle {}: {}", agent.name, agent.cycle, agent.doing))
            .raw("</li>");
    }
    html.raw("</ul>\n<p><a id=\"live-more\" href=\"")
        .text(href(directory).as_str())
        .raw("\">Load again</a></p>\n</section>\n");
}

pub(crate) fn list(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let mut body = Html::default();
    body.raw("<h1>Evolution</h1>\n");
    let runs = site.evolution_runs().map_err(|error| {
        Trouble::internal(format!("the runs cannot be read: {error}"), "check the permissions of `feedback`")
    })?;
    if runs.is_empty() {
        empty(
            &mut body,
            "Nothing was evolved in this project yet. A run appears here as soon as it starts:",
            "aec-bench evolve init workspaces/NAME\naec-bench evolve run -c evolution.yaml",
        );
        return Ok(Page::new("Evolution", "evolution", body));
    }
    let mut runs: Vec<(Option<Timestamp>, RunDirectory)> =
        runs.into_iter().map(|directory| (started(&directory), directory)).collect();
    // A run whose beginning cannot be read comes first, because something is wrong with it.
    runs.sort_by(|(one_at, one), (other_at, other)| {
        (one_at.is_some(), other_at, &one.run).cmp(&(other_at.is_some(), one_at, &other.run))
    });
    let pager = Pager::new(asked, runs.len());
    let begun = Instant::now();
    let mut waiting = 0;
    let mut found: Vec<Problem> = Vec::new();
    let mut rows = Vec::new();
    for (at, directory) in &runs[pager.range()] {
        let line = if begun.elapsed() < PATIENCE {
            site.evolution_line(directory).map(Some)
        } else {
            Ok(site.known_evolution_line(directory))
        };
        let line = line.unwrap_or_else(|broken| {
            let about = format!("{} {}", noun(directory.kind), directory.run);
            found.extend(broken.into_iter().map(|problem| problem.about(about.clone())));
            None
        });
        waiting += usize::from(line.is_none());
        rows.push(row(directory, at.as_ref(), line.as_deref()));
    }
    // Runs with problems do not become ready by waiting.
    waiting -= found.len().min(waiting);
    problems(&mut body, &found, &Labels::default());
    table(
        &mut body,
        &[
            ("run", Align::Left),
            ("kind", Align::Left),
            ("state", Align::Left),
            ("cycles", Align::Right),
            ("accepted", Align::Right),
            ("best", Align::Left),
            ("mean reward", Align::Right),
            ("cost", Align::Right),
            ("started (UTC)", Align::Right),
        ],
        rows,
    );
    pager.show(&mut body, asked, "runs");
    if waiting > 0 {
        body.hint("Some runs are not read yet; load the page again to see them.");
    }
    Ok(Page::new("Evolution", "evolution", body))
}

fn row(directory: &RunDirectory, at: Option<&Timestamp>, line: Option<&Line>) -> Vec<Cell> {
    let of =
        |value: fn(&Line) -> String| -> Cell { line.map_or_else(|| words::UNKNOWN.to_owned(), value).into() };
    vec![
        Cell::Link(href(directory), directory.run.to_string()),
        noun(directory.kind).into(),
        Cell::Html(line.map(|line| experiments::badge(line.state.name())).unwrap_or_default()),
        of(|line| words::count(line.cycles)),
        of(|line| format!("{} of {}", words::count(line.accepted), words::count(line.candidates))),
        of(|line| line.best.to_string()),
        of(|line| words::share(line.best_mean)),
        of(|line| line.cost.clone()),
        at.map_or_else(|| words::UNKNOWN.to_owned(), |at| words::moment(at.as_str())).into(),
    ]
}
