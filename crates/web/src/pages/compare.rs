//! Compares two runs task by task.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_ledger::index::{Attempts, Filter};
use aec_report::compare::{Arm, Comparison, Part, Question, Sample, Side, VerdictKind, compare};
use aec_report::glance::each_record;
use aec_report::label::PageLabels;
use aec_report::withheld::fitting;

use super::{Page, ROWS, empty};
use crate::href::Asked;
use crate::html::{Align, Cell, Class, Html, select, table};
use crate::records::Snapshot;
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// Most trials of one side, because every record is read.
const LARGEST_ARM: usize = 20_000;

/// Most sides to choose from.
const CHOICES: usize = 500;

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let snapshot = site.snapshot()?;
    let mut body = Html::default();
    body.raw("<h1>Compare</h1>\n");
    if snapshot.summaries.is_empty() {
        empty(&mut body, "No trial is recorded yet.", "aec-bench run --config experiment.yaml");
        return Ok(Page::new("Compare", "compare", body));
    }
    let state = state(site, &snapshot);
    let sides = site.sides.get("all", state, || sides(site))?;
    form(&mut body, asked, &sides);
    if let (Some(base), Some(other)) = (asked.get("base"), asked.get("other")) {
        for side in [base, other] {
            if !sides.iter().any(|known| known == side) {
                let shown = aec_base::text::printable(side);
                let fix = "choose one of the list, as EXPERIMENT/AGENT";
                return Err(Trouble::missing(format!("there is no run `{shown}`"), fix));
            }
        }
        let key = format!("{base} {other}");
        let comparison = site.comparisons.get(&key, state, || weigh(site, base, other))?;
        show(&mut body, &comparison);
    } else {
        body.hint("Choose two runs: the second is compared with the first, over the tasks that both did.");
    }
    Ok(Page::new("Compare", "compare", body))
}

fn state(site: &Site, snapshot: &Snapshot) -> u64 {
    let mut hasher = DefaultHasher::new();
    for summary in &snapshot.summaries {
        summary.experiment_id.as_str().hash(&mut hasher);
        site.state(snapshot, &summary.experiment_id).hash(&mut hasher);
    }
    hasher.finish()
}

fn sides(site: &Site) -> Result<Vec<String>, Trouble> {
    let (found, _) = site.ask(|index| {
        let mut found: BTreeSet<(String, String)> = BTreeSet::new();
        let mut last = (String::new(), String::new());
        index.each(&Filter::default(), |brief| {
            if last.0 != brief.experiment_id || last.1 != brief.agent.name {
                last = (brief.experiment_id.to_owned(), brief.agent.name.clone());
                found.insert(last.clone());
            }
        })?;
        Ok(found)
    })?;
    Ok(found.into_iter().map(|(experiment, agent)| format!("{experiment}/{agent}")).collect())
}

fn form(html: &mut Html, asked: &Asked, sides: &[String]) {
    let words: Vec<&str> = sides.iter().map(String::as_str).take(CHOICES).collect();
    html.raw("<form class=\"tools\"><span>From</span>\n");
    select(html, "base", "Base", "first run", &words, asked.get("base"));
    html.raw("<span>to</span>\n");
    select(html, "other", "Other", "second run", &words, asked.get("other"));
    html.raw("<button type=\"submit\">Compare</button></form>\n");
}

fn weigh(site: &Site, base: &str, other: &str) -> Result<Comparison, Trouble> {
    let (base, other) = (arm(site, base)?, arm(site, other)?);
    Ok(compare(&base, &other, &Question::default()))
}

fn arm(site: &Site, side: &str) -> Result<Arm, Trouble> {
    let (experiment, agent) = side.split_once('/').unwrap_or((side, ""));
    let filter = Filter {
        experiments: vec![experiment.to_owned()],
        agent: Some(agent.to_owned()),
        attempts: Attempts::Latest,
        ..Filter::default()
    };
    let contents = site.ledger.contents();
    let (read, _) = site.ask(|index| {
        if index.count(&filter)? > LARGEST_ARM {
            return Ok(None);
        }
        each_record(&site.ledger, index, &filter, |record| Sample::read(record, &contents)).map(Some)
    })?;
    let Some((samples, _)) = read else {
        return Err(Trouble::senseless(
            format!("{side} has more than {LARGEST_ARM} trials, which takes too long for a page"),
            format!("run `aec-bench report compare {side} OTHER`"),
        ));
    };
    let name = Name::parse(experiment)
        .map_err(|_| Trouble::missing("there is no such experiment", "choose one of the list"))?;
    let absent = site.withheld(&name)?;
    let withheld = fitting(&absent, &filter)
        .map(|absent| absent.planned.as_ref().map(|planned| (planned.task_id.clone(), planned.task_revision)))
        .collect();
    Ok(Arm { name: side.to_owned(), samples, withheld })
}

