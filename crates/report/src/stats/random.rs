//! Random numbers that are the same everywhere.

/// `SplitMix64`: one addition and a mix for 64 bits, which is as fast as adding up the drawn values.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    state: u64,
}

impl Generator {
    /// The generator for one block of the work under a seed. Blocks do not share numbers, so it does not matter which
    /// thread runs which block.
    pub(super) fn new(seed: u64, block: u64) -> Self {
        let mut seeded = Self { state: seed };
        let mut blocked = Self { state: seeded.word() ^ block };
        Self { state: blocked.word() }
    }

    pub(super) fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Two numbers below `bound`. Some are more likely than others by one part in 2^32 / `bound`, which no realistic
    /// number of resamples could show.
    pub(super) fn two_below(&mut self, bound: u32) -> [usize; 2] {
        let word = self.word();
        [word & 0xffff_ffff, word >> 32].map(|half| ((half * u64::from(bound)) >> 32) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_published_generator() {
        // First outputs for the state 1234567, as Rosetta Code lists them.
        let mut generator = Generator { state: 1_234_567 };
        let words = [generator.word(), generator.word(), generator.word()];
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn blocks_and_seeds_give_different_numbers() {
        let first = |seed, block| Generator::new(seed, block).word();
        let mut seen: Vec<u64> =
            (0..100).flat_map(|seed| (0..100).map(move |block| first(seed, block))).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
    }

    #[test]
    fn indices_are_spread_evenly() {
        let mut counts = [0_u32; 7];
        let mut generator = Generator::new(1, 0);
        for _ in 0..35_000 {
            for index in generator.two_below(7) {
                counts[index] += 1;
            }
        }
        // 10,000 expected, standard deviation 93.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
    }
}
