//! The parts of a run's page: head, chart, lineage, cycles, agents, archive, notes.

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_base::text;
use aec_evolve::event::Kind;
use aec_evolve::gate;
use aec_evolve::run::Settings;
use aec_evolve::view::{AgentView, HoldoutView, RunState, View};
use aec_report::html::clip;
use aec_report::stats::Interval;

use super::{Place, chart, lineage, noun};
use crate::evolutions::{best, made};
use crate::href::Href;
use crate::html::{Align, Cell, Class, Html, facts, table};
use crate::pages::{Pager, experiments};
use crate::words;

/// Most characters of a note, a reason or a nudge.
const SENTENCES: usize = 2_000;

/// Most models, patterns and the like that are listed.
const NAMED: usize = 8;

pub(super) fn show(html: &mut Html, view: &View, place: &Place<'_>) {
    let chosen = lineage::choose(view, place.limits.candidates, place.chosen);
    let link = |name: &Name| candidate(place, &chosen, name);
    head(html, view, place);
    numbers(html, view);
    holdout(html, view);
    settings(html, view, place, &link);
    chart::show(html, view);
    lineage::show(html, view, place, &chosen);
    cycles(html, view, place, &link);
    if view.kind == Kind::Swarm {
        agents(html, view);
    }
    archive(html, view, place, &link);
    notes(html, view, place);
}

/// A candidate's name, with a link to where it is shown.
fn candidate(place: &Place<'_>, chosen: &[Name], name: &Name) -> Cell {
    let href = match &place.site {
        _ if chosen.contains(name) => Href::here(name.as_str()),
        Some(site) => site.href.clone().with("candidate", name.as_str()).at(name.as_str()),
        None => return name.as_str().into(),
    };
    Cell::Link(href, name.to_string())
}

fn head(html: &mut Html, view: &View, place: &Place<'_>) {
    html.raw("<div class=\"head\"><h1>").text(view.run.as_str()).raw("</h1>");
    html.add(&experiments::badge(view.state.name()));
    html.raw("<span class=\"quiet\">").text(noun(view.kind)).raw("</span>");
    if let Some(href) = place.site.as_ref().and_then(|site| site.experiment.as_ref()) {
        html.link(href, "Trials");
    }
    html.raw("</div>\n");
    if let Some(reason) = &view.reason {
        let word = if view.state == RunState::Ended { "Over" } else { "Stopped" };
        html.raw("<p class=\"data\">").text(word).raw(": ").text(&clip(reason, SENTENCES)).raw(".</p>\n");
    }
    html.add(&place.first);
}

/// An interval whose ends may be unknown.
pub(super) fn span(low: Option<f64>, high: Option<f64>) -> Option<Interval> {
    let finite = |end: Option<f64>| end.filter(|end| end.is_finite());
    Some(Interval { low: finite(low)?, high: finite(high)? })
}

fn numbers(html: &mut Html, view: &View) {
    let best = best(view);
    let interval = words::span(best.and_then(|best| span(best.low, best.high)));
    let trials = best.map_or(0, |best| best.trials);
    let held = view.holdout.as_ref();
    let held_interval = words::signed_span(held.and_then(|held| span(held.low, held.high)));
    html.raw("<div class=\"big\">");
    for (value, label) in [
        (
            words::share(best.and_then(|best| best.mean)),
            format!("mean reward of {} ({interval}, {})", view.best, text::count(trials, "trial")),
        ),
        (
            words::signed(held.and_then(|held| held.difference)),
            match held {
                Some(_) => format!("holdout gain ({held_interval})"),
                None => "holdout gain: not measured".to_owned(),
            },
        ),
        (
            format!("{} of {}", words::count(view.accepted), words::count(made(view))),
            "candidates accepted".to_owned(),
        ),
        (
            format!("{} of {}", words::count(view.tests as usize), words::count(view.horizon as usize)),
            "tests, of the most allowed".to_owned(),
        ),
        (
            view.cost.known(),
            format!(
                "{}trials {}, proposing {}",
                view.cost.left_out().map_or_else(String::new, |left_out| format!("and {left_out}; ")),
                view.cost.trials(),
                view.cost.voices()
            ),
        ),
    ] {
        html.raw("<div><b>").text(&value).raw("</b><span>").text(&label).raw("</span></div>");
    }
    html.raw("</div>\n");
}

