//! One experiment: its results, grouped by properties of its trials, and its trials; its progress while it runs.

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_report::group::Group;
use aec_run::status::State;

use super::{Page, ROWS, crumbs, evolution, experiments, trials};
use crate::href::{self, Asked, Href};
use crate::html::{Align, Cell, Html, facts, table};
use crate::records::{Evaluated, Progress};
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let name = site.experiment(&asked.segments[1])?;
    let evaluated = site.evaluated(&name)?;
    let overall = &evaluated.evaluation.overall;
    let state = site.doing(&name, overall, evaluated.plan.as_ref());
    let mut body = Html::default();
    crumbs(&mut body, &[(Href::new::<&str>([]), "Experiments")]);
    head(&mut body, site, &name, state, &evaluated);
    if state == State::Running {
        // Missing trials are expected while it runs.
        live(&mut body, &name, &site.progress(&name)?);
    } else {
        for note in &evaluated.evaluation.notes {
            body.note(note);
        }
    }
    if let Some(problem) = &evaluated.plan_problem {
        body.note(&format!("The plan cannot be read, so it is unknown which trials are missing: {problem}"));
    }
    if overall.trials == 0 {
        body.hint("No trial is recorded yet.");
        return Ok(Page::new(name.to_string(), "", body));
    }
    overview(&mut body, &evaluated);
    tables(&mut body, &name, &evaluated);
    trials::show(&mut body, asked, &evaluated);
    Ok(Page::new(name.to_string(), "", body))
}

fn head(html: &mut Html, site: &Site, name: &Name, state: State, evaluated: &Evaluated) {
    html.raw("<div class=\"head\"><h1>").text(name.as_str()).raw("</h1>");
    html.add(&experiments::badge(state.name()));
    html.link(&Href::new(["leaderboard"]).with("experiment", name.as_str()), "Leaderboard");
    let mut compare = Href::new(["compare"]);
    if let [one] = evaluated.selection.agents.as_slice() {
        compare = compare.with("base", &format!("{name}/{}", one.name));
    } else if let [base, other, ..] = evaluated.selection.agents.as_slice() {
        compare = compare
            .with("base", &format!("{name}/{}", base.name))
            .with("other", &format!("{name}/{}", other.name));
    }
    html.link(&compare, "Compare");
    evolution::link_from(html, site, name);
    html.raw("</div>\n");
    if let Some(plan) = &evaluated.plan {
        for text in [&plan.name, &plan.description].into_iter().flatten() {
            html.raw("<p class=\"data\">").text(text).raw("</p>\n");
        }
    }
}

/// The progress of a run. The script keeps it up to date; without the script, the page is reloaded.
fn live(html: &mut Html, name: &Name, progress: &Progress) {
    let stream = Href::new(["live", "run", name.as_str()]);
    html.raw("<section class=\"live\" id=\"live-run\" aria-label=\"Progress\" data-experiment=\"")
        .text(name.as_str());
    html.raw("\" data-stream=\"").text(stream.as_str()).raw("\">\n<progress id=\"live-bar\" max=\"");
    html.text(&progress.planned.unwrap_or(progress.recorded).max(1).to_string()).raw("\" value=\"");
    html.text(&progress.recorded.to_string()).raw("\"></progress>\n<p id=\"live-counts\">");
    html.text(&progress.counts).raw("</p>\n<ul id=\"live-attempts\">");
    for attempt in &progress.under_way {
        html.raw("<li>")
            .label_link(&Href::new(["trial", name.as_str(), &attempt.stem]), &attempt.label, &attempt.stem)
            .raw("</li>");
    }
    html.raw("</ul>\n</section>\n");
}

