//! Tests of plans.

use proptest::prelude::*;

use super::choose::{Tree, accuracy, leaf_limit, shape};
use super::*;
use crate::split::comfortable;

fn planner() -> PlannerSettings {
    PlannerSettings::default()
}

fn request(text: &str) -> Request<'_> {
    Request { section: "s", source: "a.md", text, form: Form::Text }
}

fn call() -> CallShape {
    CallShape::for_window(planner().context_window_chars)
}

#[test]
fn small_sources_are_read_at_once() {
    let shape = choose(94_000, &planner(), &call()).unwrap();
    assert_eq!((shape.leaves, shape.depth, shape.totals.calls), (1, 0, 1));
    assert!((shape.totals.accuracy - 0.95).abs() < 1e-9);
    let nothing = choose(0, &planner(), &call()).unwrap();
    assert_eq!((nothing.leaves, nothing.totals.calls, nothing.totals.cost), (0, 0, 0));
}

#[test]
fn larger_sources_are_merged_once_by_default() {
    let shape = choose(500_000, &planner(), &call()).unwrap();
    assert_eq!((shape.leaves, shape.depth, shape.totals.calls), (7, 1, 8));
    assert!((shape.totals.accuracy - 0.855).abs() < 1e-9);
    assert!(choose(20 * 82_250, &planner(), &call()).is_ok());
}

#[test]
fn what_cannot_be_had_is_said_with_numbers() {
    let chars = 5_000_000;
    let error = choose(chars, &planner(), &call()).unwrap_err();
    assert!((error.best_accuracy - 0.95 * 0.81).abs() < 1e-9);
    let [Suggestion::Window(window), Suggestion::Target(target)] = error.what_would_do[..] else {
        panic!("{error:?}");
    };
    for (window, target, works) in [
        (window, planner().accuracy_target, true),
        (window - 1, planner().accuracy_target, false),
        (100_000, target, true),
        (100_000, target + 1e-6, false),
    ] {
        let planner = PlannerSettings { context_window_chars: window, accuracy_target: target, ..planner() };
        assert_eq!(choose(chars, &planner, &call()).is_ok(), works, "{window} {target}");
    }
    let short = CallShape { output_cap_chars: 500, ..call() };
    let error = choose(chars, &planner(), &short).unwrap_err();
    let Suggestion::Branching(branches) = error.what_would_do[1] else { panic!("{error:?}") };
    for (branches, works) in [(branches, true), (branches - 1, false)] {
        let planner = PlannerSettings { max_branching_factor: branches, ..planner() };
        assert_eq!(choose(chars, &planner, &short).is_ok(), works, "{branches}");
    }
    let proud = PlannerSettings { accuracy_target: 0.99, ..planner() };
    let error = choose(10, &proud, &call()).unwrap_err();
    assert_eq!(error.what_would_do, [Suggestion::Target(0.95)]);
    let narrow = CallShape { prompt_chars: 200_000, ..call() };
    assert!(choose(10, &planner(), &narrow).unwrap_err().to_string().contains("context_window_chars"));
}

#[test]
fn a_plan_is_shown_and_kept() {
    let long = "A sentence with some words. ".repeat(10_000);
    let plan = Plan::make(&[request(&long), request("short")], &planner(), &call()).unwrap();
    assert_eq!(plan.trees[0].leaves.len(), 4);
    assert_eq!(
        (plan.trees[0].levels.len(), &plan.trees[0].levels[0][..]),
        (1, std::slice::from_ref(&(0..4)))
    );
    assert_eq!(plan.totals.calls, 6);
    let shown = plan.to_string();
    assert!(
        shown.starts_with("s ← a.md: 280000 characters, 4 parts merged by 4 in 1 level, accuracy 0.855\n"),
        "{shown}"
    );
    assert!(shown.contains("\n6 calls, about "), "{shown}");
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!((&json["schema_version"], &json["trees"][1]["shape"]["leaves"]), (&1.into(), &1.into()));
    let error = Plan::make(&[request(&"x".repeat(5_000_000))], &planner(), &call()).unwrap_err();
    assert!(
        error.to_string().starts_with("section `s`, source `a.md` of 5000000 characters: the best accuracy")
    );
}

