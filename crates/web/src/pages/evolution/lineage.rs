//! The lineage of a run: candidates below their parents, each with its result, the reason for it and its changes.

use std::collections::{BTreeSet, HashMap};

use aec_base::name::Name;
use aec_base::text;
use aec_evolve::state::Status;
use aec_evolve::view::{CandidateView, View};
use aec_report::html::clip;

use super::changes;
use super::run::{command, span};
use super::{Place, SitePlace};
use crate::html::{Class, Html};
use crate::words;

/// Deepest nesting of lists; deeper candidates are listed side by side and still name their parents.
const DEEPEST: usize = 10;

/// Most characters of a model's reasoning.
const REASONING: usize = 2_000;

/// Most characters of a summary.
const SUMMARY: usize = 400;

/// The candidates that a page shows, in their order: the requested one, the best, the first, then accepted ones and
/// then others, newest first, each with its ancestors as far as there is room.
pub(super) fn choose(view: &View, most: usize, wanted: Option<&Name>) -> Vec<Name> {
    let all = &view.candidates;
    let parents = parents(view);
    let is = |name: &Name| all.iter().position(|candidate| candidate.name == *name);
    let first: Vec<usize> = wanted.into_iter().chain([&view.best, &view.baseline]).filter_map(is).collect();
    let of = |accepted: bool| (0..all.len()).rev().filter(move |at| all[*at].accepted == accepted);
    let mut chosen: BTreeSet<usize> = first.iter().copied().take(most).collect();
    for at in first.iter().copied().chain(of(true)).chain(of(false)) {
        let mut next = Some(at);
        while let Some(at) = next.filter(|_| chosen.len() < most) {
            // The ancestors of a chosen candidate are already chosen, or will be.
            if !chosen.insert(at) && !first.contains(&at) {
                break;
            }
            next = parents[at];
        }
    }
    chosen.into_iter().map(|at| all[at].name.clone()).collect()
}

/// The first parent of each candidate, if it precedes it, so that no candidate is below itself, whatever a log
/// contains.
fn parents(view: &View) -> Vec<Option<usize>> {
    let mut seen: HashMap<&Name, usize> = HashMap::new();
    let mut parents = Vec::with_capacity(view.candidates.len());
    for (at, candidate) in view.candidates.iter().enumerate() {
        parents.push(candidate.parents.first().and_then(|parent| seen.get(parent).copied()));
        seen.entry(&candidate.name).or_insert(at);
    }
    parents
}

/// What a page may still show.
struct Left {
    /// Characters of changes.
    changes: usize,
    /// Candidates whose changes are not shown.
    without: usize,
}

struct Tree<'a> {
    view: &'a View,
    place: &'a Place<'a>,
    children: Vec<Vec<usize>>,
}

