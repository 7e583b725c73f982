//! Templates: their inputs, their outputs, and a prompt.

use aec_author::template::{Origin, Template};
use aec_base::label::Labels;
use aec_task::task::Task;
use serde::Serialize;

use super::{Page, Pager, crumbs, problems};
use crate::href::{self, Asked, Href};
use crate::html::{Align, Cell, Html, facts, select, table};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

pub(crate) fn list(site: &Site, asked: &Asked) -> Page {
    let library = site.library();
    let mut disciplines: Vec<&str> =
        library.templates.iter().map(|template| template.discipline.as_str()).collect();
    disciplines.sort_unstable();
    disciplines.dedup();
    let mut body = Html::default();
    body.raw("<h1>Templates</h1>\n<form class=\"tools\"><input type=\"text\" name=\"q\" placeholder=\"name or text contains\" aria-label=\"Name or text contains\" value=\"");
    body.text(asked.get("q").unwrap_or_default()).raw("\">\n");
    select(&mut body, "discipline", "Discipline", "all disciplines", &disciplines, asked.get("discipline"));
    body.raw("<button type=\"submit\">Filter</button></form>\n");
    let words = asked.get("q").map(str::to_lowercase);
    let fits = |template: &&Template| {
        let has = |text: &str| words.as_ref().is_none_or(|words| text.to_lowercase().contains(words));
        asked.get("discipline").is_none_or(|wanted| wanted == template.discipline)
            && (has(&template.path()) || has(&template.description))
    };
    let chosen: Vec<&Template> = library.templates.iter().filter(fits).collect();
    let pager = Pager::new(asked, chosen.len());
    table(
        &mut body,
        &[
            ("template", Align::Left),
            ("category", Align::Left),
            ("tiers", Align::Left),
            ("about", Align::Left),
            ("from", Align::Left),
        ],
        chosen[pager.range()].iter().map(|template| {
            let tiers: Vec<&str> = template.tiers.keys().map(String::as_str).collect();
            vec![
                Cell::Link(address(template), template.path()),
                template.category.clone().into(),
                tiers.join(", ").into(),
                template.description.clone().into(),
                origin(template).into(),
            ]
        }),
    );
    pager.show(&mut body, asked, "templates");
    if !library.problems.is_empty() {
        body.heading("Templates that cannot be used");
        problems(&mut body, &library.problems, &Labels::default());
    }
    Page::new("Templates", "templates", body)
}

fn address(template: &Template) -> Href {
    Href::new(["templates", &template.discipline, &template.name])
}

fn origin(template: &Template) -> &'static str {
    match template.origin {
        Origin::Library => "built in",
        Origin::Directory(_) => "this project",
    }
}

/// The word for a kind in files.
fn word(kind: &impl Serialize) -> String {
    serde_json::to_value(kind).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}

pub(crate) fn template(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let path = asked.segments[1..].join("/");
    let library = site.library();
    let Some(template) = library.templates.iter().find(|template| template.path() == path) else {
        let shown = aec_base::text::printable(&path);
        let fix = "the list of templates has all, and `aec-bench generate list-templates` too";
        return Err(Trouble::missing(format!("there is no template `{shown}`"), fix));
    };
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new(["templates"]), "Templates")]);
    body.raw("<h1>").text(&path).raw("</h1>\n<p class=\"data\">").text(&template.description).raw("</p>\n");
    if !template.long_description.is_empty() {
        body.raw("<p class=\"data\">").text(&template.long_description).raw("</p>\n");
    }
    facts(
        &mut body,
        &[
            ("category", template.category.clone().into()),
            ("version", template.version.to_string().into()),
            ("from", origin(template).into()),
            ("calculator", template.tool_modes.name().into()),
            ("worked examples", words::count(template.examples.len()).into()),
            ("situations", words::count(template.archetypes.len()).into()),
            ("standards", template.standards.join(", ").into()),
            ("tags", template.tags.join(", ").into()),
        ],
    );
    tiers(&mut body, template);
    body.raw("<div class=\"columns\"><section>").heading("Inputs");
    table(
        &mut body,
        &[("name", Align::Left), ("kind", Align::Left), ("unit", Align::Left), ("what it is", Align::Left)],
        template.params.iter().map(|(name, quantity)| {
            vec![
                name.clone().into(),
                word(&quantity.kind).into(),
                quantity.unit.clone().unwrap_or_default().into(),
                quantity.description.clone().into(),
            ]
        }),
    );
    body.raw("</section><section>").heading("Outputs");
    table(
        &mut body,
        &[
            ("name", Align::Left),
            ("kind", Align::Left),
            ("unit", Align::Left),
            ("tolerance", Align::Right),
            ("what it is", Align::Left),
        ],
        template.outputs.iter().map(|(name, output)| {
            vec![
                name.clone().into(),
                word(&output.kind.unwrap_or_default()).into(),
                output.unit.clone().unwrap_or_default().into(),
                output.tolerance.map_or_else(String::new, |tolerance| tolerance.to_string()).into(),
                output.description.clone().into(),
            ]
        }),
    );
    body.raw("</section></div>\n");
    example(&mut body, site, template);
    Ok(Page::new(path, "templates", body))
}

fn tiers(html: &mut Html, template: &Template) {
    html.heading("Tiers");
    table(
        html,
        &[
            ("tier", Align::Left),
            ("prompt shows", Align::Left),
            ("asks for", Align::Right),
            ("what is different", Align::Left),
        ],
        template.tiers.values().map(|tier| {
            vec![
                tier.name.clone().into(),
                tier.givens.name().replace('_', " ").into(),
                words::count(tier.outputs.len()).into(),
                tier.description.clone().into(),
            ]
        }),
    );
    for tier in template.tiers.values() {
        problems(html, &tier.problems, &Labels::default());
    }
}

/// A prompt that was made from the template if the project has one, else the template's own text.
fn example(html: &mut Html, site: &Site, template: &Template) {
    html.heading("Example prompt");
    let catalogue = site.catalogue();
    let made = |task: &&Task| {
        task.generation
            .as_ref()
            .and_then(|generation| generation.template.as_deref())
            .is_some_and(|made_from| made_from == template.name || made_from == template.path())
    };
    let found = catalogue.tasks.iter().filter(made).find_map(|task| Some((task, task.instruction().ok()?)));
    if let Some((task, text)) = found {
        let id = task.id.as_str();
        html.raw("<p class=\"hint\">From the task ")
            .label_link(&href::task(id), Site::task_labels(&catalogue).get(id), id)
            .raw(".</p>\n");
        html.verbatim(&text);
        return;
    }
    html.hint(&format!(
        "No task of this project was made from it yet; `aec-bench generate task {}` makes some. This is the prompt \
         as the template writes it, with names in place of values.",
        template.path()
    ));
    html.verbatim(template.file("instruction.md").unwrap_or_default());
}
