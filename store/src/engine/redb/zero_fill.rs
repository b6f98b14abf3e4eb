//! Zero fill: zeros written ahead of small groups.
//!
//! Preallocated space has blocks, but the file system marks them as unwritten extents. The first write to a block
//! changes that mark. An fdatasync must then also write the change through the file system's journal, which doubles its
//! time and work. Therefore the blocks of many small groups are zeroed in one write, after the first group in them, and
//! later groups overwrite the zeros. A reader sees zeros either way, so replay needs no distinction.
//!
//! ```text
//! one write:    │ group │ zeros: space for about 64 such groups │   converts the blocks, once
//! later writes: │ ..... │ group │                               │   data only
//! ```
//!
//! The bytes of small groups are thus written twice, which costs less than a journal write for each. Large groups are
//! not preceded by zeros.

/// Maximum average group size for zero fill. For larger groups, the extra bytes cost more than the journal.
const SMALL_GROUP_BYTES: u64 = 32 << 10;
/// Number of groups for which zeros are written.
const GROUPS_AHEAD: u64 = 64;
/// Maximum amount of zeros in one write, because they delay the group in it.
const AHEAD_BYTES_MAX: u64 = 512 << 10;
/// Weight of the newest group in the moving average: 1/8.
const NEWEST_SHARE: u64 = 8;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Maximum number of zero slices after a group.
pub(crate) const PIECES_MAX: usize = AHEAD_BYTES_MAX as usize / ZEROS.len();

/// Tracks how far the newest segment was written, and how far to write ahead.
#[derive(Debug)]
pub(crate) struct ZeroFill {
    /// False on copy-on-write file systems, where an overwrite allocates new blocks.
    pays: bool,
    /// Everything before this offset was written at least once.
    to: u64,
    /// Moving average of the group size.
    group_bytes: u64,
}

impl ZeroFill {
    /// State for a new segment. `pays` is true if writes overwrite blocks in place.
    pub(crate) fn new(pays: bool) -> Self {
        Self { pays, to: 0, group_bytes: 0 }
    }

    /// Records that the file was truncated or a new one began: nothing from this offset on was written.
    pub(crate) fn cut(&mut self, at: u64) {
        self.to = self.to.min(at);
    }

    /// Returns the zeros to write after a group of this size that ends at `end`, within the allocated space, and counts
    /// them as written.
    pub(crate) fn zeros_after(
        &mut self,
        size_bytes: u64,
        end: u64,
        allocated: u64,
    ) -> impl Iterator<Item = &'static [u8]> + use<> {
        self.group_bytes = (self.group_bytes * (NEWEST_SHARE - 1) + size_bytes) / NEWEST_SHARE;
        let mut left = 0;
        if end > self.to {
            if self.pays && self.group_bytes <= SMALL_GROUP_BYTES {
                // For a small group among large ones, write few zeros: the next large group would overwrite more.
                let wanted = (self.group_bytes.min(size_bytes) * GROUPS_AHEAD).min(AHEAD_BYTES_MAX);
                left = wanted.min(allocated.saturating_sub(end));
            }
            self.to = end + left;
        }
        std::iter::from_fn(move || {
            let size_bytes = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
            left -= size_bytes as u64;
            ZEROS.get(..size_bytes).filter(|piece| !piece.is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: u64 = 64 << 20;

    /// Writes groups of one size, back to back. Returns how many had zeros appended, and the bytes of zeros.
    fn write(ahead: &mut ZeroFill, size_bytes: u64, groups: u64) -> (usize, u64) {
        let zeros = (1..=groups).map(|n| {
            let pieces = ahead.zeros_after(size_bytes, n * size_bytes, ROOM);
            pieces.map(|piece| piece.len() as u64).sum::<u64>()
        });
        let zeros: Vec<u64> = zeros.filter(|bytes| *bytes > 0).collect();
        (zeros.len(), zeros.iter().sum())
    }

    #[test]
    fn one_of_many_small_groups_writes_zeros() {
        let (with_zeros, bytes) = write(&mut ZeroFill::new(true), 1 << 10, 1000);
        assert!((16..40).contains(&with_zeros), "{with_zeros}");
        assert!(bytes <= (1000 + GROUPS_AHEAD) << 10, "{bytes}");
    }

    #[test]
    fn large_groups_write_no_zeros() {
        let mut ahead = ZeroFill::new(true);
        write(&mut ahead, 1 << 20, 10);
        ahead.cut(0);
        assert_eq!(write(&mut ahead, 1 << 20, 50), (0, 0));
    }

    #[test]
    fn a_small_group_among_large_ones_writes_few_zeros() {
        let mut ahead = ZeroFill::new(true);
        let (mut end, mut written, mut zeros) = (0, 0, 0);
        for n in 0..1000 {
            let size_bytes = if n % 9 == 0 { 1 << 20 } else { 1 << 10 };
            end += size_bytes;
            written += size_bytes;
            zeros += ahead.zeros_after(size_bytes, end, u64::MAX).map(|piece| piece.len() as u64).sum::<u64>();
        }
        assert!(zeros * 5 < written, "{zeros} zeros, {written} bytes");
    }

    #[test]
    fn copy_on_write_file_systems_get_no_zeros() {
        assert_eq!(write(&mut ZeroFill::new(false), 1 << 10, 1000), (0, 0));
    }

    #[test]
    fn zeros_stay_within_the_allocation_and_truncation_resets_them() {
        let mut ahead = ZeroFill::new(true);
        let bytes = |ahead: &mut ZeroFill, end, allocated| -> usize {
            ahead.zeros_after(4096, end, allocated).map(|piece| piece.len()).sum()
        };
        assert_eq!(bytes(&mut ahead, 4096, 5000), 904);
        assert_eq!(bytes(&mut ahead, 5000, 5000), 0);
        ahead.cut(4096);
        assert!(bytes(&mut ahead, 5000, ROOM) > 0);
    }
}
