//! Random answers files and submissions, the same in every run.

mod render;
mod texts;
mod values;

pub(crate) use render::submission;
pub(crate) use values::{answers, change};

use serde_json::Value as Json;

/// Splitmix64: small, good enough, the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    /// True once in `n` times on average.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    pub(crate) fn item<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number of `figures` significant figures, of any usual size and sign.
    pub(crate) fn number(&mut self, figures: usize) -> f64 {
        let digits = 1 + self.below(10_usize.pow(u32::try_from(figures).unwrap()) - 1);
        let power = i32::try_from(self.below(9)).unwrap() - 4;
        let sign = if self.one_in(5) { "-" } else { "" };
        format!("{sign}{digits}e{power}").parse().unwrap()
    }
}

/// An answers file and what the generator knows about it.
pub(crate) struct Answers {
    pub(crate) text: String,
    pub(crate) fields: Vec<(String, Json)>,
}

/// What the generator knows about a field of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Must be correct.
    Right,
    /// Must not be correct.
    Wrong,
    /// Undetermined, but the scorers must agree.
    Open,
}

/// A submission, with what is known about each field.
pub(crate) struct Submission {
    pub(crate) bytes: Vec<u8>,
    pub(crate) known: Vec<Known>,
}
