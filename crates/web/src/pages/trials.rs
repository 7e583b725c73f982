//! The list of an experiment's trials: filtered, sorted and divided into pages.

use std::borrow::Cow;

use aec_base::name::Name;
use aec_judge::verdict::Outcome;
use aec_ledger::layout::stem;
use aec_report::label::PageLabels;
use aec_report::selection::{Selection, Trial};

use super::Pager;
use crate::href::{self, Asked};
use crate::html::{Align, Cell, Class, Html, select, select_labelled, table};
use crate::records::Evaluated;
use crate::words;

const ORDERS: [&str; 5] = ["task", "reward", "cost", "time", "attempt"];

/// Most entries of one selection box.
const CHOICES: usize = 200;

const RESULTS: [Class; 4] = [Class::Pass, Class::Partial, Class::Fail, Class::Fault];

pub(super) fn show(html: &mut Html, asked: &Asked, evaluated: &Evaluated) {
    let (selection, labels) = (&evaluated.selection, &evaluated.labels);
    html.raw("<h2 id=\"trials\">Trials</h2>\n");
    form(html, asked, selection, labels);
    let chosen = choose(asked, selection, labels);
    let pager = Pager::new(asked, chosen.len());
    let rows: Vec<Vec<Cell>> =
        chosen[pager.range()].iter().map(|at| row(selection, labels, &selection.trials[*at])).collect();
    if rows.is_empty() {
        html.hint("No trial fits. Clear the filters to see all.");
        return;
    }
    table(
        html,
        &[
            ("trial", Align::Left),
            ("task", Align::Left),
            ("agent", Align::Left),
            ("rep.", Align::Right),
            ("outcome", Align::Left),
            ("reward", Align::Right),
            ("tokens in / out", Align::Right),
            ("cost", Align::Right),
            ("time", Align::Right),
        ],
        rows,
    );
    pager.show(html, asked, "trials");
}

fn form(html: &mut Html, asked: &Asked, selection: &Selection, labels: &PageLabels) {
    html.raw("<form class=\"tools\" action=\"#trials\"><input type=\"text\" name=\"task\" placeholder=\"task contains\" aria-label=\"Task contains\" value=\"")
        .text(asked.get("task").unwrap_or_default())
        .raw("\">\n");
    let unique = |names: Vec<&str>| {
        let names: std::collections::BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        names.into_iter().take(CHOICES).collect::<Vec<String>>()
    };
    let tasks = &selection.tasks;
    let choices = [
        ("agent", "all agents", unique(selection.agents.iter().map(|agent| agent.name.as_str()).collect())),
        (
            "difficulty",
            "all difficulties",
            unique(tasks.iter().map(|task| task.difficulty.as_deref().unwrap_or("unknown")).collect()),
        ),
        (
            "discipline",
            "all disciplines",
            unique(tasks.iter().map(|task| task.discipline.as_str()).collect()),
        ),
        ("family", "all families", unique(tasks.iter().map(|task| task.family.as_str()).collect())),
    ];
    let outcomes = Outcome::ALL.map(Outcome::name);
    let results = RESULTS.map(Class::name);
    for (name, all, names) in &choices {
        if names.len() > 1 {
            let shown: Vec<Cow<'_, str>> = names
                .iter()
                .map(|word| if *name == "family" { labels.family(word) } else { word.into() })
                .collect();
            let words = names.iter().map(String::as_str).zip(shown.iter().map(|label| &**label));
            select_labelled(html, name, name, all, words, asked.get(name));
        }
    }
    let mut choice = |name, all: &str, words: &[&str]| select(html, name, name, all, words, asked.get(name));
    choice("result", "all results", &results);
    choice("outcome", "all outcomes", &outcomes);
    choice("sort", "sorted by task", &ORDERS[1..]);
    html.raw("<button type=\"submit\">Filter</button>");
    if asked.without("page") != href::Href::new(&asked.segments) {
        html.raw(" ").link(&href::Href::new(&asked.segments), "Clear");
    }
    html.raw("</form>\n");
}

/// The indices of the requested trials, in order.
fn choose(asked: &Asked, selection: &Selection, labels: &PageLabels) -> Vec<usize> {
    let words = asked.get("task").map(str::to_lowercase);
    let is = |name: &str, found: &str| asked.get(name).is_none_or(|wanted| wanted == found);
    let tasks: Vec<bool> = selection
        .tasks
        .iter()
        .map(|task| {
            let has = |text: &str| words.as_ref().is_none_or(|words| text.to_lowercase().contains(words));
            (has(&task.id) || has(labels.task(&task.id)))
                && is("difficulty", task.difficulty.as_deref().unwrap_or("unknown"))
                && is("discipline", &task.discipline)
                && is("family", &task.family)
        })
        .collect();
    let agents: Vec<bool> = selection.agents.iter().map(|agent| is("agent", &agent.name)).collect();
    let fits = |trial: &Trial| {
        tasks[trial.task]
            && agents[trial.agent]
            && is("outcome", trial.outcome.name())
            && is("result", Class::of(trial.counted()).name())
    };
    let mut chosen: Vec<usize> =
        selection.trials.iter().enumerate().filter(|(_, trial)| fits(trial)).map(|(at, _)| at).collect();
    let value: Option<fn(&Trial) -> f64> = match asked.get("sort") {
        Some("reward") => Some(|trial| -trial.counted().unwrap_or(-1.0)),
        Some("cost") => Some(|trial| -trial.took.cost_usd),
        Some("time") => Some(|trial| -trial.seconds),
        Some("attempt") => Some(|trial| -f64::from(trial.attempt)),
        _ => None,
    };
    if let Some(value) = value {
        let trials = &selection.trials;
        chosen.sort_by(|a, b| value(&trials[*a]).total_cmp(&value(&trials[*b])));
    }
    chosen
}

fn row(selection: &Selection, labels: &PageLabels, trial: &Trial) -> Vec<Cell> {
    let (task, agent) = (&selection.tasks[trial.task], &selection.agents[trial.agent]);
    let experiment = &selection.experiments[trial.experiment].id;
    let (label, whole) = (labels.attempt(&trial.id, trial.attempt), stem(&trial.id, trial.attempt));
    let id = match Name::parse(&trial.id) {
        Ok(name) => Cell::label_link(href::trial(experiment, &name, trial.attempt), label, whole),
        Err(_) => Cell::label(label, whole),
    };
    let outcome = match (&trial.fault_kind, trial.attempt) {
        (Some(kind), 1) => format!("{}: {kind}", trial.outcome.name()),
        (Some(kind), attempt) => format!("{}: {kind}, attempt {attempt}", trial.outcome.name()),
        (None, 1) => trial.outcome.name().to_owned(),
        (None, attempt) => format!("{}, attempt {attempt}", trial.outcome.name()),
    };
    let tokens = if trial.took.without_tokens > 0 {
        words::UNKNOWN.to_owned()
    } else {
        format!(
            "{} / {}",
            words::maybe(Some(trial.took.tokens_in)),
            words::maybe(Some(trial.took.tokens_out))
        )
    };
    let class = Class::of(trial.counted());
    vec![
        id,
        Cell::label_link(href::task(&task.id), labels.task(&task.id), &task.id),
        agent.name.clone().into(),
        trial.repetition.to_string().into(),
        outcome.into(),
        Cell::Result(class, words::share(trial.counted())),
        tokens.into(),
        words::cost(trial.took.cost_usd, trial.took.without_cost).into(),
        words::seconds(Some(trial.seconds)).into(),
    ]
}