fn holdout(html: &mut Html, view: &View) {
    let none_wanted = view.settings.as_ref().is_some_and(|settings| settings.holdout == Some(0));
    let said = match &view.holdout {
        Some(holdout) => held(holdout),
        None if none_wanted => "No tasks were kept for the end.".to_owned(),
        None if view.state != RunState::Ended => {
            "The tasks that are kept for the end were not used yet.".to_owned()
        }
        None if view.best == view.baseline => {
            "Nothing was accepted, so the tasks that were kept for the end stay unseen.".to_owned()
        }
        None => "Nothing was measured on tasks that are kept for the end.".to_owned(),
    };
    html.raw("<p>").text(&said).raw("</p>\n");
}

fn held(holdout: &HoldoutView) -> String {
    let left_out = match holdout.left_out {
        0 => String::new(),
        count => format!("; {} left out, without a reward on both sides", words::count(count)),
    };
    format!(
        "On {} that were kept for the end, the best has {} instead of {}: {} (95 % interval {}){left_out}.",
        text::count(holdout.pairs, "task"),
        words::share(holdout.best_mean),
        words::share(holdout.baseline_mean),
        words::signed(holdout.difference),
        words::signed_span(span(holdout.low, holdout.high)),
    )
}

fn settings(html: &mut Html, view: &View, place: &Place<'_>, link: &dyn Fn(&Name) -> Cell) {
    let experiment = match place.site.as_ref().and_then(|site| site.experiment.clone()) {
        Some(href) => Cell::Link(href, view.experiment.to_string()),
        None => view.experiment.as_str().into(),
    };
    let mut known: Vec<(&'static str, Cell)> = vec![
        ("best", link(&view.best)),
        ("began with", link(&view.baseline)),
        ("workspace", clip(&view.workspace, SENTENCES).into_owned().into()),
        ("experiment", experiment),
        ("started (UTC)", words::moment(view.started_at.as_str()).into()),
        ("last event (UTC)", words::moment(view.updated_at.as_str()).into()),
        ("tokens", words::maybe(Some(view.cost.tokens)).into()),
    ];
    if view.kind == Kind::Swarm {
        known.push(("phase", view.phase.name().into()));
    }
    if let Some(told) = &view.settings {
        known.extend(told_facts(told, view));
    }
    facts(html, &known);
    if view.settings.is_none() {
        html.note("This version of the program cannot read the settings of the run.");
    }
}

fn told_facts(told: &Settings, view: &View) -> Vec<(&'static str, Cell)> {
    let acceptance = &told.acceptance;
    let solver = match &told.solver.model {
        Some(model) => format!("{} with {model}", told.solver.harness.name()),
        None => told.solver.harness.name().to_owned(),
    };
    let mut evolvers: Vec<&str> = told.evolvers.iter().map(|voice| voice.model.as_str()).collect();
    evolvers.dedup();
    let tasks = match (&told.generate, &told.tasks) {
        (Some(made), _) => format!("made from {}, seed {}", made.template, made.seed),
        (None, Some(chosen)) => {
            let parts = chosen.dataset.iter().chain(&chosen.include_patterns);
            let parts: Vec<&str> = parts.map(String::as_str).collect();
            if parts.is_empty() { "of the project".to_owned() } else { listed(&parts) }
        }
        (None, None) => String::new(),
    };
    // The evidence that the first test needs; later tests need less after acceptances.
    let needed = gate::bar(acceptance, 0, 0, view.horizon).map(|bar| bar.needed);
    let amount =
        |dollars: Option<f64>| dollars.map(|dollars| words::dollars(Some(dollars))).unwrap_or_default();
    vec![
        ("strategy", told.strategy.name().into()),
        ("batch size", told.batch_size.to_string().into()),
        ("cycles at most", told.max_cycles.to_string().into()),
        ("accepted above", words::signed(Some(acceptance.improvement_threshold)).into()),
        ("error rate of the run", acceptance.error_rate.to_string().into()),
        ("tasks of a test at most", acceptance.max_tasks.to_string().into()),
        ("evidence that the first test needs", needed.map(evidence).unwrap_or_default().into()),
        ("evolver", listed(&evolvers).into()),
        ("solver", clip(&solver, SENTENCES).into_owned().into()),
        ("tasks", clip(&tasks, SENTENCES).into_owned().into()),
        ("backend", told.backend.name().into()),
        ("dollars at most", amount(told.max_cost_usd).into()),
        ("dollars for trials at most", amount(told.eval_budget_usd).into()),
        ("tokens at most", told.max_tokens.map(|most| words::maybe(Some(most))).unwrap_or_default().into()),
    ]
}

