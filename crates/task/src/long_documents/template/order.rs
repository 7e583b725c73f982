//! The order of sections: ids must be unique, dependencies must exist, and no section may wait for itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use aec_base::problem::Problem;
use aec_base::text::near_or;

use super::Section;
use crate::long_documents::settings::Tier;
use crate::long_documents::source_file::{Checker, shown};
use crate::long_documents::{FAMILY, number_of};

/// The order of work, or `None` after recording the problems.
pub(super) fn check(sections: &[Section], tier: Tier, checker: &mut Checker<'_>) -> Option<Vec<usize>> {
    let before = checker.problems.len();
    let mut note = |index: usize, number: u32, what: String, fix: String| {
        let place = checker.place_in_list("sections", index);
        checker.problems.push(Problem::error(what).id(FAMILY.number(number)).fix(fix).at(place));
    };
    let mut index_of: HashMap<&str, usize> = HashMap::new();
    for (index, section) in sections.iter().enumerate().filter(|(_, section)| !section.id.is_empty()) {
        if index_of.contains_key(section.id.as_str()) {
            let what = format!("the section \"{}\" is there twice", shown(&section.id));
            note(index, number_of::TWICE, what, "give one of them another id".to_owned());
        } else {
            index_of.insert(&section.id, index);
        }
    }
    let ids: Vec<String> = sections.iter().map(|section| section.id.clone()).collect();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); sections.len()];
    for (index, section) in sections.iter().enumerate() {
        if tier == Tier::Flat && !section.depends_on.is_empty() {
            let what =
                format!("the section \"{}\" has dependencies, but the tier is flat", shown(&section.id));
            let fix = "set template.tier = \"dependency_tree\" in the settings, or remove `depends_on`";
            note(index, number_of::FLAT, what, fix.to_owned());
            continue;
        }
        let mut seen = HashSet::new();
        for needed in &section.depends_on {
            let (id, needed_id) = (shown(&section.id), shown(needed));
            if *needed == section.id {
                let what = format!("the section \"{id}\" depends on itself");
                note(index, number_of::DEPENDENCY, what, "remove it from its own `depends_on`".to_owned());
            } else if !seen.insert(needed) {
                let what = format!("the section \"{id}\" depends on \"{needed_id}\" twice");
                note(index, number_of::DEPENDENCY, what, "keep one of them".to_owned());
            } else if let Some(other) = index_of.get(needed.as_str()) {
                needs[index].push(*other);
            } else {
                let what = format!("the section \"{id}\" depends on \"{needed_id}\", which does not exist");
                let fix = near_or(needed, &ids, "use the id of a section of this template");
                note(index, number_of::DEPENDENCY, what, fix);
            }
        }
    }
    let order = sorted(&needs);
    if order.len() < sections.len()
        && let Some(cycle) = cycle(&needs, &order)
    {
        let names: Vec<String> = cycle.iter().map(|index| shown(&sections[*index].id)).collect();
        let what = format!("sections wait for each other: {}", names.join(" → "));
        let first = cycle.iter().copied().min().unwrap_or(0);
        note(first, number_of::CYCLE, what, "remove one of these dependencies".to_owned());
    }
    (checker.problems.len() == before).then_some(order)
}

/// Repeatedly takes the first section of the file whose dependencies are done; sections in cycles are left out.
fn sorted(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (index, needed) in needs.iter().enumerate() {
        for other in needed {
            needed_by[*other].push(index);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..needs.len()).filter(|index| missing[*index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for other in &needed_by[index] {
            missing[*other] -= 1;
            if missing[*other] == 0 {
                ready.push(Reverse(*other));
            }
        }
    }
    order
}

/// A cycle among the sections that have no order; its first section is repeated at the end.
fn cycle(needs: &[Vec<usize>], order: &[usize]) -> Option<Vec<usize>> {
    let ordered: HashSet<usize> = order.iter().copied().collect();
    let mut at = (0..needs.len()).find(|index| !ordered.contains(index))?;
    let mut step_of: HashMap<usize, usize> = HashMap::new();
    let mut way = Vec::new();
    // Each of these sections needs another of them, so the walk must return to a visited one.
    while !step_of.contains_key(&at) {
        step_of.insert(at, way.len());
        way.push(at);
        at = *needs[at].iter().find(|other| !ordered.contains(other))?;
    }
    let mut circle = way.split_off(step_of[&at]);
    circle.push(at);
    Some(circle)
}
