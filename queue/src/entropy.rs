//! The Entropy: the one place that asks the machine for chance.

use aws_lc_rs::rand;

/// Gives random numbers fit for secrets. Clones are the same source.
#[derive(Debug, Clone, Default)]
pub struct Entropy {}

impl Entropy {
    /// Fills a buffer.
    pub fn fill(&self, buffer: &mut [u8]) {
        if rand::fill(buffer).is_err() {
            // The machine has no randomness left to give: ids would collide and secrets be guessed.
            // Nothing that goes on from here can be right.
            tracing::error!("the system's random source failed");
            std::process::abort();
        }
    }

    /// 32 bytes: a secret.
    #[must_use]
    pub fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        bytes
    }

    /// 128 bits: the chance in an id.
    #[must_use]
    pub fn u128(&self) -> u128 {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        u128::from_ne_bytes(bytes)
    }

    /// 64 bits: a seed.
    #[must_use]
    pub fn u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_ne_bytes(bytes)
    }
}