fn show(html: &mut Html, comparison: &Comparison) {
    if !comparison.frame.is_empty() {
        html.raw("<div class=\"note\"><p><b>The two runs were not made under the same conditions.</b> What differs below may be the reason for any difference in the numbers.</p>");
        table(
            html,
            &[("what", Align::Left), ("first", Align::Left), ("second", Align::Left)],
            comparison.frame.iter().take(ROWS).map(|part| {
                vec![part.what.clone().into(), part.base.clone().into(), part.other.clone().into()]
            }),
        );
        html.raw("</div>\n");
    }
    let kind = comparison.verdict.kind;
    let class = match kind {
        VerdictKind::Improved => Class::Pass,
        VerdictKind::Equivalent | VerdictKind::NotWorse | VerdictKind::Undecided => Class::Partial,
        VerdictKind::Regressed => Class::Fail,
    };
    html.raw("<p class=\"verdict\"><span class=\"badge ").raw(class.style()).raw("\">").text(kind.name());
    html.raw("</span> ").text(&comparison.verdict.sentence).raw("</p>\n");
    let alignment = &comparison.alignment;
    html.hint(&format!(
        "{} done by both, {} only by the first, {} only by the second.",
        aec_base::text::count(alignment.tasks, "task"),
        alignment.only_base,
        alignment.only_other
    ));
    metrics(html, comparison);
    power(html, comparison);
    let labels = PageLabels::of(comparison.by.task.iter().map(|part| part.name.as_str()), []);
    for (title, parts) in [
        ("By difficulty", &comparison.by.difficulty),
        ("By family", &comparison.by.family),
        ("By task", &comparison.by.task),
    ] {
        html.heading(title);
        show_parts(html, parts, &labels);
    }
}

fn metrics(html: &mut Html, comparison: &Comparison) {
    table(
        html,
        &[
            ("metric", Align::Left),
            ("first", Align::Right),
            ("second", Align::Right),
            ("difference", Align::Right),
            ("95 % interval", Align::Right),
            ("p (Holm)", Align::Right),
        ],
        comparison.metrics.iter().map(|metric| {
            vec![
                metric.name.replace('_', " ").into(),
                side(&metric.base).into(),
                side(&metric.other).into(),
                words::signed(metric.difference).into(),
                words::signed_span(metric.interval).into(),
                words::share(metric.adjusted_p_value).into(),
            ]
        }),
    );
}

fn power(html: &mut Html, comparison: &Comparison) {
    let power = &comparison.power;
    // Without any variance there is nothing to report.
    if let Some(least) = power.minimal_detectable_effect.filter(|least| *least > 0.0005) {
        html.hint(&format!(
            "A run of this size finds a difference of {} or more in {} % of cases.",
            rounded(least, 3),
            rounded(power.power * 100.0, 0)
        ));
    }
}

fn show_parts(html: &mut Html, parts: &[Part], labels: &PageLabels) {
    table(
        html,
        &[
            ("", Align::Left),
            ("tasks", Align::Right),
            ("first", Align::Right),
            ("second", Align::Right),
            ("nonzero", Align::Right),
            ("difference", Align::Right),
            ("95 % interval", Align::Right),
            ("p (Holm)", Align::Right),
        ],
        parts.iter().take(ROWS).map(|part| {
            vec![
                Cell::label(labels.family(labels.task(&part.name)), &part.name),
                words::count(part.tasks).into(),
                side(&part.base).into(),
                side(&part.other).into(),
                format!("{}/{}, {}/{}", part.base_nonzero, part.base.of, part.other_nonzero, part.other.of)
                    .into(),
                words::signed(part.difference).into(),
                words::signed_span(part.interval).into(),
                words::share(part.adjusted_p_value).into(),
            ]
        }),
    );
    if parts.len() > ROWS {
        html.hint(&format!(
            "and {} more; `aec-bench report compare --json` has all",
            words::count(parts.len() - ROWS)
        ));
    }
}

fn side(side: &Side) -> String {
    match side.count {
        Some(count) => format!("{count}/{}", side.of),
        None => words::share(side.value),
    }
}
