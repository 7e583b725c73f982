//! Tasks with nearly the same words: sets of sequences of five words, compared by the share of common elements.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use aec_base::parallel;

use super::alike::Groups;
use super::{Likeness, Prompt};

/// Words in a sequence.
const RUN: usize = 5;

/// Joins all tasks that share at least nine tenths of their sequences.
pub(super) fn join(prompts: &[Prompt], groups: &mut Groups) {
    let mut runs = parallel::map(prompts, 16, |prompt| runs(&prompt.text));
    to_ranks(&mut runs);
    // Equal sets first, so that a thousand copies are not compared with each other.
    let mut first_of: HashMap<&[u64], usize> = HashMap::new();
    let mut order = Vec::new();
    for (index, set) in runs.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        match first_of.get(set.as_slice()) {
            Some(first) => {
                if groups.root(*first) != groups.root(index) {
                    groups.join(*first, index, Likeness::Words);
                }
            }
            None => {
                first_of.insert(set, index);
                order.push(index);
            }
        }
    }
    order.sort_by_key(|index| (runs[*index].len(), *index));
    let mut with_rare: HashMap<u64, Vec<usize>, BuildHasherDefault<Mixed>> = HashMap::default();
    let mut seen_by = vec![usize::MAX; runs.len()];
    for one in order {
        let set = &runs[one];
        // Two sets that share nine tenths have a common element among the first tenth of each.
        let prefix = &set[..=(set.len() - nine_tenths(set.len()))];
        for rare in prefix {
            let others = with_rare.entry(*rare).or_default();
            for other in others.iter().copied() {
                if seen_by[other] == one || groups.root(one) == groups.root(other) {
                    continue;
                }
                seen_by[other] = one;
                if share_enough(&runs[other], set) {
                    groups.join(one, other, Likeness::Words);
                }
            }
            others.push(one);
        }
    }
}

/// Nine tenths of a number, rounded up.
fn nine_tenths(count: usize) -> usize {
    (count * 9).div_ceil(10)
}

/// Whether nine tenths of all elements are common; both sets are sorted.
fn share_enough(small: &[u64], large: &[u64]) -> bool {
    if small.len() < nine_tenths(large.len()) {
        return false;
    }
    // common / (small + large - common) >= 9/10, so common >= 9 (small + large) / 19.
    let needed = (9 * (small.len() + large.len())).div_ceil(19);
    let mut common = 0;
    let (mut a, mut b) = (0, 0);
    // Rare elements come first, so different sets are recognised early.
    while common + (small.len() - a).min(large.len() - b) >= needed {
        match (small.get(a), large.get(b)) {
            (Some(x), Some(y)) if x == y => {
                common += 1;
                a += 1;
                b += 1;
            }
            (Some(x), Some(y)) if x < y => a += 1,
            (Some(_), Some(_)) => b += 1,
            _ => return true,
        }
    }
    false
}

/// Hashes of the distinct sequences of five words; a shorter text is one sequence.
fn runs(text: &str) -> Vec<u64> {
    let words: Vec<u64> = text.split_whitespace().map(hash_word).collect();
    let run = |words: &[u64]| words.iter().fold(0, |hash, word| mix(hash ^ word));
    let mut runs: Vec<u64> = match words.len() {
        0 => Vec::new(),
        1..=RUN => vec![run(&words)],
        _ => words.windows(RUN).map(run).collect(),
    };
    runs.sort_unstable();
    runs.dedup();
    runs
}

fn hash_word(word: &str) -> u64 {
    word.as_bytes().chunks(8).fold(word.len() as u64, |hash, chunk| {
        let number = chunk.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        mix(hash ^ number)
    })
}

/// Lets every bit affect all others (the finaliser of `SplitMix64`).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Replaces each sequence by its rank, the rarest first, and sorts.
fn to_ranks(sets: &mut [Vec<u64>]) {
    let mut all: Vec<u64> = sets.iter().flatten().copied().collect();
    all.sort_unstable();
    let mut counted: Vec<(u32, u64)> = all
        .chunk_by(|a, b| a == b)
        .map(|same| (u32::try_from(same.len()).unwrap_or(u32::MAX), same[0]))
        .collect();
    counted.sort_unstable();
    let ranks: HashMap<u64, u64, BuildHasherDefault<Mixed>> =
        counted.into_iter().zip(0..).map(|((_, run), rank)| (run, rank)).collect();
    for set in sets {
        for run in set.iter_mut() {
            *run = ranks.get(run).copied().unwrap_or_default();
        }
        set.sort_unstable();
    }
}

/// A hasher for numbers that are already hashes.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(value);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares every pair, straight from the definition.
    fn plainly(texts: &[String]) -> Vec<usize> {
        let sets: Vec<Vec<u64>> = texts.iter().map(|text| runs(text)).collect();
        let mut groups = Groups::new(texts.len());
        for (a, one) in sets.iter().enumerate() {
            for (b, other) in sets.iter().enumerate().skip(a + 1) {
                let common = one.iter().filter(|run| other.contains(run)).count();
                let all = one.len() + other.len() - common;
                if all > 0 && common * 10 >= all * 9 {
                    groups.join(a, b, Likeness::Words);
                }
            }
        }
        (0..texts.len()).map(|index| groups.root(index)).collect()
    }

    fn some_texts() -> impl Strategy<Value = Vec<String>> {
        // Variants of one text with few changes, so that many pairs are close to the limit.
        let change = (0_usize..60, 0_u8..3);
        proptest::collection::vec((proptest::collection::vec(change, 0..4), 50_usize..60), 1..12).prop_map(
            |texts| {
                let one = |(changes, length): (Vec<(usize, u8)>, usize)| {
                    let mut words: Vec<String> = (0..length).map(|index| format!("w{index}")).collect();
                    for (at, word) in changes {
                        if let Some(place) = words.get_mut(at) {
                            *place = format!("changed{word}");
                        }
                    }
                    words.join(" ")
                };
                texts.into_iter().map(one).collect()
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_is_overlooked_and_nothing_is_made_up(texts in some_texts()) {
            let prompts: Vec<Prompt> =
                texts.iter().map(|text| Prompt { task_id: String::new(), text: text.clone() }).collect();
            let mut groups = Groups::new(texts.len());
            join(&prompts, &mut groups);
            let found: Vec<usize> = (0..texts.len()).map(|index| groups.root(index)).collect();
            prop_assert_eq!(found, plainly(&texts));
        }
    }
}
