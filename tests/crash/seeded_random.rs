//! Seeded random numbers (SplitMix64): the same seed gives the same run.

/// The random number generator.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    /// Seeds the generator from `CRASH_SEED`, default 1.
    pub(crate) fn seeded() -> (Self, u64) {
        let seed = std::env::var("CRASH_SEED").map_or(1, |seed| seed.parse().expect("CRASH_SEED is a number"));
        (Self(seed), seed)
    }

    /// A random number from `low` to `high`, both included.
    pub(crate) fn in_range(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        low + (mixed ^ (mixed >> 31)) % (high - low + 1)
    }
}