fn settings() -> impl Strategy<Value = (PlannerSettings, CallShape)> {
    let planner = (40u64..400, 0.3f64..0.95, 0.8f64..=1.0, 2u32..12);
    let call = (0u64..20, 0u64..10, 0u64..700, 1u64..60, 0u64..6, 0u64..50);
    (planner, call).prop_map(
        |((window, target, compose, branches), (prompt, context, share, cap, weight, cost))| {
            let planner = PlannerSettings {
                context_window_chars: window,
                accuracy_target: target,
                leaf_accuracy: 0.95,
                compose_accuracy: compose,
                max_branching_factor: branches,
            };
            let call = CallShape {
                prompt_chars: prompt,
                context_chars: context,
                output_per_mille: share,
                output_cap_chars: cap,
                output_weight: weight,
                call_cost_chars: cost,
                chars_per_token: 4,
            };
            (planner, call)
        },
    )
}

/// The cost of the cheapest tree, found by trying all numbers of leaves and all branchings.
fn brute_force(chars: u64, planner: &PlannerSettings, call: &CallShape) -> Option<u64> {
    let room = planner.context_window_chars - call.prompt_chars;
    let capacity = room - call.context_chars;
    let mut best: Option<u64> = None;
    for branching in 2..=u64::from(planner.max_branching_factor) {
        for leaves in 1..=chars {
            let (mut parts, mut depth) = (leaves, 0);
            while parts > 1 {
                parts = parts.div_ceil(branching);
                depth += 1;
            }
            if accuracy(planner, depth) + 1e-12 < planner.accuracy_target {
                continue;
            }
            let limit = if depth == 0 { Some(capacity) } else { leaf_limit(room, call, branching, depth) };
            let Some(leaf_chars) = limit.map(|limit| limit.min(capacity)) else { continue };
            let fill = if depth == 0 {
                leaf_chars
            } else {
                comfortable(usize::try_from(leaf_chars).unwrap()) as u64
            };
            if chars.div_ceil(fill) > leaves {
                continue;
            }
            let tree = Tree { leaves, leaf_chars, branching, depth };
            let cost = shape(chars, tree, planner, call).totals.cost;
            best = Some(best.map_or(cost, |best| best.min(cost)));
        }
    }
    best
}

proptest! {
    #[test]
    fn no_other_plan_is_cheaper((planner, call) in settings(), chars in 1u64..1_500) {
        let chosen = choose(chars, &planner, &call).ok().map(|shape| shape.totals.cost);
        prop_assert_eq!(chosen, brute_force(chars, &planner, &call));
    }

    #[test]
    fn suggestions_do((planner, call) in settings(), chars in 1u64..3_000) {
        if let Err(error) = choose(chars, &planner, &call) {
            for suggestion in error.what_would_do {
                let mut changed = planner.clone();
                match suggestion {
                    Suggestion::Window(window) => changed.context_window_chars = window,
                    Suggestion::Branching(branches) => changed.max_branching_factor = branches,
                    Suggestion::Target(target) => changed.accuracy_target = target,
                }
                prop_assert!(choose(chars, &changed, &call).is_ok(), "{:?}", suggestion);
            }
        }
    }

    #[test]
    fn trees_are_as_planned((planner, call) in settings(), text in "([a-z]{1,8}[ .\n]|ä){0,200}") {
        if let Ok(plan) = Plan::make(&[request(&text)], &planner, &call) {
            let tree = &plan.trees[0];
            prop_assert_eq!(tree.leaves.len() as u64, tree.shape.leaves);
            prop_assert_eq!(tree.levels.len(), tree.shape.depth as usize);
            let mut below = tree.leaves.len();
            let mut calls = below;
            for level in &tree.levels {
                let mut at = 0;
                for group in level {
                    prop_assert_eq!(group.start, at);
                    prop_assert!(group.len() as u64 <= tree.shape.branching && !group.is_empty());
                    at = group.end;
                }
                prop_assert_eq!(at, below);
                calls += level.iter().filter(|group| group.len() > 1).count();
                below = level.len();
            }
            prop_assert_eq!(calls as u64, tree.shape.totals.calls);
            let room = planner.context_window_chars - call.prompt_chars - call.context_chars;
            prop_assert!(tree.leaves.iter().all(|leaf| leaf.chars as u64 <= room));
        }
    }

    #[test]
    fn no_number_is_too_large(chars in any::<u64>(), window in any::<u64>(), share in any::<u64>(), branches in 0u32..2_000) {
        let planner = PlannerSettings { context_window_chars: window, max_branching_factor: branches, ..planner() };
        let call = CallShape { output_per_mille: share, chars_per_token: 0, ..call() };
        if let Ok(shape) = choose(chars, &planner, &call) {
            prop_assert!(shape.leaves <= chars);
        }
    }
}