pub(super) fn show(html: &mut Html, view: &View, place: &Place<'_>, chosen: &[Name]) {
    html.heading("Lineage");
    html.hint("Every candidate is below the one that it was made from. ■ the run began with it · ● accepted · ◇ not accepted · ○ being measured. Means are over all trials of a candidate, with 95 % intervals.");
    let is_shown: Vec<bool> =
        view.candidates.iter().map(|candidate| chosen.contains(&candidate.name)).collect();
    let mut children = vec![Vec::new(); view.candidates.len()];
    let mut roots = Vec::new();
    for (at, parent) in parents(view).into_iter().enumerate().filter(|(at, _)| is_shown[*at]) {
        match parent.filter(|parent| is_shown[*parent]) {
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let tree = Tree { view, place, children };
    let mut left = Left { changes: place.limits.changes, without: 0 };
    html.raw("<ul class=\"lineage\">\n");
    tree.list(html, &roots, 1, &mut left);
    html.raw("</ul>\n");
    let hidden = view.candidates.len() - is_shown.iter().filter(|shown| **shown).count();
    if hidden > 0 {
        let how = match &place.site {
            Some(_) => "a link in the table of cycles leads to each".to_owned(),
            None => format!("`{}` has all", command(view)),
        };
        html.hint(&format!(
            "{} are left out, those that were not accepted first; {how}.",
            text::count(hidden, "candidate")
        ));
    }
    if left.without > 0 {
        html.hint(&format!(
            "Changes of {} are left out; `aec-bench evolve diff` shows them.",
            text::count(left.without, "candidate")
        ));
    }
}

impl Tree<'_> {
    fn list(&self, html: &mut Html, items: &[usize], depth: usize, left: &mut Left) {
        for at in items {
            if depth < DEEPEST {
                html.raw("<li>");
                self.candidate(html, &self.view.candidates[*at], left);
                if !self.children[*at].is_empty() {
                    html.raw("<ul>\n");
                    self.list(html, &self.children[*at], depth + 1, left);
                    html.raw("</ul>\n");
                }
                html.raw("</li>\n");
                continue;
            }
            let mut waiting = vec![*at];
            while let Some(next) = waiting.pop() {
                html.raw("<li>");
                self.candidate(html, &self.view.candidates[next], left);
                html.raw("</li>\n");
                waiting.extend(self.children[next].iter().rev());
            }
        }
    }

    fn candidate(&self, html: &mut Html, candidate: &CandidateView, left: &mut Left) {
        let view = self.view;
        let is_first = candidate.name == view.baseline;
        let is_open = candidate.status == Status::Open.words();
        let (shape, class, word) = match candidate.accepted {
            _ if is_first => ("■", "", candidate.status.clone()),
            true => ("●", Class::Pass.style(), candidate.status.clone()),
            false if is_open => ("○", "", candidate.status.clone()),
            false => ("◇", "", format!("not accepted: {}", candidate.status)),
        };
        let chosen = self.place.chosen == Some(&candidate.name);
        html.raw(if chosen {
            "<div class=\"candidate chosen\" id=\""
        } else {
            "<div class=\"candidate\" id=\""
        });
        html.text(candidate.name.as_str()).raw("\"><p><span class=\"shape ").raw(class);
        html.raw("\" aria-hidden=\"true\">").raw(shape).raw("</span> <b>");
        match self.place.site.as_ref().and_then(|site: &SitePlace<'_>| site.experiment.clone()) {
            Some(href) => html.link(&href.with("agent", candidate.name.as_str()), candidate.name.as_str()),
            None => html.text(candidate.name.as_str()),
        };
        html.raw("</b> ");
        if candidate.name == view.best {
            html.raw("<span class=\"tag\">best</span>");
        }
        html.raw("<span class=\"").raw(class).raw("\">").text(&word).raw("</span>");
        html.raw(" <span class=\"quiet\">· ").text(&score(candidate)).raw("</span></p>\n");
        if !is_first {
            html.raw("<p class=\"data\">").text(&clip(&made(candidate), SUMMARY)).raw("</p>\n");
        }
        if !candidate.reasoning.trim().is_empty() {
            html.raw("<p class=\"why data\">")
                .text(&clip(candidate.reasoning.trim(), REASONING))
                .raw("</p>\n");
        }
        match &candidate.diff {
            Some(diff) if left.changes > 0 => {
                let against = candidate.parents.first().map(Name::as_str).unwrap_or_default();
                left.changes = left.changes.saturating_sub(changes::show(html, diff, against));
            }
            None if candidate.parents.is_empty() => {}
            _ => left.without += 1,
        }
        html.raw("</div>\n");
    }
}

fn score(candidate: &CandidateView) -> String {
    let mut parts = Vec::new();
    if candidate.mean.is_some() {
        parts.push(format!(
            "mean {} ({}, {})",
            words::share(candidate.mean),
            words::span(span(candidate.low, candidate.high)),
            text::count(candidate.trials, "trial")
        ));
    } else {
        parts.push("no trials yet".to_owned());
    }
    if let Some(standing) = &candidate.standing {
        let interval = span(Some(standing.low), Some(standing.high));
        parts.push(format!(
            "gain {} ({}, {})",
            words::signed(Some(standing.difference)),
            words::signed_span(interval),
            text::count(standing.pairs, "pair")
        ));
    }
    parts.join(" · ")
}

fn made(candidate: &CandidateView) -> String {
    let parents: Vec<&str> = candidate.parents.iter().map(Name::as_str).collect();
    let from = if parents.is_empty() { String::new() } else { format!(" from {}", parents.join(" and ")) };
    let what = if candidate.summary.is_empty() { "no change" } else { candidate.summary.as_str() };
    format!("{}{from}, {} in cycle {}: {what}", candidate.way.name(), candidate.agent, candidate.cycle)
}
