//! Random numbers derived from a seed and a request, and two tables of bounded size that remember earlier requests.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Combines two numbers so that all bits of both count.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Combines a number and some bytes.
pub(crate) fn mix_bytes(start: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(start, bytes.len() as u64);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    let rest = chunks.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    mix(hash, rest)
}

/// A pseudo-random sequence.
#[derive(Clone, Copy)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0, 0)
    }

    /// At least 0, less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.next())
    }

    /// A number in a range, both ends included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        let span = most.saturating_sub(least).saturating_add(1);
        least + self.next() % span
    }

    /// Letters and digits, as in the ids of providers.
    pub(crate) fn letters(&mut self, length: usize) -> String {
        const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        (0..length).map(|_| char::from(ALPHABET[usize::try_from(self.next() % 62).unwrap_or(0)])).collect()
    }

    /// Hexadecimal digits in groups, as in a UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff
        )
    }
}

/// A number as a share of all numbers: at least 0, less than 1.
pub(crate) fn unit(number: u64) -> f64 {
    const BITS: u32 = 53;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let share = (number >> (64 - BITS)) as f64 / (1_u64 << BITS) as f64;
    share
}

/// How often each request came, in a table that does not grow. Requests whose digests end alike share a counter, so
/// among very many different requests a new one may find its counter above zero; it is then treated like a
/// repetition, with the same probabilities.
pub(crate) struct Repetitions(Box<[AtomicU32]>);

impl Repetitions {
    const COUNTERS: usize = 1 << 17;

    pub(crate) fn new() -> Self {
        Self((0..Self::COUNTERS).map(|_| AtomicU32::new(0)).collect())
    }

    /// How often this digest came before, counting this time.
    pub(crate) fn count(&self, digest: u64) -> u32 {
        self.0[slot(digest, Self::COUNTERS)].fetch_add(1, Ordering::Relaxed)
    }
}

/// Prompts that a provider's cache would hold, as fingerprints in a table that does not grow. A newer prompt replaces
/// an older one in the same slot, as in a cache that evicts.
pub(crate) struct Prefixes(Box<[AtomicU64]>);

impl Prefixes {
    const ENTRIES: usize = 1 << 15;

    pub(crate) fn new() -> Self {
        Self((0..Self::ENTRIES).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn knows(&self, fingerprint: u64) -> bool {
        self.0[slot(fingerprint, Self::ENTRIES)].load(Ordering::Relaxed) == fingerprint
    }

    pub(crate) fn learn(&self, fingerprint: u64) {
        self.0[slot(fingerprint, Self::ENTRIES)].store(fingerprint, Ordering::Relaxed);
    }
}

/// A slot in a table whose length is a power of two.
fn slot(number: u64, length: usize) -> usize {
    usize::try_from(number & (length as u64 - 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_from_the_seed() {
        let take = |seed| {
            let mut draws = Draws::new(seed);
            (draws.next(), draws.letters(24), draws.uuid())
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        let (_, letters, uuid) = take(7);
        assert!(letters.len() == 24 && letters.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert!(uuid.len() == 36 && uuid.as_bytes()[14] == b'4', "{uuid}");
    }

    #[test]
    fn shares_are_even() {
        let mut draws = Draws::new(1);
        let below = (0..10_000).filter(|_| draws.unit() < 0.3).count();
        assert!((2_800..3_200).contains(&below), "{below}");
        assert!(unit(0).abs() < f64::EPSILON && unit(u64::MAX) < 1.0);
    }

    #[test]
    fn repetitions_are_counted_per_digest() {
        let table = Repetitions::new();
        assert_eq!([table.count(5), table.count(5), table.count(6)], [0, 1, 0]);
    }

    #[test]
    fn prefixes_are_forgotten_only_for_newer_ones() {
        let table = Prefixes::new();
        assert!(!table.knows(9));
        table.learn(9);
        assert!(table.knows(9));
        table.learn(9 + Prefixes::ENTRIES as u64);
        assert!(!table.knows(9));
    }

    proptest::proptest! {
        #[test]
        fn ranges_hold_their_draws(seed: u64, a in 0_u64..1_000, b in 0_u64..1_000) {
            let (least, most) = (a.min(b), a.max(b));
            let drawn = Draws::new(seed).between(least, most);
            proptest::prop_assert!((least..=most).contains(&drawn));
        }

        #[test]
        fn different_bytes_have_different_fingerprints(a: Vec<u8>, b: Vec<u8>) {
            proptest::prop_assert_eq!(mix_bytes(1, &a) == mix_bytes(1, &b), a == b);
        }
    }
}
