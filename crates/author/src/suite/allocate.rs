//! Turns shares into whole numbers: how many instances of which template, tier and level.
//!
//! The mix applies to the whole suite, not to each template: 34/33/33 of 20 is 7/7/6 even if every template
//! contributes one instance. Difficulty has priority over the level of given values.

/// Most moves that are tried together before an allocation counts as the best.
const MOST_TOGETHER: usize = 3;

/// A tier that a template offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) difficulty: usize,
    pub(super) level: usize,
}

/// The number of instances of each choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allocation {
    /// For each template, one count for each of its choices.
    pub(super) counts: Vec<Vec<usize>>,
    pub(super) by_difficulty: Vec<usize>,
    pub(super) by_level: Vec<usize>,
}

/// Splits a total in proportion to the shares, by largest remainders; the shares need not add up to one.
pub(super) fn apportion(total: usize, shares: &[f64]) -> Vec<usize> {
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return vec![0; shares.len()];
    }
    #[expect(clippy::cast_precision_loss, reason = "totals are far below 2^53")]
    let exact: Vec<f64> = shares.iter().map(|share| share / sum * total as f64).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares are not negative")]
    let mut counts: Vec<usize> = exact.iter().map(|exact| (exact + 1e-9).floor() as usize).collect();
    let mut order: Vec<usize> = (0..shares.len()).filter(|at| shares[*at] > 0.0).collect();
    // In billionths, so that remainders that differ only by rounding are equal; the sort is stable, so the first one
    // wins.
    #[expect(clippy::cast_possible_truncation, reason = "a remainder is below one")]
    let remainder = |at: usize| ((exact[at] - (exact[at] + 1e-9).floor()) * 1e9).round() as i64;
    order.sort_by_key(|at| std::cmp::Reverse(remainder(*at)));
    let missing = total.saturating_sub(counts.iter().sum());
    for at in order.into_iter().cycle().take(missing) {
        counts[at] += 1;
    }
    counts
}

/// How many instances each template contributes: as many as requested, or, if that exceeds the limit, the minimum of
/// each discipline and an equal part of the rest.
pub(super) fn shares_of_budget(
    disciplines: &[&str],
    per_template: usize,
    most: usize,
    least: usize,
) -> Vec<usize> {
    let total = disciplines.len() * per_template;
    if total <= most {
        return vec![per_template; disciplines.len()];
    }
    let mut names: Vec<&str> = Vec::new();
    for discipline in disciplines {
        if !names.contains(discipline) {
            names.push(discipline);
        }
    }
    let members = |name: &str| disciplines.iter().filter(|discipline| **discipline == name).count();
    let sure: Vec<usize> = names.iter().map(|name| least.min(members(name) * per_template)).collect();
    let sure_total: usize = sure.iter().sum();
    let of_discipline: Vec<usize> = if sure_total >= most {
        let even = vec![1.0; names.len()];
        apportion(most, &even)
    } else {
        #[expect(clippy::cast_precision_loss, reason = "totals are far below 2^53")]
        let rest: Vec<f64> = names
            .iter()
            .zip(&sure)
            .map(|(name, sure)| (members(name) * per_template - sure) as f64)
            .collect();
        apportion(most - sure_total, &rest).iter().zip(&sure).map(|(rest, sure)| rest + sure).collect()
    };
    let mut left: Vec<Vec<usize>> = names
        .iter()
        .zip(of_discipline)
        .map(|(name, count)| apportion(count, &vec![1.0; members(name)]))
        .collect();
    disciplines
        .iter()
        .map(|discipline| {
            let at = names.iter().position(|name| name == discipline).unwrap_or(0);
            left[at].remove(0)
        })
        .collect()
}

