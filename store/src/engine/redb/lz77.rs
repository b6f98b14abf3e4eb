//! LZ77 compression of short texts with a static dictionary. Pure.
//!
//! ```text
//! block      sequences, back to back; the last one may end after its literals or after its match
//! sequence   token u8: number of literals in the high half, match length - 4 in the low half
//!            a half of 15 is continued: bytes that are added up, the last of them less than 255
//!            literals
//!            distance u16, little-endian, at least 1
//! ```
//!
//! A sequence is that of LZ4. A distance counts back in what precedes the match: the dictionary, then the hint, then the
//! text so far. The hint is a short text that both sides know. The dictionary's hash tables are made once, and the
//! encoder's table is never cleared, so that a text of a few hundred bytes costs about a microsecond.

/// Shortest match: its distance takes two bytes, and a token one.
const MATCH_BYTES_MIN: usize = 4;
/// Length of the prefix by which longer matches in the dictionary are found.
const LONG_BYTES: usize = 8;
const DISTANCE_MAX: usize = u16::MAX as usize;
/// Largest value of half a token, which is continued.
const HALF_MAX: usize = 15;
const TABLE_BITS: u32 = 12;
const TABLE_ENTRIES: usize = 1 << TABLE_BITS;
/// Literals after which the search skips positions; text that does not compress is passed quickly.
const SKIP_BITS: u32 = 6;
/// Maximum capacity of a buffer that is retained.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// A block expands to less than this many times its size.
pub(crate) const EXPANSION_MAX: usize = 256;

fn hash(number: u64) -> usize {
    // The multiplier is 2^64 divided by the golden ratio.
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - TABLE_BITS)) as usize
}

fn four_at(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..)?.first_chunk().map(|part| u32::from_le_bytes(*part))
}

fn eight_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|part| u64::from_le_bytes(*part))
}

fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let mut bytes = 0;
    while let (Some(one), Some(other)) = (eight_at(left, bytes), eight_at(right, bytes)) {
        match one ^ other {
            0 => bytes += 8,
            differs => return bytes + (differs.trailing_zeros() / 8) as usize,
        }
    }
    let rest = left.iter().skip(bytes).zip(right.iter().skip(bytes));
    bytes + rest.take_while(|(one, other)| one == other).count()
}

/// A static dictionary with its hash tables.
pub(crate) struct Dictionary {
    bytes: &'static [u8],
    /// Positions + 1 by the hash of 4 bytes, and of 8 bytes; 0 if there is none.
    by_four: Box<[u16]>,
    by_eight: Box<[u16]>,
}

impl Dictionary {
    /// `bytes` beyond 65,534 are not used.
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        let bytes = bytes.get(..DISTANCE_MAX - 1).unwrap_or(bytes);
        let mut by_four = vec![0; TABLE_ENTRIES].into_boxed_slice();
        let mut by_eight = by_four.clone();
        let put = |table: &mut [u16], number: Option<u64>, position: u16| {
            if let Some(entry) = number.and_then(|number| table.get_mut(hash(number))) {
                *entry = position;
            }
        };
        for (at, position) in (0..bytes.len()).zip(1..) {
            put(&mut by_four, four_at(bytes, at).map(u64::from), position);
            put(&mut by_eight, eight_at(bytes, at), position);
        }
        Self { bytes, by_four, by_eight }
    }

    /// The longest match that the tables find, as position and length.
    fn find(&self, rest: &[u8]) -> Option<(usize, usize)> {
        let look_up = |table: &[u16], number: Option<u64>, bytes_min: usize| {
            let position = usize::from(*table.get(hash(number?))?).checked_sub(1)?;
            let bytes = common_prefix(self.bytes.get(position..)?, rest);
            (bytes >= bytes_min).then_some((position, bytes))
        };
        look_up(&self.by_eight, eight_at(rest, 0), LONG_BYTES)
            .or_else(|| look_up(&self.by_four, four_at(rest, 0).map(u64::from), MATCH_BYTES_MIN))
    }
}

/// A match: how far back it begins and how long it is.
#[derive(Debug, Clone, Copy)]
struct Match {
    distance: usize,
    bytes: usize,
}