fn overview(html: &mut Html, evaluated: &Evaluated) {
    let group = &evaluated.evaluation.overall;
    html.raw("<div class=\"big\">");
    for (value, label) in [
        (
            words::mean(group),
            format!("mean reward ({}), without faults of others", words::span(group.interval)),
        ),
        (words::share(group.denominators.as_run), "as run: every fault is 0".to_owned()),
        (
            words::share(group.denominators.worst_case),
            "worst case: missing and unknown trials count as 0".to_owned(),
        ),
        (
            format!("{} of {}", words::count(group.solved), words::count(group.counted)),
            "solved, of those that count".to_owned(),
        ),
        (words::cost_of(group), "all attempts".to_owned()),
    ] {
        html.raw("<div><b>").text(&value).raw("</b><span>").text(&label).raw("</span></div>");
    }
    html.raw("</div>\n");
    let outcomes: Vec<String> = group
        .outcomes
        .iter()
        .map(|(outcome, count)| format!("{} {}", words::count(*count), outcome.name()))
        .collect();
    let passes: Vec<String> = group
        .pass
        .iter()
        .map(|pass| {
            format!(
                "pass@{} {}, pass^{} {}",
                pass.k,
                rounded(pass.pass_at_k, 3),
                pass.k,
                rounded(pass.pass_hat_k, 3)
            )
        })
        .collect();
    let plan = evaluated.plan.as_ref();
    let dataset = plan
        .and_then(|plan| plan.dataset.clone())
        .or_else(|| evaluated.selection.experiments.iter().find_map(|experiment| experiment.dataset.clone()));
    facts(
        html,
        &[
            ("trials", words::count(group.trials).into()),
            ("planned", plan.map_or_else(String::new, |plan| words::count(plan.trials)).into()),
            ("tasks", words::count(group.tasks).into()),
            ("agents", words::count(evaluated.selection.agents.len()).into()),
            ("repetitions", plan.map_or_else(String::new, |plan| plan.repetitions.to_string()).into()),
            ("outcomes", outcomes.join(", ").into()),
            ("over several tries", passes.join("; ").into()),
            ("dollars for each solved", words::cost_per_solved(group).into()),
            (
                "tokens in / out",
                format!(
                    "{} / {}",
                    words::maybe(Some(group.took.tokens_in)),
                    words::maybe(Some(group.took.tokens_out))
                )
                .into(),
            ),
            ("mean time", words::seconds(group.mean_seconds).into()),
            (
                "dataset",
                dataset.map_or_else(
                    || Cell::from(""),
                    |dataset| Cell::Link(Href::new(["datasets", &dataset]), dataset.clone()),
                ),
            ),
        ],
    );
}

fn tables(html: &mut Html, name: &Name, evaluated: &Evaluated) {
    let by = &evaluated.evaluation.by;
    let agents: std::collections::BTreeSet<&str> =
        evaluated.selection.agents.iter().map(|agent| agent.name.as_str()).collect();
    html.raw("<div class=\"columns\">\n");
    for (title, parameter, groups) in [
        ("By agent", "agent", &by.agent),
        ("By difficulty", "difficulty", &by.difficulty),
        ("By discipline", "discipline", &by.discipline),
        ("By family", "family", &by.family),
    ] {
        html.raw("<section>").heading(title);
        let link = |group: &Group| {
            // The table distinguishes two agents of one name, but the list does not.
            let value = if parameter == "agent" && !agents.contains(group.name.as_str()) {
                group.name.split('@').next().unwrap_or_default()
            } else {
                &group.name
            };
            href::experiment(name.as_str()).with(parameter, value)
        };
        let label = |name: &str| match parameter {
            "family" => evaluated.labels.family(name).into_owned(),
            _ => name.to_owned(),
        };
        table(
            html,
            &[
                ("", Align::Left),
                ("trials", Align::Right),
                ("mean", Align::Right),
                ("95 % interval", Align::Right),
                ("faults as 0", Align::Right),
                ("worst", Align::Right),
                ("faults", Align::Right),
                ("crashed", Align::Right),
                ("solved", Align::Right),
                ("cost", Align::Right),
            ],
            groups.iter().take(ROWS).map(|group| {
                vec![
                    Cell::label_link(link(group), label(&group.name), &group.name),
                    words::count(group.trials).into(),
                    words::mean(group).into(),
                    words::span(group.interval).into(),
                    words::share(group.denominators.as_run).into(),
                    words::share(group.denominators.worst_case).into(),
                    words::count(group.faults.uncounted).into(),
                    words::count(group.faults.crashed).into(),
                    words::share(group.solve_rate).into(),
                    words::cost_of(group).into(),
                ]
            }),
        );
        if groups.len() > ROWS {
            html.hint(&format!(
                "and {} more; `aec-bench evaluate --json` has all",
                words::count(groups.len() - ROWS)
            ));
        }
        html.raw("</section>\n");
    }
    html.raw("</div>\n");
}
