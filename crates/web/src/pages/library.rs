//! The tasks of the project, and the page of one task.

use aec_base::label::{Beginnings, Labels};
use aec_base::problem::Severity;
use aec_ledger::index::Filter;
use aec_ledger::layout::stem;
use aec_task::catalogue::TaskDirectory;
use aec_task::file::{Difficulty, Visibility};
use aec_task::task::{Task, primary_output};
use aec_task::validate::check;

use super::{Page, Pager, crumbs, empty, problems, task_link};
use crate::href::{self, Asked, Href};
use crate::html::{Align, Cell, Class, Html, facts, select, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// Most trials on a task's page.
const TRIALS: usize = 50;

pub(crate) fn list(site: &Site, asked: &Asked) -> Page {
    let catalogue = site.catalogue();
    let mut body = Html::default();
    body.raw("<h1>Tasks</h1>\n");
    if catalogue.tasks.is_empty() && catalogue.problems.is_empty() {
        empty(
            &mut body,
            "This project has no tasks yet. Make one, or some from a template:",
            "aec-bench task new DISCIPLINE/NAME\naec-bench generate task TEMPLATE",
        );
        return Page::new("Tasks", "library", body);
    }
    let mut disciplines: Vec<&str> = catalogue.tasks.iter().map(|task| task.domain.as_str()).collect();
    disciplines.sort_unstable();
    disciplines.dedup();
    body.raw("<form class=\"tools\"><input type=\"text\" name=\"q\" placeholder=\"id or tag contains\" aria-label=\"Id or tag contains\" value=\"");
    body.text(asked.get("q").unwrap_or_default()).raw("\">\n");
    select(&mut body, "discipline", "Discipline", "all disciplines", &disciplines, asked.get("discipline"));
    select(&mut body, "difficulty", "Difficulty", "all difficulties", &tiers(), asked.get("difficulty"));
    body.raw("<button type=\"submit\">Filter</button></form>\n");
    let labels = Site::task_labels(&catalogue);
    let chosen: Vec<&Task> = catalogue.tasks.iter().filter(|task| fits(task, &labels, asked)).collect();
    let pager = Pager::new(asked, chosen.len());
    table(
        &mut body,
        &[
            ("task", Align::Left),
            ("discipline", Align::Left),
            ("difficulty", Align::Left),
            ("visibility", Align::Left),
            ("tags", Align::Left),
        ],
        chosen[pager.range()].iter().map(|task| {
            vec![
                task_link(&labels, task.id.as_str()),
                task.domain.clone().into(),
                task.difficulty.map_or("unknown", Difficulty::name).into(),
                task.visibility.map_or("unknown", Visibility::name).into(),
                Cell::Html(tags(&task.tags)),
            ]
        }),
    );
    pager.show(&mut body, asked, "tasks");
    if !catalogue.problems.is_empty() {
        body.heading("Tasks that cannot be used");
        problems(&mut body, &catalogue.problems, &labels);
    }
    Page::new("Tasks", "library", body)
}

fn tiers() -> Vec<&'static str> {
    Difficulty::NAMES.iter().copied().chain(["unknown"]).collect()
}

fn fits(task: &Task, labels: &Labels, asked: &Asked) -> bool {
    let words = asked.get("q").map(str::to_lowercase);
    let has = |text: &str| words.as_ref().is_none_or(|words| text.to_lowercase().contains(words));
    let is = |name: &str, found: &str| asked.get(name).is_none_or(|wanted| wanted == found);
    let id = task.id.as_str();
    (has(id) || has(labels.get(id)) || task.tags.iter().any(|tag| has(tag)))
        && is("discipline", &task.domain)
        && is("difficulty", task.difficulty.map_or("unknown", Difficulty::name))
}

pub(super) fn tags(tags: &[String]) -> Html {
    let mut html = Html::default();
    for tag in tags {
        html.raw("<span class=\"tag\">").text(tag).raw("</span>");
    }
    html
}

