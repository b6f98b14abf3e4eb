//! The Entropy: the one place that asks the machine for chance.
//!
//! A call of the source costs a microsecond however little it gives, so each thread asks for a supply at once
//! and hands it out, each byte once. Secrets and keys do not come from a supply.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::rand;

/// What a thread asks for at once.
const SUPPLY_BYTES: usize = 1_024;

/// How many ids were made, counted around.
static IDS_MADE: AtomicU32 = AtomicU32::new(0);
/// Where the count stands in an id's chance, of which the low 80 bits are kept: above 56 bits that are random.
const COUNT_SHIFT: u32 = 56;

/// Random bytes, those from `next` on not handed out yet.
struct RandomSupply {
    bytes: [u8; SUPPLY_BYTES],
    next: usize,
}

thread_local! {
    static SUPPLY: RefCell<RandomSupply> = const {
        RefCell::new(RandomSupply { bytes: [0; SUPPLY_BYTES], next: SUPPLY_BYTES })
    };
}

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

    /// 128 bits.
    #[must_use]
    pub fn u128(&self) -> u128 {
        u128::from_ne_bytes(self.take_bytes())
    }

    /// What tells an id from its twins of the same millisecond: the later one made here is the greater, so that what is
    /// listed by id stands in the order in which it happened; there is room above for a few thousand that follow it.
    #[must_use]
    pub fn unique_bits(&self) -> u128 {
        let count = u128::from(IDS_MADE.fetch_add(1, Ordering::Relaxed) & 0xff_ffff);
        (count << COUNT_SHIFT) | u128::from(self.u64() >> (u64::BITS - COUNT_SHIFT))
    }

    /// 64 bits: a seed.
    #[must_use]
    pub fn u64(&self) -> u64 {
        u64::from_ne_bytes(self.take_bytes())
    }

    /// Some bytes of the thread's supply.
    fn take_bytes<const N: usize>(&self) -> [u8; N] {
        SUPPLY.with_borrow_mut(|supply| {
            loop {
                let rest = supply.bytes.get_mut(supply.next..).unwrap_or_default();
                if let Some(some) = rest.first_chunk_mut::<N>() {
                    supply.next += N;
                    return std::mem::replace(some, [0; N]);
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
    fn nothing_is_handed_out_twice() {
        let entropy = Entropy::default();
        let numbers: std::collections::HashSet<u128> = (0..1_000).map(|_| entropy.u128()).collect();
        assert_eq!((numbers.len(), numbers.contains(&0)), (1_000, false));
        assert_ne!(entropy.u64(), entropy.u64());
    }

    #[test]
    fn ids_are_in_the_order_in_which_they_are_made() {
        let entropy = Entropy::default();
        let ids: Vec<u128> = (0..1_000).map(|_| entropy.unique_bits()).collect();
        assert!(ids.is_sorted_by(|one, next| one + 999 < *next));
        assert!(ids.iter().all(|id| *id < 1 << 80));
    }
}
