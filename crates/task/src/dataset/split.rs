//! Splits tasks into two disjoint sides, one for training and one for evaluation.
//!
//! Instances of one template are similar, so whole families go to one side. The side depends only on the seed and the
//! family: adding, removing or filtering tasks never moves a task to the other side. Every part of the program that
//! splits tasks uses [`sides`].

use aec_base::digest::Hasher;
use serde::Serialize;

use crate::id::TaskId;
use crate::task::Task;

/// Begins every hash that decides a side.
const SPLIT: &[u8] = b"aec-bench split 1";

/// With fewer families than this, tasks are split one by one, because the shares of whole families would be too
/// uneven.
pub const FEWEST_FAMILIES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Train,
    /// For evaluation.
    Eval,
}

/// The share of tasks for training: more than 0 and less than 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainShare(f64);

impl Default for TrainShare {
    fn default() -> Self {
        Self(0.8)
    }
}

impl TrainShare {
    /// `None` if the share is out of range.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share < 1.0).then_some(Self(share))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

/// The parts of a task that a split depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: TaskId,
    pub family: String,
}

impl Member {
    pub fn of(task: &Task) -> Self {
        Self { family: family(task), id: task.id.clone() }
    }
}

/// The family of a task: its template, or else its parent directory.
pub fn family(task: &Task) -> String {
    match task.generation.as_ref().and_then(|generation| generation.template.as_deref()) {
        Some(template) => format!("template:{template}"),
        None => format!("directory:{}", task.id.as_str().rsplit_once('/').map_or("", |(above, _)| above)),
    }
}

/// The position of a key between 0 and 1 under a seed. A key below the share is on the train side.
pub fn position(seed: i64, key: &str) -> f64 {
    let mut hasher = Hasher::default();
    hasher.part(SPLIT);
    hasher.part(seed.to_string().as_bytes());
    hasher.part(key.as_bytes());
    let digest = hasher.finish();
    let (first, _) = digest.bytes().split_at(8);
    let number = first.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // A float holds 53 bits exactly, here and in every other language.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let position = (number >> 11) as f64 / (1_u64 << 53) as f64;
    position
}

/// The side of each task, in the given order.
///
/// A side is empty only if there is one task: otherwise the family nearest to the empty side moves there.
pub fn sides(members: &[Member], seed: i64, share: TrainShare) -> Vec<Side> {
    let mut families: Vec<&str> = members.iter().map(|member| member.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let by_family = families.len() >= FEWEST_FAMILIES;
    let keys: Vec<String> = members
        .iter()
        .map(|member| if by_family { member.family.clone() } else { format!("task:{}", member.id) })
        .collect();
    let positions: Vec<f64> = keys.iter().map(|key| position(seed, key)).collect();
    let mut sides: Vec<Side> = positions
        .iter()
        .map(|position| if *position < share.get() { Side::Train } else { Side::Eval })
        .collect();
    let mut distinct: Vec<(f64, &str)> =
        positions.iter().copied().zip(keys.iter().map(String::as_str)).collect();
    distinct.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
    distinct.dedup();
    if distinct.len() > 1 {
        for (side, nearest) in [(Side::Train, distinct.first()), (Side::Eval, distinct.last())] {
            if !sides.contains(&side)
                && let Some((_, moved)) = nearest
            {
                for (place, key) in sides.iter_mut().zip(&keys) {
                    if key == moved {
                        *place = side;
                    }
                }
            }
        }
    }
    sides
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(id: &str, family: &str) -> Member {
        Member { id: TaskId::parse(id).unwrap(), family: family.to_owned() }
    }

    fn members(families: usize, each: usize) -> Vec<Member> {
        (0..families)
            .flat_map(|f| {
                (0..each).map(move |i| member(&format!("civil/f{f}/i{i}"), &format!("template:f{f}")))
            })
            .collect()
    }

    #[test]
    fn known_positions() {
        // docs/datasets.md prints the same figures for other implementations.
        let shown = |seed, key| format!("{:.6}", position(seed, key));
        assert_eq!(shown(7, "template:voltage-drop"), "0.524488");
        assert_eq!(shown(-1, "task:civil/manning"), "0.841638");
    }

    #[test]
    fn families_stay_together_when_there_are_enough() {
        let all = members(5, 10);
        let found = sides(&all, 7, TrainShare::new(0.8).unwrap());
        for family in 0..5 {
            let of: Vec<Side> = found[family * 10..][..10].to_vec();
            assert!(of.iter().all(|side| *side == of[0]));
        }
        let few = members(4, 50);
        let found = sides(&few, 7, TrainShare::new(0.8).unwrap());
        assert!(
            (0..4).any(|family| found[family * 50..][..50].iter().any(|side| *side != found[family * 50]))
        );
    }

    #[test]
    fn shares_are_near_what_was_asked_for() {
        let all = members(2000, 1);
        let train =
            sides(&all, 3, TrainShare::new(0.8).unwrap()).iter().filter(|side| **side == Side::Train).count();
        assert!((1540..1660).contains(&train), "{train}");
    }

    #[test]
    fn shares_outside_the_open_interval_are_refused() {
        for share in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            assert!(TrainShare::new(share).is_none(), "{share}");
        }
    }

    proptest! {
        #[test]
        fn no_side_is_empty_unless_there_is_one_task(
            count in 1_usize..12, families in 1_usize..8, seed in any::<i64>(), share in 0.001_f64..0.999,
        ) {
            let all: Vec<Member> =
                (0..count).map(|i| member(&format!("civil/i{i}"), &format!("f{}", i % families))).collect();
            let found = sides(&all, seed, TrainShare::new(share).unwrap());
            let train = found.iter().filter(|side| **side == Side::Train).count();
            if count == 1 { prop_assert!(train <= 1) } else { prop_assert!(train > 0 && train < count) }
        }

        #[test]
        fn other_tasks_do_not_matter(seed in any::<i64>(), keep in proptest::collection::vec(any::<bool>(), 40)) {
            let share = TrainShare::new(0.5).unwrap();
            let all = members(20, 2);
            let whole = sides(&all, seed, share);
            let kept: Vec<usize> = (0..40).filter(|index| keep[*index]).collect();
            let part: Vec<Member> = kept.iter().map(|index| all[*index].clone()).collect();
            let families = part.iter().map(|m| &m.family).collect::<std::collections::HashSet<_>>().len();
            let part_sides = sides(&part, seed, share);
            let both = |sides: &[Side]| sides.contains(&Side::Train) && sides.contains(&Side::Eval);
            let natural: Vec<Side> = kept.iter().map(|index| whole[*index]).collect();
            if families >= FEWEST_FAMILIES && both(&natural) {
                prop_assert_eq!(part_sides, natural);
            }
        }
    }
}
