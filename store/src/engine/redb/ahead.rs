//! Zeros written ahead of small groups.
//!
//! What is preallocated has blocks, but the file system notes of each that nothing was written to it (unwritten
//! extents). The first write changes that note, and an fdatasync has to bring the change to the disk too,
//! through the file system's journal: twice the time and twice the work of a sync that has only bytes to
//! write. So the blocks of many small groups are written at once, as zeros behind the group that comes first
//! in them, and those that follow go over them. A reader finds zeros there either way: recovery knows no
//! difference.
//!
//! ```text
//! one write:  │ group │ zeros: room for some 64 like it             │   converts the blocks, once
//! later ones: │ ..... │ group │                                     │   bytes alone
//! ```
//!
//! So small groups are written twice, in bytes: less than the journal takes for each. Large groups go without.

/// Groups larger than this on average go without: their bytes would cost more than the journal.
const SMALL_GROUP_BYTES: u64 = 32 << 10;
/// So many groups are written ahead for.
const GROUPS_AHEAD: u64 = 64;
/// Never more than this at once: it delays the group that it goes with.
const AHEAD_BYTES_MAX: u64 = 512 << 10;
/// The newest group's share in the average: one part of so many.
const NEWEST_SHARE: u64 = 8;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// The most pieces that go behind one group.
pub(crate) const PIECES_MAX: usize = AHEAD_BYTES_MAX as usize / ZEROS.len();

/// How far the newest segment was written, and how far ahead it should be.
#[derive(Debug)]
pub(crate) struct ZeroFill {
    /// False where every write goes to new blocks, whatever was there.
    pays: bool,
    /// Everything before this was written at least once.
    to: u64,
    /// The average size of the last groups.
    group_bytes: u64,
}

impl ZeroFill {
    /// For a new segment; `pays` where a write goes to the blocks that its place has.
    pub(crate) fn new(pays: bool) -> Self {
        Self { pays, to: 0, group_bytes: 0 }
    }

    /// The file ends here, or another one begins: what is beyond was never written.
    pub(crate) fn cut(&mut self, at: u64) {
        self.to = self.to.min(at);
    }

    /// What goes behind a group of this size that ends at `end`, within the room set aside. It counts as written.
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
                // A small group among large ones: for its like, the next large one would cover more.
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

    /// Groups of one size, back to back: how many came with zeros, and those zeros' bytes.
    fn write(ahead: &mut ZeroFill, size_bytes: u64, groups: u64) -> (usize, u64) {
        let zeros = (1..=groups).map(|n| {
            let pieces = ahead.zeros_after(size_bytes, n * size_bytes, ROOM);
            pieces.map(|piece| piece.len() as u64).sum::<u64>()
        });
        let zeros: Vec<u64> = zeros.filter(|bytes| *bytes > 0).collect();
        (zeros.len(), zeros.iter().sum())
    }

    #[test]
    fn one_small_group_of_many_takes_zeros_along() {
        let (with_zeros, bytes) = write(&mut ZeroFill::new(true), 1 << 10, 1000);
        assert!((16..40).contains(&with_zeros), "{with_zeros}");
        assert!(bytes <= (1000 + GROUPS_AHEAD) << 10, "{bytes}");
    }

    #[test]
    fn large_groups_go_without() {
        let mut ahead = ZeroFill::new(true);
        write(&mut ahead, 1 << 20, 10);
        ahead.cut(0);
        assert_eq!(write(&mut ahead, 1 << 20, 50), (0, 0));
    }

    #[test]
    fn a_small_group_among_large_ones_takes_few_along() {
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
    fn where_files_are_copied_on_write_there_are_none() {
        assert_eq!(write(&mut ZeroFill::new(false), 1 << 10, 1000), (0, 0));
    }

    #[test]
    fn zeros_stay_in_the_room_set_aside_and_what_was_cut_off_is_written_again() {
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
