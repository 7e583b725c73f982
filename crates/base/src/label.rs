//! Short names for people. A label is the shortest end of an id that differs from the other ids beside it.

use std::collections::{HashMap, HashSet};

/// Fewest letters shown of an id that has no words, such as that of a trial.
const SHORTEST: usize = 8;

/// The labels of task ids that are shown together.
#[derive(Clone, Debug, Default)]
pub struct Labels(HashMap<String, String>);

impl Labels {
    /// One label for each id. No two ids share a label.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut open: Vec<(&str, Candidates<'_>)> =
            ids.into_iter().map(|id| (id, Candidates::of(id))).collect();
        open.sort_unstable_by_key(|(id, _)| *id);
        open.dedup_by_key(|(id, _)| *id);
        let (mut labels, mut taken) = (HashMap::with_capacity(open.len()), HashSet::new());
        for step in 0.. {
            let mut counts: HashMap<String, u32> = HashMap::new();
            for (_, candidates) in &open {
                *counts.entry(candidates.get(step)).or_default() += 1;
            }
            open.retain(|(id, candidates)| {
                let label = candidates.get(step);
                let is_free = counts.get(&label) == Some(&1) && !taken.contains(&label);
                let settled = candidates.is_last(step) || is_free;
                if settled {
                    taken.insert(label.clone());
                    labels.insert((*id).to_owned(), label);
                }
                !settled
            });
            if open.is_empty() {
                break;
            }
        }
        Self(labels)
    }

    /// The label of an id; the id itself if it has no label.
    pub fn get<'a>(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, String::as_str)
    }
}

/// The possible labels of an id, from short to long.
struct Candidates<'a> {
    id: &'a str,
    /// The id without the seed and the number that the generator appended.
    stem: &'a str,
    /// The number that the generator appended; empty if there is none.
    number: &'a str,
}

impl<'a> Candidates<'a> {
    fn of(id: &'a str) -> Self {
        let (stem, number) = without_tail(id).unwrap_or((id, ""));
        Self { id, stem, number }
    }

    fn get(&self, step: usize) -> String {
        match step {
            0 => last(self.stem, 2).to_owned(),
            1 if !self.number.is_empty() => format!("{}#{}", last(self.stem, 2), self.number),
            _ => last(self.id, step).to_owned(),
        }
    }

    /// Whether this candidate is the whole id.
    fn is_last(&self, step: usize) -> bool {
        step >= 2 && last(self.id, step).len() == self.id.len()
    }
}

/// The last `parts` segments of an id.
fn last(id: &str, parts: usize) -> &str {
    let start = id.rmatch_indices('/').nth(parts.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    &id[start..]
}

/// An id without `-20260524-000`, and the number `000`.
fn without_tail(id: &str) -> Option<(&str, &str)> {
    let is_number =
        |text: &str, least: usize| text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, number) = id.rsplit_once('-')?;
    let (stem, seed) = rest.rsplit_once('-')?;
    (is_number(number, 3) && is_number(seed, 1) && !stem.ends_with('/')).then_some((stem, number))
}

/// The labels of ids that have no words, such as those of trials: beginnings that are long enough to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginnings {
    letters: usize,
}

impl Default for Beginnings {
    fn default() -> Self {
        Self { letters: SHORTEST }
    }
}

impl Beginnings {
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sorted: Vec<&str> = ids.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let common =
            |one: &str, other: &str| one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let longest = sorted.windows(2).map(|pair| common(pair[0], pair[1])).max().unwrap_or(0);
        Self { letters: SHORTEST.max(longest + 1) }
    }

    /// The label of one of the ids.
    pub fn get(self, id: &str) -> &str {
        id.get(..self.letters).unwrap_or(id)
    }
}

/// Prefixes of the ids, long enough to differ, in the order of the ids.
pub fn short<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let beginnings = Beginnings::of(ids.iter().copied());
    ids.iter().map(|id| beginnings.get(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_differ() {
        let ids = [
            "electrical/voltage-drop",
            "generated/s/structural/steel/steel-beam-check/theatre-store-medium-20260524-000",
            "generated/s/structural/steel/column-buckling/shed-easy-20260524-000",
            "generated/s/structural/steel/column-buckling/shed-easy-20260524-001",
            "generated/s/structural/steel/column-buckling/hall-easy-1-000",
            "generated/s/structural/steel/column-buckling/hall-easy-2-000",
            "a/x/same",
            "b/x/same",
        ];
        let labels = Labels::of(ids);
        let told: Vec<&str> = ids.iter().map(|id| labels.get(id)).collect();
        assert_eq!(
            told,
            [
                "electrical/voltage-drop",
                "steel-beam-check/theatre-store-medium",
                "column-buckling/shed-easy#000",
                "column-buckling/shed-easy#001",
                "column-buckling/hall-easy-1-000",
                "column-buckling/hall-easy-2-000",
                "a/x/same",
                "b/x/same",
            ]
        );
        assert_eq!(labels.get("never/seen"), "never/seen");
    }

    #[test]
    fn beginnings_tell_ids_apart() {
        assert_eq!(short(&["737d140f-3ddd", "06fc3024-fe87"]), ["737d140f", "06fc3024"]);
        assert_eq!(short(&["737d140f-3ddd", "737d140f-3eee"]), ["737d140f-3d", "737d140f-3e"]);
        assert_eq!(short(&["a", "b"]), ["a", "b"]);
        assert_eq!(short(&["same", "same"]), ["same", "same"]);
        assert!(short(&[]).is_empty());
        assert_eq!(Beginnings::of(["737d140f-3ddd", "737d140f-3eee"]).get("737d140f-3eee"), "737d140f-3e");
        assert_eq!(Beginnings::default().get("737d140f-3ddd"), "737d140f");
    }
}