/// Compresses texts one after another, with reused buffers.
pub(crate) struct Encoder {
    /// Hint and text.
    window: Vec<u8>,
    /// Positions in the window, plus `base`, by the hash of 4 bytes. Those of earlier windows are less than `base`.
    heads: Box<[u32]>,
    base: u32,
    out: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        let heads = vec![0; TABLE_ENTRIES].into_boxed_slice();
        Self { window: Vec::new(), heads, base: 1, out: Vec::new() }
    }

    /// Compresses a text. `None` if the block would not be smaller.
    pub(crate) fn compress(&mut self, dictionary: &Dictionary, hint: &[u8], text: &[u8]) -> Option<&[u8]> {
        self.begin(hint, text)?;
        let end = self.window.len();
        let (mut at, mut literals_at) = (hint.len(), hint.len());
        while at + MATCH_BYTES_MIN <= end {
            let Some(found) = self.find(dictionary, at) else {
                at += 1 + ((at - literals_at) >> SKIP_BITS);
                continue;
            };
            let before = self.bytes_before(dictionary, (literals_at, at), found.distance);
            let literals = literals_at..at - before;
            self.write_literals(literals, found.bytes + before - MATCH_BYTES_MIN);
            self.write_match(found.distance, found.bytes + before - MATCH_BYTES_MIN);
            at += found.bytes;
            literals_at = at;
            self.register(at - 2);
            if self.out.len() >= text.len() {
                return None;
            }
        }
        if literals_at < end {
            self.write_literals(literals_at..end, 0);
        }
        (self.out.len() < text.len()).then_some(&self.out)
    }

    /// Fills the window. `None` if the text is too large.
    fn begin(&mut self, hint: &[u8], text: &[u8]) -> Option<()> {
        let size_bytes = u32::try_from(hint.len() + text.len()).ok()?;
        let base = self.base.saturating_add(u32::try_from(self.window.len()).unwrap_or(u32::MAX));
        self.base = match base.checked_add(size_bytes) {
            Some(_) => base,
            None => {
                self.heads.fill(0);
                1
            }
        };
        for buffer in [&mut self.window, &mut self.out] {
            if buffer.capacity() > BUFFER_BYTES_MAX {
                *buffer = Vec::new();
            }
            buffer.clear();
        }
        self.window.extend_from_slice(hint);
        self.window.extend_from_slice(text);
        (0..hint.len()).for_each(|at| _ = self.register(at));
        Some(())
    }

    /// Makes a position findable. Returns the position that it replaces.
    fn register(&mut self, at: usize) -> Option<usize> {
        let four = four_at(&self.window, at)?;
        let head = self.heads.get_mut(hash(u64::from(four)))?;
        let before = head.checked_sub(self.base);
        // The window's end fits, as `begin` has checked.
        *head = self.base + at as u32;
        before.map(|before| before as usize)
    }

    /// Finds the longest match of the text at a position.
    fn find(&mut self, dictionary: &Dictionary, at: usize) -> Option<Match> {
        let before = self.register(at);
        let rest = self.window.get(at..)?;
        // Comparing what is too far back takes time that no match pays for: seconds, for a text that repeats itself at
        // such distances.
        let near = before.filter(|before| at - before <= DISTANCE_MAX).and_then(|before| {
            let bytes = common_prefix(self.window.get(before..)?, rest);
            Some(Match { distance: at - before, bytes })
        });
        let in_dictionary = if at < DISTANCE_MAX { dictionary.find(rest) } else { None };
        let far = in_dictionary.map(|(position, bytes)| {
            let distance = dictionary.bytes.len() - position + at;
            Match { distance, bytes }
        });
        let is_valid = |found: &Match| found.bytes >= MATCH_BYTES_MIN && found.distance <= DISTANCE_MAX;
        [near, far].into_iter().flatten().filter(is_valid).max_by_key(|found| found.bytes)
    }

    /// Number of literals before a match that match as well.
    fn bytes_before(&self, dictionary: &Dictionary, (literals_at, at): (usize, usize), distance: usize) -> usize {
        let literals = self.window.get(literals_at..at).unwrap_or_default();
        let source = match at.checked_sub(distance) {
            Some(source) => self.window.get(..source),
            None => dictionary.bytes.get(..dictionary.bytes.len() + at - distance),
        };
        let pairs = literals.iter().rev().zip(source.unwrap_or_default().iter().rev());
        pairs.take_while(|(one, other)| one == other).count()
    }

    /// Writes a token and literals. `match_half` is the length of the match that follows, minus 4.
    fn write_literals(&mut self, literals: std::ops::Range<usize>, match_half: usize) {
        let high = literals.len().min(HALF_MAX);
        let low = match_half.min(HALF_MAX);
        // Both are at most 15.
        self.out.push((high << 4 | low) as u8);
        write_rest(&mut self.out, literals.len());
        self.out.extend_from_slice(self.window.get(literals).unwrap_or_default());
    }

    fn write_match(&mut self, distance: usize, match_half: usize) {
        // `find` returns no greater distance.
        self.out.extend_from_slice(&(distance as u16).to_le_bytes());
        write_rest(&mut self.out, match_half);
    }
}

/// Writes the bytes that continue a half of a token.
fn write_rest(out: &mut Vec<u8>, number: usize) {
    let Some(mut rest) = number.checked_sub(HALF_MAX) else { return };
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}