/// Some names, and the number of the others.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMED).map(|name| clip(name, SENTENCES).into_owned()).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", words::count(more)) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Evidence, which grows without bound.
fn evidence(value: f64) -> String {
    match value {
        value if !value.is_finite() => words::UNKNOWN.to_owned(),
        value if value >= 1e6 => format!("{value:.1e}"),
        value if value >= 100.0 => rounded(value, 0),
        value if value >= 10.0 => rounded(value, 1),
        value => rounded(value, 2),
    }
}

fn cycles(html: &mut Html, view: &View, place: &Place<'_>, link: &dyn Fn(&Name) -> Cell) {
    html.heading("Cycles");
    let all = &view.cycles;
    if all.is_empty() {
        html.hint("No cycle is over yet.");
        return;
    }
    let pager = place.site.as_ref().map(|site| (Pager::new(site.asked, all.len()), site.asked));
    let range =
        pager.as_ref().map_or_else(|| 0..all.len().min(place.limits.rows), |(pager, _)| pager.range());
    table(
        html,
        &[
            ("agent", Align::Left),
            ("cycle", Align::Right),
            ("way", Align::Left),
            ("from", Align::Left),
            ("candidate", Align::Left),
            ("what is new", Align::Left),
            ("gain", Align::Right),
            ("95 % interval", Align::Right),
            ("pairs", Align::Right),
            ("evidence", Align::Right),
            ("outcome", Align::Left),
            ("mean of the best", Align::Right),
        ],
        all[range].iter().map(|cycle| {
            let standing = cycle.standing.as_ref();
            let gain = standing.map(|standing| standing.difference);
            let interval = standing.and_then(|standing| span(Some(standing.low), Some(standing.high)));
            let outcome = clip(&cycle.outcome, SENTENCES).into_owned();
            vec![
                clip(&cycle.agent, SENTENCES).into_owned().into(),
                cycle.cycle.to_string().into(),
                cycle.way.name().into(),
                link(&cycle.parent),
                cycle.candidate.as_ref().map_or_else(|| Cell::from(""), link),
                clip(&cycle.summary, SENTENCES).into_owned().into(),
                words::signed(gain).into(),
                words::signed_span(interval).into(),
                standing
                    .map_or_else(|| words::UNKNOWN.to_owned(), |standing| words::count(standing.pairs))
                    .into(),
                standing
                    .map_or_else(|| words::UNKNOWN.to_owned(), |standing| evidence(standing.evidence))
                    .into(),
                if cycle.accepted { Cell::Result(Class::Pass, outcome) } else { outcome.into() },
                words::share(cycle.best_mean).into(),
            ]
        }),
    );
    match pager {
        Some((pager, asked)) => pager.show(html, asked, "cycles"),
        None => more(html, all.len(), place.limits.rows, "cycle", view),
    }
    html.hint("Gain: mean difference of rewards on the same tasks, against the best where the candidate came to a test, else against its parent. Its interval holds at every look. A candidate is accepted when the evidence reaches what its test needs.");
}

/// The command that shows everything.
pub(super) fn command(view: &View) -> String {
    format!("aec-bench --json evolve report {}/{}", view.kind.name(), view.run)
}

