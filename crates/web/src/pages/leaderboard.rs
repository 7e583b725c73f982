//! Ranks agents over the chosen experiments.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aec_base::label::Labels;
use aec_base::name::Name;
use aec_ledger::index::Filter;
use aec_report::group::Unit;
use aec_report::leaderboard::{Leaderboard, leaderboard};
use aec_report::selection::Selection;
use aec_run::absent::expected_plan;

use super::{Page, ROWS, empty, task_link};
use crate::href::Asked;
use crate::html::{Align, Cell, Html, table};
use crate::records::Snapshot;
use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

pub(crate) fn page(site: &Site, asked: &Asked) -> Result<Page, Trouble> {
    let snapshot = site.snapshot()?;
    let mut body = Html::default();
    body.raw("<h1>Leaderboard</h1>\n");
    if snapshot.summaries.is_empty() {
        empty(&mut body, "No trial is recorded yet.", "aec-bench run --config experiment.yaml");
        return Ok(Page::new("Leaderboard", "leaderboard", body));
    }
    let mut chosen = Vec::new();
    for id in asked.all("experiment") {
        chosen.push(site.experiment(id)?);
    }
    let mix = asked.get("mix").is_some();
    form(&mut body, &snapshot, &chosen, mix);
    let names: Vec<Name> = if chosen.is_empty() {
        snapshot.summaries.iter().map(|summary| summary.experiment_id.clone()).collect()
    } else {
        chosen
    };
    match &*board(site, &snapshot, &names, mix)? {
        Ok(board) => show(&mut body, board),
        Err(mixed) => refuse(&mut body, mixed),
    }
    Ok(Page::new("Leaderboard", "leaderboard", body))
}

type Board = Result<Leaderboard, Vec<(String, usize)>>;

fn board(
    site: &Site,
    snapshot: &Snapshot,
    names: &[Name],
    mix: bool,
) -> Result<std::sync::Arc<Board>, Trouble> {
    let mut hasher = DefaultHasher::new();
    let mut key = if mix { "mixed".to_owned() } else { "alike".to_owned() };
    for name in names {
        site.state(snapshot, name).hash(&mut hasher);
        key.push('/');
        key.push_str(name.as_str());
    }
    site.boards.get(&key, hasher.finish(), || {
        let filter =
            Filter { experiments: names.iter().map(ToString::to_string).collect(), ..Filter::default() };
        let (mut selection, _) = site.ask(|index| Selection::read(index, &filter))?;
        let mixed: Vec<(String, usize)> =
            selection.mixed_revisions().into_iter().map(|(task, count)| (task.to_owned(), count)).collect();
        if !mixed.is_empty() && !mix {
            return Ok(Err(mixed));
        }
        for name in names {
            site.note_absent(&mut selection, name, &filter)?;
        }
        for name in names {
            if let Ok(Some(plan)) = expected_plan(&site.ledger.experiment(name)) {
                selection.note_missing(&plan.expected(), &filter);
            }
        }
        selection.merge_revisions();
        Ok(Ok(leaderboard(&selection, Unit::Task)))
    })
}

fn form(html: &mut Html, snapshot: &Snapshot, chosen: &[Name], mix: bool) {
    html.raw("<form><details");
    if chosen.is_empty() {
        html.raw("><summary>All experiments; choose some");
    } else {
        html.raw("><summary>").text(&aec_base::text::count(chosen.len(), "experiment")).raw(" chosen");
    }
    html.raw("</summary><ul class=\"choices\">");
    let mut summaries: Vec<_> = snapshot.summaries.iter().collect();
    summaries.sort_by(|a, b| b.last.cmp(&a.last));
    for summary in summaries.iter().take(ROWS) {
        let id = summary.experiment_id.as_str();
        html.raw("<li><label><input type=\"checkbox\" name=\"experiment\" value=\"").text(id).raw("\"");
        if chosen.contains(&summary.experiment_id) {
            html.raw(" checked");
        }
        html.raw("> <span>").text(id).raw("</span></label></li>");
    }
    html.raw("</ul></details><p><label><input type=\"checkbox\" name=\"mix\" value=\"yes\"");
    if mix {
        html.raw(" checked");
    }
    html.raw("> take different revisions of a task for the same task</label> <button type=\"submit\">Show</button></p></form>\n");
}

fn refuse(html: &mut Html, mixed: &[(String, usize)]) {
    let labels = Labels::of(mixed.iter().map(|(task, _)| task.as_str()));
    html.raw("<div class=\"empty-page\"><p>These experiments ran different revisions of ");
    html.text(&aec_base::text::count(mixed.len(), "task"));
    html.raw(". A task with other files is another task, and its rewards do not belong into one mean, so there is no order.</p>");
    html.raw("<p>Choose experiments of one revision above, or allow mixing the revisions.</p></div>\n");
    table(
        html,
        &[("task", Align::Left), ("revisions", Align::Right)],
        mixed.iter().take(ROWS).map(|(task, count)| vec![task_link(&labels, task), count.to_string().into()]),
    );
}

fn show(html: &mut Html, board: &Leaderboard) {
    for note in &board.notes {
        html.note(note);
    }
    table(
        html,
        &[
            ("rank", Align::Right),
            ("agent", Align::Left),
            ("harness", Align::Left),
            ("model", Align::Left),
            ("mean", Align::Right),
            ("95 % interval", Align::Right),
            ("faults as 0", Align::Right),
            ("solved", Align::Right),
            ("worst", Align::Right),
            ("faults", Align::Right),
            ("crashed", Align::Right),
            ("tasks", Align::Right),
            ("trials", Align::Right),
            ("cost", Align::Right),
            ("each solved", Align::Right),
        ],
        board.rows.iter().take(ROWS).map(|row| {
            let rank = match (row.rank, row.ranks) {
                (Some(rank), Some((best, worst))) if best != worst => format!("{rank} ({best}–{worst})"),
                (Some(rank), _) => rank.to_string(),
                _ => words::UNKNOWN.to_owned(),
            };
            vec![
                rank.into(),
                Cell::from(row.agent.clone()),
                row.harness.clone().into(),
                row.model.clone().unwrap_or_default().into(),
                words::mean(&row.group).into(),
                words::span(row.group.interval).into(),
                words::share(row.group.denominators.as_run).into(),
                words::share(row.group.solve_rate).into(),
                words::share(row.group.denominators.worst_case).into(),
                words::count(row.group.faults.uncounted).into(),
                words::count(row.group.faults.crashed).into(),
                words::count(row.group.tasks).into(),
                words::count(row.group.trials).into(),
                words::cost_of(&row.group).into(),
                words::cost_per_solved(&row.group).into(),
            ]
        }),
    );
    if board.rows.len() > ROWS {
        html.hint(&format!(
            "and {} more; `aec-bench report leaderboard` has all",
            words::count(board.rows.len() - ROWS)
        ));
    }
    html.hint("The ranks in brackets are those that the intervals allow.");
}