/// Chooses a tier for every instance so that the totals are as close to the targets as the templates allow.
pub(super) fn allocate(
    counts: &[usize],
    choices: &[Vec<Choice>],
    difficulty_targets: &[usize],
    level_targets: &[usize],
) -> Allocation {
    let mut state = State {
        counts: choices.iter().map(|choices| vec![0; choices.len()]).collect(),
        choices,
        off_difficulty: difficulty_targets.iter().map(|target| -signed(*target)).collect(),
        off_level: level_targets.iter().map(|target| -signed(*target)).collect(),
    };
    let total: i64 = counts.iter().map(|count| signed(*count)).sum();
    let mut placed = 0;
    for (template, count) in counts.iter().enumerate() {
        for _ in 0..*count {
            placed += 1;
            // The tier that is furthest behind its share of the instances placed so far.
            let behind = |slot: &usize| {
                let at = choices[template][*slot].difficulty;
                let target = signed(difficulty_targets[at]);
                let done = state.off_difficulty[at] + target;
                target * placed - done * total
            };
            let best =
                (0..choices[template].len()).max_by_key(|slot| (behind(slot), std::cmp::Reverse(*slot)));
            if let Some(slot) = best {
                state.add(template, slot, 1);
            }
        }
    }
    state.improve();
    let sum = |off: &[i64], targets: &[usize]| -> Vec<usize> {
        off.iter()
            .zip(targets)
            .map(|(off, target)| usize::try_from(off + signed(*target)).unwrap_or(0))
            .collect()
    };
    Allocation {
        by_difficulty: sum(&state.off_difficulty, difficulty_targets),
        by_level: sum(&state.off_level, level_targets),
        counts: state.counts,
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// An allocation in progress, and its distance from the targets.
struct State<'a> {
    counts: Vec<Vec<usize>>,
    choices: &'a [Vec<Choice>],
    off_difficulty: Vec<i64>,
    off_level: Vec<i64>,
}

/// Moves one instance of a template from one choice to another.
#[derive(Clone, Copy, Debug)]
struct Move {
    template: usize,
    from: usize,
    to: usize,
}

impl State<'_> {
    fn add(&mut self, template: usize, slot: usize, by: i64) {
        let choice = self.choices[template][slot];
        let count = &mut self.counts[template][slot];
        *count = count.saturating_add_signed(isize::try_from(by).unwrap_or(0));
        self.off_difficulty[choice.difficulty] += by;
        self.off_level[choice.level] += by;
    }

    fn apply(&mut self, step: Move) {
        self.add(step.template, step.from, -1);
        self.add(step.template, step.to, 1);
    }

    /// The distance from the targets: difficulties first, then levels.
    fn distance(&self) -> (i64, i64) {
        let sum = |off: &[i64]| off.iter().map(|off| off.abs()).sum();
        (sum(&self.off_difficulty), sum(&self.off_level))
    }

    /// Moves instances between tiers, alone, in pairs or in threes, while that brings the totals closer.
    fn improve(&mut self) {
        while self.distance() != (0, 0) {
            let moves = self.moves();
            let before = self.distance();
            let found = (1..=MOST_TOGETHER).find_map(|together| self.better(before, &moves, together));
            let Some(steps) = found else { return };
            for step in steps {
                self.apply(step);
            }
        }
    }

    /// One move of each kind: only its effect on the totals matters, so the template with the most instances of the
    /// tier is used.
    fn moves(&self) -> Vec<Move> {
        let mut moves: Vec<(Choice, Choice, Move)> = Vec::new();
        for (template, choices) in self.choices.iter().enumerate() {
            for from in (0..choices.len()).filter(|from| self.counts[template][*from] > 0) {
                for to in (0..choices.len()).filter(|to| *to != from) {
                    let step = Move { template, from, to };
                    let kind =
                        |(a, b, _): &&mut (Choice, Choice, Move)| *a == choices[from] && *b == choices[to];
                    match moves.iter_mut().find(kind) {
                        Some((_, _, known)) => {
                            if self.counts[template][from] > self.counts[known.template][known.from] {
                                *known = step;
                            }
                        }
                        None => moves.push((choices[from], choices[to], step)),
                    }
                }
            }
        }
        moves.into_iter().map(|(_, _, step)| step).collect()
    }

    /// Finds moves that together bring the totals closer.
    fn better(&mut self, before: (i64, i64), moves: &[Move], depth: usize) -> Option<Vec<Move>> {
        for (at, step) in moves.iter().enumerate() {
            if self.counts[step.template][step.from] == 0 {
                continue;
            }
            let undo = Move { template: step.template, from: step.to, to: step.from };
            self.apply(*step);
            let found = if self.distance() < before {
                Some(vec![*step])
            } else if depth > 1 {
                self.better(before, &moves[at..], depth - 1).map(|mut rest| {
                    rest.push(*step);
                    rest
                })
            } else {
                None
            };
            self.apply(undo);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DISTINCT: [Choice; 3] = [
        Choice { difficulty: 0, level: 0 },
        Choice { difficulty: 1, level: 0 },
        Choice { difficulty: 2, level: 1 },
    ];

    #[test]
    fn largest_remainders() {
        assert_eq!(apportion(20, &[0.34, 0.33, 0.33]), [7, 7, 6]);
        assert_eq!(apportion(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(apportion(3, &[0.0, 2.0]), [0, 3]);
        assert_eq!(apportion(0, &[0.5, 0.5]), [0, 0]);
        assert_eq!(apportion(5, &[0.0]), [0]);
    }

    #[test]
    fn one_instance_of_each_template_still_has_the_mix() {
        let counts = vec![1; 20];
        let choices = vec![DISTINCT.to_vec(); 20];
        let targets = apportion(20, &[0.34, 0.33, 0.33]);
        let allocation = allocate(&counts, &choices, &targets, &[14, 6, 0]);
        assert_eq!(allocation.by_difficulty, [7, 7, 6]);
        assert_eq!(allocation.by_level, [14, 6, 0]);
    }

    #[test]
    fn each_template_has_each_tier_when_there_is_room() {
        let allocation = allocate(&[3; 5], &vec![DISTINCT.to_vec(); 5], &[5, 5, 5], &[10, 5, 0]);
        assert!(allocation.counts.iter().all(|counts| *counts == [1, 1, 1]), "{allocation:?}");
    }

    #[test]
    fn levels_are_met_by_choosing_among_templates() {
        let open = [DISTINCT[0], DISTINCT[1], Choice { difficulty: 2, level: 0 }];
        let choices =
            vec![DISTINCT.to_vec(), DISTINCT.to_vec(), DISTINCT.to_vec(), open.to_vec(), open.to_vec()];
        let allocation = allocate(&[3; 5], &choices, &[5, 5, 5], &[13, 2, 0]);
        assert_eq!((allocation.by_difficulty, allocation.by_level), (vec![5, 5, 5], vec![13, 2, 0]));
    }

    #[test]
    fn budgets() {
        assert_eq!(shares_of_budget(&["a", "a", "b"], 3, 100, 3), [3, 3, 3]);
        assert_eq!(shares_of_budget(&["a", "a", "a", "b"], 5, 8, 3), [2, 2, 1, 3]);
        assert_eq!(shares_of_budget(&["a", "b", "c"], 5, 2, 3), [1, 1, 0]);
        let many = shares_of_budget(&["a"; 27], 5, 20, 3);
        assert_eq!(many.iter().sum::<usize>(), 20);
    }

    /// The smallest distance of all possible allocations.
    fn brute_force(
        counts: &[usize],
        choices: &[Vec<Choice>],
        targets: &[usize],
        levels: &[usize],
    ) -> (usize, usize) {
        fn go(
            at: usize,
            counts: &[usize],
            choices: &[Vec<Choice>],
            done: &mut (Vec<usize>, Vec<usize>),
            best: &mut (usize, usize),
            goal: (&[usize], &[usize]),
        ) {
            let Some(count) = counts.get(at) else {
                let distance = |done: &[usize], goal: &[usize]| -> usize {
                    done.iter().zip(goal).map(|(done, goal)| done.abs_diff(*goal)).sum()
                };
                *best = (*best).min((distance(&done.0, goal.0), distance(&done.1, goal.1)));
                return;
            };
            if *count == 0 {
                return go(at + 1, counts, choices, done, best, goal);
            }
            let mut fewer = counts.to_vec();
            fewer[at] -= 1;
            for choice in &choices[at] {
                done.0[choice.difficulty] += 1;
                done.1[choice.level] += 1;
                go(at, &fewer, choices, done, best, goal);
                done.0[choice.difficulty] -= 1;
                done.1[choice.level] -= 1;
            }
        }
        let mut best = (usize::MAX, usize::MAX);
        go(
            0,
            counts,
            choices,
            &mut (vec![0; targets.len()], vec![0; levels.len()]),
            &mut best,
            (targets, levels),
        );
        best
    }

    proptest! {
        #[test]
        fn no_allocation_is_nearer_to_the_mix(
            templates in prop::collection::vec((0_usize..3, prop::collection::vec((0_usize..3, 0_usize..3), 1..4)), 1..5),
            shares in prop::collection::vec(0.0_f64..1.0, 3),
            levels in prop::collection::vec(0.0_f64..1.0, 3),
        ) {
            let counts: Vec<usize> = templates.iter().map(|(count, _)| *count).collect();
            let choices: Vec<Vec<Choice>> = templates.iter().map(|(_, tiers)| {
                let mut tiers: Vec<Choice> =
                    tiers.iter().map(|(difficulty, level)| Choice { difficulty: *difficulty, level: *level }).collect();
                tiers.sort_by_key(|choice| choice.difficulty);
                tiers.dedup_by_key(|choice| choice.difficulty);
                tiers
            }).collect();
            let total = counts.iter().sum();
            let (targets, level_targets) = (apportion(total, &shares), apportion(total, &levels));
            let allocation = allocate(&counts, &choices, &targets, &level_targets);
            for ((count, parts), choices) in counts.iter().zip(&allocation.counts).zip(&choices) {
                prop_assert_eq!(*count, parts.iter().sum::<usize>());
                prop_assert_eq!(parts.len(), choices.len());
            }
            let distance = |done: &[usize], goal: &[usize]| -> usize {
                done.iter().zip(goal).map(|(done, goal)| done.abs_diff(*goal)).sum()
            };
            let found = (distance(&allocation.by_difficulty, &targets), distance(&allocation.by_level, &level_targets));
            prop_assert_eq!(found, brute_force(&counts, &choices, &targets, &level_targets));
        }

        #[test]
        fn parts_add_up(total in 0_usize..5000, shares in prop::collection::vec(0.0_f64..1.0, 1..6)) {
            prop_assume!(shares.iter().sum::<f64>() > 0.0);
            let parts = apportion(total, &shares);
            prop_assert_eq!(parts.iter().sum::<usize>(), total);
            let sum: f64 = shares.iter().sum();
            for (part, share) in parts.iter().zip(&shares) {
                let exact = share / sum * f64::from(u32::try_from(total).unwrap());
                prop_assert!((f64::from(u32::try_from(*part).unwrap()) - exact).abs() < 1.0 + 1e-6);
            }
        }
    }
}