/// Reads a block that may be damaged.
struct Decoder<'a> {
    rest: &'a [u8],
    dictionary: &'a [u8],
    hint: &'a [u8],
    out: Vec<u8>,
    /// Size of the text, which `out` never exceeds.
    size_bytes: usize,
}

/// Decompresses a block. `None` if it is not a block of a text of exactly this size, with this dictionary and hint.
///
/// Allocates no more than the smaller of `size_bytes` and [`EXPANSION_MAX`] times the size of the block.
pub(crate) fn decompress(dictionary: &Dictionary, hint: &[u8], block: &[u8], size_bytes: usize) -> Option<Vec<u8>> {
    if size_bytes > block.len().saturating_mul(EXPANSION_MAX) {
        return None;
    }
    let (dictionary, out) = (dictionary.bytes, Vec::with_capacity(size_bytes));
    let mut decoder = Decoder { rest: block, dictionary, hint, out, size_bytes };
    while !decoder.rest.is_empty() {
        decoder.read_sequence()?;
    }
    (decoder.out.len() == size_bytes).then_some(decoder.out)
}

impl Decoder<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (part, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(part)
    }

    /// Number of bytes that may still be appended to the text.
    fn left(&self) -> usize {
        self.size_bytes - self.out.len()
    }

    fn read_sequence(&mut self) -> Option<()> {
        let token = usize::from(*self.take(1)?.first()?);
        let literals = self.read_rest(token >> 4)?;
        if literals > self.left() {
            return None;
        }
        let (part, rest) = self.rest.split_at_checked(literals)?;
        self.out.extend_from_slice(part);
        self.rest = rest;
        if self.rest.is_empty() {
            return (token & HALF_MAX == 0).then_some(());
        }
        let distance = usize::from(u16::from_le_bytes(*self.take(2)?.first_chunk()?));
        let bytes = self.read_rest(token & HALF_MAX)? + MATCH_BYTES_MIN;
        self.copy(distance, bytes)
    }

    /// Reads the bytes that continue a half of a token.
    fn read_rest(&mut self, half: usize) -> Option<usize> {
        let mut number = half;
        if half == HALF_MAX {
            loop {
                let byte = *self.take(1)?.first()?;
                // At most 255 times the size of the block.
                number += usize::from(byte);
                if byte < 255 {
                    break;
                }
            }
        }
        Some(number)
    }

    /// Appends a match. It may begin in the dictionary and continue in what follows, and it may overlap itself.
    fn copy(&mut self, distance: usize, mut bytes: usize) -> Option<()> {
        if distance == 0 || bytes > self.left() {
            return None;
        }
        let known = self.dictionary.len() + self.hint.len();
        let mut at = (known + self.out.len()).checked_sub(distance)?;
        while bytes > 0 {
            let part = self.dictionary.get(at..).filter(|part| !part.is_empty());
            let part = part.or_else(|| self.hint.get(at - self.dictionary.len()..).filter(|part| !part.is_empty()));
            bytes -= match part {
                Some(part) => {
                    let part = part.get(..bytes).unwrap_or(part);
                    self.out.extend_from_slice(part);
                    at += part.len();
                    part.len()
                }
                None => {
                    // An overlapping match repeats what is behind `from`, so each copy may be twice as long.
                    let from = at - known;
                    let copied = bytes.min(self.out.len() - from);
                    self.out.extend_from_within(from..from + copied);
                    copied
                }
            };
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: &[u8] = br#"[1,{"id":"msg_01","account":"acct_01","created_at":"2026-11-2","recipient":"#;

    fn round_trip(encoder: &mut Encoder, hint: &[u8], text: &[u8]) -> Option<usize> {
        let dictionary = Dictionary::new(WORDS);
        let block = encoder.compress(&dictionary, hint, text)?.to_vec();
        assert!(block.len() < text.len());
        assert_eq!(decompress(&dictionary, hint, &block, text.len()).as_deref(), Some(text));
        assert_eq!(decompress(&dictionary, hint, &block, text.len() + 1), None);
        assert_eq!(decompress(&dictionary, hint, &block, text.len() - 1), None);
        Some(block.len())
    }

    #[test]
    fn what_dictionary_and_hint_contain_takes_few_bytes() {
        let mut encoder = Encoder::new();
        let text = br#"[1,{"id":"msg_01M8AQ21V6000ZXR5B3GV4NYMX","account":"acct_01M8AQ209400002VRNQQP4NE58"}]"#;
        let hint = b"01M8AQ21V6000ZXR5B3GV4NYMX01M8AQ209400002VRNQQP4NE58";
        let plain = round_trip(&mut encoder, b"", text).unwrap();
        let hinted = round_trip(&mut encoder, hint, text).unwrap();
        assert!(plain < 70 && hinted < 30, "{plain} and {hinted} bytes");
        let repeated = text.repeat(2_000);
        assert!(round_trip(&mut encoder, b"", &repeated).unwrap() < 1_000);
        assert_eq!(round_trip(&mut encoder, hint, text), Some(hinted), "earlier texts leave no trace");
        let incompressible: Vec<u8> = (0..255).collect();
        assert_eq!(round_trip(&mut encoder, b"", &incompressible), None);
        assert_eq!(round_trip(&mut encoder, b"", b""), None);
    }

    #[test]
    fn the_table_is_cleared_before_its_positions_overflow() {
        let mut encoder = Encoder::new();
        let text = b"abcdefgh".repeat(9);
        round_trip(&mut encoder, b"", &text).unwrap();
        encoder.base = u32::MAX - 10;
        round_trip(&mut encoder, b"", &text).unwrap();
        assert_eq!(encoder.base, 1);
    }

    #[test]
    fn impossible_blocks_are_refused() {
        let dictionary = Dictionary::new(b"dictionary");
        let read = |block: &[u8], size_bytes| decompress(&dictionary, b"", block, size_bytes);
        assert_eq!(read(&[0x10, b'a', 11, 0], 5).as_deref(), Some(&b"adict"[..]));
        assert_eq!(read(&[0x12, b'a', 3, 0], 7).as_deref(), Some(&b"aryarya"[..]));
        for (block, size_bytes) in [
            (&[0x10, b'a', 12, 0][..], 5),
            (&[0x10, b'a', 0, 0], 5),
            (&[0x10, b'a', 1], 5),
            (&[0x11, b'a'], 1),
            (&[0x20, b'a'], 2),
            (&[0xF0, 255, 255], 600),
            (&[0x1F, b'a', 1, 0, 255, 255], 600),
            (&[0x10, b'a'], 1_000_000_000),
            (&[], 1),
        ] {
            assert_eq!(read(block, size_bytes), None, "{block:?}");
        }
    }

    /// Matches in a text of several windows: at the greatest distance, beyond it, and of overlapping parts.
    #[test]
    fn large_texts_survive() {
        let mut encoder = Encoder::new();
        // A xorshift generator.
        let mut state = 1_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let part: Vec<u8> = (0..3_500).map(|_| random()).collect();
        for distance in DISTANCE_MAX - 2..DISTANCE_MAX + 3 {
            let period = [&part[..], &vec![b'x'; distance - part.len()]].concat();
            let text = period.repeat(4);
            let size_bytes = round_trip(&mut encoder, b"hint", &text).unwrap();
            assert_eq!(
                size_bytes < 2 * part.len(),
                distance <= DISTANCE_MAX,
                "distance {distance}: {size_bytes} bytes"
            );
        }
        for period in [1, 2, 3, 5, 8, 100] {
            round_trip(&mut encoder, b"", &part[..period].repeat(200_000 / period)).unwrap();
        }
        round_trip(&mut encoder, b"", &[&vec![b'x'; DISTANCE_MAX], WORDS, WORDS].concat()).unwrap();
    }

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            (0..WORDS.len(), 0..WORDS.len()).prop_map(|(at, end)| WORDS[at.min(end)..at.max(end)].to_vec()),
            (any::<u8>(), 0..700_usize).prop_map(|(byte, count)| vec![byte; count]),
        ];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_text_survives(texts in prop::collection::vec((pieces(), pieces()), 1..5)) {
            let mut encoder = Encoder::new();
            for (hint, text) in &texts {
                round_trip(&mut encoder, hint, text);
            }
        }

        #[test]
        fn damage_neither_panics_nor_exceeds_the_declared_size(
            text in pieces(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
            size_bytes in 0..100_000_usize,
        ) {
            let dictionary = Dictionary::new(WORDS);
            let Some(block) = Encoder::new().compress(&dictionary, b"", &text).map(<[u8]>::to_vec) else {
                return Ok(());
            };
            let mut damaged = block.clone();
            for (at, byte) in changes {
                damaged[at.index(block.len())] = byte;
            }
            damaged.truncate(cut.index(block.len()) + 1);
            for size_bytes in [size_bytes, text.len()] {
                if let Some(read) = decompress(&dictionary, b"", &damaged, size_bytes) {
                    prop_assert_eq!(read.len(), size_bytes);
                    prop_assert_eq!(read.capacity(), size_bytes);
                }
            }
        }

        #[test]
        fn random_bytes_are_read_without_a_panic(
            block in prop::collection::vec(any::<u8>(), 0..200),
            size_bytes in 0..60_000_usize,
        ) {
            let dictionary = Dictionary::new(WORDS);
            let read = decompress(&dictionary, b"hint", &block, size_bytes);
            prop_assert!(read.is_none_or(|text| text.len() == size_bytes));
        }
    }
}
