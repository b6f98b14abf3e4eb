//! Report files: found in a message, decompressed and bounded before they are parsed.
//!
//! ```text
//! message parts ─► the first few candidates ─► gzip, zip or plain, bounded in bytes ─► bounded number of elements?
//!                                                                                           ─► parser
//! ```
//!
//! The parser allocates 20 to 200 bytes per element, and the smallest element takes 3 bytes of JSON or 17 of XML. So
//! elements are limited as well as bytes: 16 MiB of `<record></record>` would take 300 MiB of memory.

use std::io::Read;

use message::bounce::report_parts::ReportPart;

/// Files tried in a message or an archive; a report has one.
const FILES_MAX: usize = 3;
/// Largest archive. Its directory is read whole, at some 400 bytes of memory per 46 bytes of file.
const ARCHIVE_BYTES_MAX: usize = 4 << 20;
/// Magic number of gzip (RFC 1952 2.3.1).
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// Magic number of a zip archive with a file (APPNOTE 4.3.7).
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
/// Byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Format and limits of the files of one kind of report.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportFormat {
    /// First bytes of an uncompressed file.
    pub(super) prefixes: &'static [&'static [u8]],
    /// Largest uncompressed size in bytes.
    pub(super) bytes_max: u64,
    /// Texts with their largest number of occurrences: each occurrence makes the parser allocate.
    pub(super) marks: &'static [(&'static [u8], usize)],
}

impl ReportFormat {
    /// Returns the result of `parse` for the first file that it accepts.
    pub(super) fn find<T>(&self, parts: &[ReportPart<'_>], parse: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let candidates = parts.iter().filter(|part| self.may_be_report(&part.body)).take(FILES_MAX);
        candidates.into_iter().find_map(|part| {
            self.unpack(&part.body).iter().filter(|file| self.is_bounded(file)).find_map(|file| parse(file))
        })
    }

    fn may_be_report(&self, file: &[u8]) -> bool {
        file.starts_with(GZIP_MAGIC) || file.starts_with(ZIP_MAGIC) || self.is_plain(file)
    }

    fn is_plain(&self, file: &[u8]) -> bool {
        let text = trim_bom(file);
        self.prefixes.iter().any(|prefix| text.starts_with(prefix))
    }

    /// Decompresses a file by its magic number, because senders choose names and types freely.
    fn unpack(&self, file: &[u8]) -> Vec<Vec<u8>> {
        if file.starts_with(GZIP_MAGIC) {
            return self.read_bounded(flate2::read::GzDecoder::new(file)).into_iter().collect();
        }
        if !file.starts_with(ZIP_MAGIC) {
            return vec![trim_bom(file).to_vec()];
        }
        if file.len() > ARCHIVE_BYTES_MAX {
            return Vec::new();
        }
        let Ok(mut archive) = zip::ZipArchive::new(std::io::Cursor::new(file)) else { return Vec::new() };
        let files = archive.len().min(FILES_MAX);
        (0..files).filter_map(|at| self.read_bounded(archive.by_index(at).ok()?)).collect()
    }

    /// Reads to the end; `None` if the data is too long or broken.
    fn read_bounded(&self, reader: impl Read) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        reader.take(self.bytes_max + 1).read_to_end(&mut out).ok()?;
        if out.len() as u64 > self.bytes_max {
            return None;
        }
        let begins_at = out.len() - trim_bom(&out).len();
        out.drain(..begins_at);
        Some(out)
    }

    fn is_bounded(&self, file: &[u8]) -> bool {
        let is_within_marks =
            |(mark, count_max): &(&[u8], usize)| memchr::memmem::find_iter(file, mark).nth(*count_max).is_none();
        file.len() as u64 <= self.bytes_max && self.marks.iter().all(is_within_marks)
    }
}

fn trim_bom(file: &[u8]) -> &[u8] {
    file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file).trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use message::bounce::report_parts;

    use super::*;

    const FORMAT: ReportFormat = ReportFormat { prefixes: &[b"<feedback"], bytes_max: 1_000, marks: &[(b"<", 100)] };

    /// Searches a message with these bodies.
    fn found(bodies: &[&[u8]]) -> Option<usize> {
        let mut message = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n".to_vec();
        for body in bodies {
            message.extend_from_slice(b"--b\r\n\r\n");
            message.extend_from_slice(body);
            message.extend_from_slice(b"\r\n");
        }
        message.extend_from_slice(b"--b--\r\n");
        FORMAT.find(&report_parts::parse_parts(&message), |file| {
            file.trim_ascii_end().ends_with(b"</feedback>").then_some(file.len())
        })
    }

    fn report(elements: usize) -> Vec<u8> {
        ["<feedback>".as_bytes(), "<a/>".repeat(elements).as_bytes(), b"</feedback>"].concat()
    }

    fn gzip(file: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(file).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn elements_and_bytes_are_bounded() {
        let trimmed = |elements| FORMAT.unpack(&report(elements)).concat();
        assert!(FORMAT.is_bounded(&trimmed(98)));
        assert!(!FORMAT.is_bounded(&trimmed(99)), "one element too many, well below the byte limit");
        assert!(!FORMAT.is_bounded(&[b' '; 1_001]));
        assert!(FORMAT.unpack(&gzip(&report(98))).iter().any(|file| FORMAT.is_bounded(file)));
        assert!(!FORMAT.unpack(&gzip(&report(99))).iter().any(|file| FORMAT.is_bounded(file)));
        assert!(FORMAT.unpack(&gzip(&[b'a'; 100_000])).is_empty());
    }

    #[test]
    fn only_the_first_candidate_files_are_tried() {
        let (other, report): (&[u8], &[u8]) = (b"<feedback>", b"<feedback></feedback>");
        assert!(found(&[b"hello", b"world", b"again", b"and again", other, report]).is_some());
        assert!(found(&[other, other, other, report]).is_none(), "at most FILES_MAX files are opened");
    }

    #[test]
    fn a_large_archive_is_not_opened() {
        let mut archive = ZIP_MAGIC.to_vec();
        archive.resize(ARCHIVE_BYTES_MAX + 1, 0);
        assert!(FORMAT.may_be_report(&archive) && FORMAT.unpack(&archive).is_empty());
    }
}
