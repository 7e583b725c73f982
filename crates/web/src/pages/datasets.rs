//! Datasets, and a cheap check that their tasks still exist.

use aec_base::label::Labels;
use aec_ledger::index::Filter;
use aec_task::dataset::manifest::Manifest;
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use aec_task::file::Difficulty;

use super::library::tags;
use super::{Page, Pager, crumbs, empty, problems, task_link};
use crate::href::{self, Asked, Href};
use crate::html::{Align, Cell, Class, Html, facts, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

pub(crate) fn list(site: &Site, asked: &Asked) -> Page {
    let (manifests, found) = Store::new(&site.places.datasets).list();
    let mut body = Html::default();
    body.raw("<h1>Datasets</h1>\n");
    if manifests.is_empty() && found.is_empty() {
        empty(
            &mut body,
            "No dataset was made yet. One is a frozen list of tasks:",
            "aec-bench dataset create --name NAME --version 1.0.0",
        );
    } else {
        let pager = Pager::new(asked, manifests.len());
        table(
            &mut body,
            &[
                ("dataset", Align::Left),
                ("tasks", Align::Right),
                ("disciplines", Align::Left),
                ("made (UTC)", Align::Right),
                ("about", Align::Left),
            ],
            manifests[pager.range()].iter().map(|manifest| {
                vec![
                    Cell::Link(Href::new(["datasets", &manifest.reference()]), manifest.reference()),
                    words::count(manifest.tasks.len()).into(),
                    manifest.description.domains.join(", ").into(),
                    words::moment(manifest.created_at.as_str()).into(),
                    manifest.description.summary.clone().into(),
                ]
            }),
        );
        pager.show(&mut body, asked, "datasets");
    }
    problems(&mut body, &found, &Labels::default());
    Page::new("Datasets", "datasets", body)
}

pub(crate) fn dataset(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let missing = |what: String| Trouble::missing(what, "the list of datasets has all");
    let reference = DatasetRef::parse(&asked.segments[1]).map_err(|problem| missing(problem.what))?;
    let manifest = Store::new(&site.places.datasets).read(&reference).map_err(|found| {
        missing(
            found
                .first()
                .map_or_else(|| "there is no such dataset".to_owned(), |problem| problem.what.clone()),
        )
    })?;
    let title = manifest.reference();
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new(["datasets"]), "Datasets")]);
    body.raw("<h1>")
        .text(&title)
        .raw("</h1>\n<p class=\"data\">")
        .text(&manifest.description.summary)
        .raw("</p>\n");
    let tiers: Vec<String> = manifest
        .description
        .difficulty_distribution
        .iter()
        .map(|(difficulty, count)| format!("{count} {difficulty}"))
        .collect();
    facts(
        &mut body,
        &[
            ("tasks", words::count(manifest.tasks.len()).into()),
            ("difficulties", tiers.join(", ").into()),
            ("disciplines", manifest.description.domains.join(", ").into()),
            ("standards", manifest.description.standards.join(", ").into()),
            ("purpose", manifest.description.purpose.clone().unwrap_or_default().into()),
            ("made (UTC)", words::moment(manifest.created_at.as_str()).into()),
            ("content hash", manifest.content_hash.hex()[..16].to_owned().into()),
        ],
    );
    let catalogue = site.catalogue();
    let is_there = |id: &str| catalogue.tasks.iter().any(|task| task.id.is(id));
    integrity(&mut body, &manifest, &is_there);
    experiments(&mut body, site, &title)?;
    let ids: Vec<String> = manifest
        .tasks
        .iter()
        .map(|task| task.id().map_or_else(|| task.task_id.clone(), |id| id.to_string()))
        .collect();
    let labels = Labels::of(ids.iter().map(String::as_str));
    body.heading("Tasks");
    let pager = Pager::new(asked, manifest.tasks.len());
    table(
        &mut body,
        &[
            ("task", Align::Left),
            ("discipline", Align::Left),
            ("difficulty", Align::Left),
            ("hash", Align::Left),
            ("here", Align::Left),
            ("tags", Align::Left),
        ],
        manifest.tasks[pager.range()].iter().zip(&ids[pager.range()]).map(|(task, id)| {
            let here = is_there(&task.task_id);
            vec![
                if here { task_link(&labels, id) } else { Cell::label(labels.get(id), id) },
                task.domain.clone().into(),
                task.difficulty.map_or("unknown", Difficulty::name).into(),
                task.content_hash.hex()[..12].to_owned().into(),
                if here {
                    Cell::Result(Class::Pass, "yes".to_owned())
                } else {
                    Cell::Result(Class::Fail, "no".to_owned())
                },
                Cell::Html(tags(&task.tags)),
            ]
        }),
    );
    pager.show(&mut body, asked, "tasks");
    Ok(Page::new(title, "datasets", body))
}

/// The check that does not read the files of its tasks.
fn integrity(html: &mut Html, manifest: &Manifest, is_there: &dyn Fn(&str) -> bool) {
    if manifest.hash_of_tasks() != manifest.content_hash {
        html.note("The manifest was changed: its hash is not the one of the tasks that it lists.");
    }
    let gone = manifest.tasks.iter().filter(|task| !is_there(&task.task_id)).count();
    if gone > 0 {
        html.note(&format!(
            "{} not in this project.",
            match gone {
                1 => "1 task is".to_owned(),
                many => format!("{} tasks are", words::count(many)),
            }
        ));
    }
    html.hint(&format!(
        "Only the manifest was looked at. `aec-bench dataset verify {}` compares every file.",
        manifest.reference()
    ));
}

fn experiments(html: &mut Html, site: &Site, dataset: &str) -> Result<(), Trouble> {
    let snapshot = site.snapshot()?;
    let mut found = Vec::new();
    for summary in &snapshot.summaries {
        let filter = Filter {
            experiments: vec![summary.experiment_id.to_string()],
            dataset: Some(dataset.to_owned()),
            limit: Some(1),
            ..Filter::default()
        };
        if found.len() < super::ROWS && !site.ask(|index| index.query(&filter))?.0.is_empty() {
            found.push(summary);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    html.heading("Experiments on it");
    table(
        html,
        &[("experiment", Align::Left), ("trials", Align::Right), ("mean of scored", Align::Right)],
        found.into_iter().map(|summary| {
            let id = summary.experiment_id.as_str();
            vec![
                Cell::Link(href::experiment(id), id.to_owned()),
                words::count(summary.trials.count).into(),
                words::mean_of(&summary.trials).into(),
            ]
        }),
    );
    Ok(())
}