/// Tells what a table leaves out.
fn more(html: &mut Html, all: usize, shown: usize, noun: &str, view: &View) {
    if all > shown {
        html.hint(&format!("and {} more; `{}` has all", text::count(all - shown, noun), command(view)));
    }
}

fn agents(html: &mut Html, view: &View) {
    html.heading("Agents");
    let named = view.settings.as_ref().map(|told| told.agents(view.kind)).unwrap_or_default();
    let seat = |agent: &AgentView| named.iter().position(|name| *name == agent.name);
    let mut all: Vec<&AgentView> = view.agents.iter().collect();
    // In the order of the file: a tenth agent comes after the second.
    all.sort_by_key(|agent| seat(agent).unwrap_or(usize::MAX));
    table(
        html,
        &[
            ("agent", Align::Left),
            ("model", Align::Left),
            ("cycle", Align::Right),
            ("way", Align::Left),
            ("without acceptance", Align::Right),
            ("without progress", Align::Right),
            ("doing", Align::Left),
        ],
        all.iter().take(crate::pages::ROWS).map(|agent| {
            let told = view.settings.as_ref().zip(seat(agent));
            let model =
                told.and_then(|(told, seat)| told.evolvers.get(seat)).map(|voice| voice.model.as_str());
            let doing = match &agent.retired {
                Some(why) => format!("retired: {why}"),
                None => agent.doing.clone(),
            };
            vec![
                clip(&agent.name, SENTENCES).into_owned().into(),
                clip(model.unwrap_or_default(), SENTENCES).into_owned().into(),
                agent.cycle.to_string().into(),
                agent.way.name().into(),
                agent.without_acceptance.to_string().into(),
                agent.without_progress.to_string().into(),
                clip(&doing, SENTENCES).into_owned().into(),
            ]
        }),
    );
}

fn archive(html: &mut Html, view: &View, place: &Place<'_>, link: &dyn Fn(&Name) -> Cell) {
    html.heading("Archive");
    html.hint(&format!(
        "The best known candidate of each way of working: {} of {} are filled. A cell is the class of letters of the prompt, tokens of a trial, calls of tools in a turn, and share of turns that look back at the work.",
        words::count(view.archive.len()),
        text::count(view.cells, "cell")
    ));
    if view.archive.is_empty() {
        return;
    }
    table(
        html,
        &[
            ("cell", Align::Left),
            ("candidate", Align::Left),
            ("found by", Align::Left),
            ("accepted", Align::Left),
            ("mean", Align::Right),
            ("95 % interval", Align::Right),
            ("trials", Align::Right),
            ("letters", Align::Right),
            ("tokens", Align::Right),
            ("calls", Align::Right),
            ("looks back", Align::Right),
            ("taken as parent", Align::Right),
        ],
        view.archive.iter().take(place.limits.rows).map(|elite| {
            let works = &elite.behaviour;
            vec![
                elite.cell.to_string().into(),
                link(&elite.name),
                clip(&elite.agent, SENTENCES).into_owned().into(),
                if elite.accepted { Cell::Result(Class::Pass, "yes".to_owned()) } else { "no".into() },
                words::share(Some(elite.mean)).into(),
                words::span(span(Some(elite.low), Some(elite.high))).into(),
                words::count(elite.trials).into(),
                rounded(works.prompt_letters, 0).into(),
                rounded(works.tokens, 0).into(),
                rounded(works.calls, 2).into(),
                words::share(Some(works.checks)).into(),
                elite.selected.to_string().into(),
            ]
        }),
    );
    more(html, view.archive.len(), place.limits.rows, "cell", view);
}

fn notes(html: &mut Html, view: &View, place: &Place<'_>) {
    if view.notes.is_empty() {
        return;
    }
    html.heading("Notes");
    let skipped = view.notes.len().saturating_sub(place.limits.rows);
    table(
        html,
        &[("agent", Align::Left), ("its note to the others", Align::Left)],
        view.notes.iter().skip(skipped).map(|note| {
            vec![
                clip(&note.agent, SENTENCES).into_owned().into(),
                clip(&note.text, SENTENCES).into_owned().into(),
            ]
        }),
    );
    more(html, view.notes.len(), place.limits.rows, "note", view);
}
