//! Random choices that are the same for the same trial.

use aec_base::digest::Hasher;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

pub(crate) struct Chance(ChaCha8Rng);

impl Chance {
    /// Seeded by the trial, the agent's own seed and its skill.
    pub(crate) fn new(trial: &[u8; 32], seed: i64, skill: f64) -> Self {
        let mut hasher = Hasher::default();
        hasher.part(trial);
        hasher.part(&seed.to_le_bytes());
        hasher.part(&skill.to_bits().to_le_bytes());
        Self(ChaCha8Rng::from_seed(*hasher.finish().bytes()))
    }

    /// A number from 0 to 1, excluding 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn unit(&mut self) -> f64 {
        const BITS: f64 = 9_007_199_254_740_992.0;
        (self.0.next_u64() >> 11) as f64 / BITS
    }

    /// True with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An index below `count`, which must not be 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "counts are small"
    )]
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count.saturating_sub(1))
    }

    pub(crate) fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for index in (1..items.len()).rev() {
            let other = self.below(index + 1);
            items.swap(index, other);
        }
        items
    }
}