pub(crate) fn task(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let id = asked.segments[1..].join("/");
    let catalogue = site.catalogue();
    let Some(task) = catalogue.tasks.iter().find(|task| task.id.as_str() == id) else {
        return missing(site, &id);
    };
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new(["library"]), "Tasks")]);
    let labels = Site::task_labels(&catalogue);
    let label = labels.get(&id);
    body.raw("<h1>").label(label, &id).raw("</h1>\n");
    let instruction = task.instruction();
    let tools: Vec<String> = task.tools().into_iter().map(|tool| tool.name).collect();
    let template = task.generation.as_ref().and_then(|generation| generation.template.clone());
    let output = instruction.as_deref().map(primary_output).unwrap_or_default();
    let network = if task.environment.allow_internet { "yes" } else { "no" };
    facts(
        &mut body,
        &[
            ("id", id.as_str().into()),
            ("discipline", task.domain.clone().into()),
            ("category", task.category.clone().unwrap_or_default().into()),
            ("difficulty", task.difficulty.map_or("unknown", Difficulty::name).into()),
            ("visibility", task.visibility.map_or("unknown", Visibility::name).into()),
            ("lifecycle", task.lifecycle.name().into()),
            ("standard", task.standard.clone().unwrap_or_default().into()),
            ("template", template_cell(site, template)),
            ("output", output.into()),
            ("verifier", task.verifier_entry().unwrap_or("none").into()),
            ("agent time", format!("{} s", task.agent.timeout_sec).into()),
            ("memory", format!("{} MiB", task.environment.memory_mb).into()),
            ("internet", network.into()),
            ("tools", tools.join(", ").into()),
            ("tags", if task.tags.is_empty() { "".into() } else { Cell::Html(tags(&task.tags)) }),
        ],
    );
    let directory =
        TaskDirectory { id: task.id.clone(), path: task.path.clone(), has_instruction: instruction.is_ok() };
    let mut found: Vec<_> = check(&[directory]).into_iter().flat_map(|report| report.problems).collect();
    found.sort_by_key(|problem| problem.severity);
    let bad = found.iter().filter(|problem| problem.severity != Severity::Note).count();
    body.heading(if bad > 0 { "Problems" } else { "Validation" });
    if found.is_empty() {
        body.hint(
            "Nothing is wrong with its files. `aec-bench audit` says whether its verifier can be trusted.",
        );
    }
    problems(&mut body, &found, &labels);
    body.heading("Prompt");
    match &instruction {
        Ok(text) => body.verbatim(text),
        Err(error) => body.note(&format!("The prompt cannot be read: {error}")),
    };
    trials(&mut body, site, task)?;
    Ok(Page::new(label, "library", body))
}

fn template_cell(site: &Site, template: Option<String>) -> Cell {
    let Some(name) = template else { return "".into() };
    match site.library().find(&name) {
        Ok(found) => Cell::Link(Href::new(["templates", &found.discipline, &found.name]), name),
        Err(_) => name.into(),
    }
}

/// A task that is not in the catalogue may exist but be broken, or may only occur in records.
fn missing(site: &Site, id: &str) -> Result<Page, Trouble> {
    let catalogue = site.catalogue();
    let broken: Vec<_> =
        catalogue.problems.iter().filter(|problem| problem.about.as_deref() == Some(id)).cloned().collect();
    if broken.is_empty() {
        let shown = aec_base::text::printable(id);
        return Err(Trouble::missing(
            format!("there is no task `{shown}` in this project"),
            "the list of tasks has all; one that was run may have been moved or removed since",
        ));
    }
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new(["library"]), "Tasks")]);
    let labels = Site::task_labels(&catalogue);
    let label = labels.get(id);
    body.raw("<h1>").label(label, id).raw("</h1>\n");
    facts(&mut body, &[("id", id.into())]);
    body.note("This task cannot be used as it is.");
    problems(&mut body, &broken, &labels);
    Ok(Page::new(label, "library", body))
}

fn trials(html: &mut Html, site: &Site, task: &Task) -> Result<(), Trouble> {
    if site.snapshot()?.summaries.is_empty() {
        return Ok(());
    }
    let filter = Filter {
        fields: vec![("task_id".to_owned(), task.id.to_string())],
        limit: Some(TRIALS),
        ..Filter::default()
    };
    let (rows, _) = site.ask(|index| index.query(&filter))?;
    let trials = Beginnings::of(rows.iter().map(|row| row.trial_id.as_str()));
    html.heading("Latest trials");
    if rows.is_empty() {
        html.hint("It was not run yet.");
        return Ok(());
    }
    table(
        html,
        &[
            ("trial", Align::Left),
            ("experiment", Align::Left),
            ("agent", Align::Left),
            ("outcome", Align::Left),
            ("reward", Align::Right),
            ("began (UTC)", Align::Right),
        ],
        rows.iter().map(|row| {
            let experiment = row.experiment_id.as_str();
            vec![
                Cell::label_link(
                    href::trial(experiment, &row.trial_id, row.attempt),
                    stem(trials.get(row.trial_id.as_str()), row.attempt),
                    stem(&row.trial_id, row.attempt),
                ),
                Cell::Link(href::experiment(experiment), experiment.to_owned()),
                row.agent.to_string().into(),
                row.outcome.name().into(),
                Cell::Result(Class::of(row.reward), words::share(row.reward)),
                words::moment(row.timestamp.as_str()).into(),
            ]
        }),
    );
    Ok(())
}
