//! The cheapest tree that is accurate enough.

use super::{CallShape, Infeasible, Shape, Suggestion, Totals};
use crate::split;
use aec_task::long_documents::settings::{MOST_BRANCHES, MOST_WINDOW, PlannerSettings};

/// More levels than any source needs, as each at least halves the parts.
const MOST_LEVELS: u32 = 64;

/// So that 0.95 · 0.9 counts as 0.855.
const ROUNDING: f64 = 1e-12;

/// Chooses leaves and branching for a source of `chars` characters.
pub fn choose(chars: u64, planner: &PlannerSettings, call: &CallShape) -> Result<Shape, Infeasible> {
    let levels = levels_allowed(planner);
    match levels.and_then(|levels| cheapest(chars, planner, call, levels)) {
        Some(shape) => Ok(shape),
        None => Err(infeasible(chars, planner, call, levels)),
    }
}

pub(super) fn accuracy(planner: &PlannerSettings, depth: u32) -> f64 {
    planner.leaf_accuracy * planner.compose_accuracy.powi(i32::try_from(depth).unwrap_or(i32::MAX))
}

/// The most levels that keep facts accurate enough; `None` when even a single leaf is not.
fn levels_allowed(planner: &PlannerSettings) -> Option<u32> {
    let enough = |depth: &u32| accuracy(planner, *depth) + ROUNDING >= planner.accuracy_target;
    (0..=MOST_LEVELS).take_while(enough).last()
}

fn cheapest(chars: u64, planner: &PlannerSettings, call: &CallShape, levels: u32) -> Option<Shape> {
    let room = planner.context_window_chars.checked_sub(call.prompt_chars)?;
    let capacity = room.checked_sub(call.context_chars).filter(|capacity| *capacity > 0)?;
    if chars <= capacity {
        let leaves = u64::from(chars > 0);
        return Some(shape(
            chars,
            Tree { leaves, leaf_chars: capacity, branching: 1, depth: 0 },
            planner,
            call,
        ));
    }
    let mut best: Option<Shape> = None;
    for depth in 1..=levels {
        for branching in 2..=u64::from(planner.max_branching_factor) {
            let Some(tree) = least_tree(chars, capacity, room, call, (branching, depth)) else { continue };
            let found = shape(chars, tree, planner, call);
            if best.as_ref().is_none_or(|best| found.totals.cost < best.totals.cost) {
                best = Some(found);
            }
        }
    }
    best
}

/// Leaves and how they are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) leaves: u64,
    pub(super) leaf_chars: u64,
    pub(super) branching: u64,
    pub(super) depth: u32,
}

/// The fitting tree with the fewest leaves for a branching and depth, if there is one.
fn least_tree(
    chars: u64,
    capacity: u64,
    room: u64,
    call: &CallShape,
    (branching, depth): (u64, u32),
) -> Option<Tree> {
    let leaf_chars = leaf_limit(room, call, branching, depth)?.min(capacity);
    let comfortable = split::comfortable(usize::try_from(leaf_chars).ok()?) as u64;
    let fewest = branching.checked_pow(depth - 1)?.saturating_add(1);
    let leaves = chars.div_ceil(comfortable).max(fewest);
    let most = branching.checked_pow(depth).unwrap_or(u64::MAX);
    (leaves <= most && leaves <= chars).then_some(Tree { leaves, leaf_chars, branching, depth })
}

/// The most characters that a leaf may have so that `branching` results fit into a merge of every level.
pub(super) fn leaf_limit(room: u64, call: &CallShape, branching: u64, depth: u32) -> Option<u64> {
    let share = room / branching;
    if share >= call.output_cap_chars {
        return Some(u64::MAX);
    }
    // The last merge reads the longest results: each covers this many leaves.
    let leaves_below = branching.checked_pow(depth - 1)?;
    let leaf_output = share / leaves_below;
    if call.output_per_mille == 0 {
        return Some(u64::MAX);
    }
    let leaf = leaf_output.saturating_mul(1_000) / call.output_per_mille;
    (leaf > 0).then_some(leaf)
}

/// A tree with the totals of its calls.
pub(super) fn shape(chars: u64, tree: Tree, planner: &PlannerSettings, call: &CallShape) -> Shape {
    let Tree { leaves, leaf_chars, branching, depth } = tree;
    let mut written = chars
        .saturating_mul(call.output_per_mille)
        .div_ceil(1_000)
        .min(leaves.saturating_mul(call.output_cap_chars));
    let mut calls = leaves;
    let mut input = chars.saturating_add(leaves.saturating_mul(call.prompt_chars));
    let mut output = written;
    let mut parts = leaves;
    for _ in 0..depth {
        let groups = parts.div_ceil(branching);
        // Only pairs can leave one part over; it goes up a level unmerged.
        let alone = u64::from(branching == 2 && parts % 2 == 1);
        let merges = groups - alone;
        let read = written - written / parts * alone;
        let merged = read.min(merges.saturating_mul(call.output_cap_chars));
        calls = calls.saturating_add(merges);
        input = input.saturating_add(read).saturating_add(merges.saturating_mul(call.prompt_chars));
        output = output.saturating_add(merged);
        written = merged + (written - read);
        parts = groups;
    }
    let cost = input
        .saturating_add(output.saturating_mul(call.output_weight))
        .saturating_add(calls.saturating_mul(call.call_cost_chars));
    let totals = Totals {
        calls,
        accuracy: if leaves == 0 { 1.0 } else { accuracy(planner, depth) },
        input_chars: input,
        output_chars: output,
        input_tokens: call.tokens(input),
        output_tokens: call.tokens(output),
        cost,
    };
    Shape { chars, leaves, leaf_chars, branching, depth, totals }
}

/// Finds, for each setting alone, the change that would make a plan possible.
fn infeasible(chars: u64, planner: &PlannerSettings, call: &CallShape, levels: Option<u32>) -> Infeasible {
    let reachable = (0..=MOST_LEVELS).find(|levels| cheapest(chars, planner, call, *levels).is_some());
    let best_accuracy = reachable.map_or(0.0, |levels| accuracy(planner, levels));
    let mut what_would_do = Vec::new();
    if let Some(levels) = levels {
        let with_window = |window: u64| {
            let planner = PlannerSettings { context_window_chars: window, ..planner.clone() };
            cheapest(chars, &planner, call, levels).is_some()
        };
        let (mut too_small, mut enough) = (planner.context_window_chars, MOST_WINDOW);
        if with_window(enough) {
            while enough - too_small > 1 {
                let middle = too_small + (enough - too_small) / 2;
                if with_window(middle) {
                    enough = middle;
                } else {
                    too_small = middle;
                }
            }
            what_would_do.push(Suggestion::Window(enough));
        }
        let more = planner.max_branching_factor.saturating_add(1)..=MOST_BRANCHES;
        let with_branches = |branches: &u32| {
            let room = planner.context_window_chars.checked_sub(call.prompt_chars);
            let Some(room) = room else { return false };
            let Some(capacity) = room.checked_sub(call.context_chars).filter(|capacity| *capacity > 0) else {
                return false;
            };
            (1..=levels)
                .any(|depth| least_tree(chars, capacity, room, call, (u64::from(*branches), depth)).is_some())
        };
        what_would_do.extend(more.into_iter().find(with_branches).map(Suggestion::Branching));
    }
    if reachable.is_some() {
        what_would_do.push(Suggestion::Target(best_accuracy));
    }
    Infeasible { best_accuracy, what_would_do }
}
