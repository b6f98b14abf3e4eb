//! The entropy source: the only code that requests randomness from the system.
//!
//! A system call costs about a microsecond whatever its size, so each thread fetches a supply and uses each byte once.
//! Secrets and keys bypass the supply.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::rand;

/// Bytes fetched into a thread's supply at once.
const SUPPLY_BYTES: usize = 1_024;

/// Number of ids generated, wrapping.
static IDS_MADE: AtomicU32 = AtomicU32::new(0);
/// Bit position of the counter in an id, of which the low 80 bits are used: above 56 random bits.
const COUNT_SHIFT: u32 = 56;

/// Random bytes; those from `next` on are unused.
struct RandomSupply {
    bytes: [u8; SUPPLY_BYTES],
    next: usize,
}

thread_local! {
    static SUPPLY: RefCell<RandomSupply> = const {
        RefCell::new(RandomSupply { bytes: [0; SUPPLY_BYTES], next: SUPPLY_BYTES })
    };
}

/// Cryptographically secure random numbers. Clones share the source.
#[derive(Debug, Clone, Default)]
pub struct Entropy {}

impl Entropy {
    pub fn fill(&self, buffer: &mut [u8]) {
        if rand::fill(buffer).is_err() {
            // Without randomness, ids would collide and secrets could be guessed: abort.
            tracing::error!("the system's random source failed");
            std::process::abort();
        }
    }

    /// Returns 32 random bytes for a secret, not from the supply.
    pub fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        bytes
    }

    pub fn u128(&self) -> u128 {
        u128::from_ne_bytes(self.take_bytes())
    }

    /// Distinguishes ids of the same millisecond. Later ids of this process are greater, so that lists by id are in
    /// order of creation. Adding a few thousand to the result does not reach the next id.
    pub fn unique_bits(&self) -> u128 {
        let count = u128::from(IDS_MADE.fetch_add(1, Ordering::Relaxed) & 0xff_ffff);
        (count << COUNT_SHIFT) | u128::from(self.u64() >> (u64::BITS - COUNT_SHIFT))
    }

    pub fn u64(&self) -> u64 {
        u64::from_ne_bytes(self.take_bytes())
    }

    /// Takes bytes from the thread's supply.
    fn take_bytes<const N: usize>(&self) -> [u8; N] {
        SUPPLY.with_borrow_mut(|supply| {
            loop {
                let remaining = supply.bytes.get_mut(supply.next..).unwrap_or_default();
                if let Some(chunk) = remaining.first_chunk_mut::<N>() {
                    supply.next += N;
                    return std::mem::replace(chunk, [0; N]);
                }
                self.fill(&mut supply.bytes);
                supply.next = 0;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_random_bytes_are_used_twice() {
        let entropy = Entropy::default();
        let numbers: std::collections::HashSet<u128> = (0..1_000).map(|_| entropy.u128()).collect();
        assert_eq!((numbers.len(), numbers.contains(&0)), (1_000, false));
        assert_ne!(entropy.u64(), entropy.u64());
    }

    #[test]
    fn ids_are_ordered_by_creation() {
        let entropy = Entropy::default();
        let ids: Vec<u128> = (0..1_000).map(|_| entropy.unique_bits()).collect();
        assert!(ids.is_sorted_by(|previous, next| previous + 999 < *next));
        assert!(ids.iter().all(|id| *id < 1 << 80));
    }
}
