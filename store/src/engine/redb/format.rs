//! The format of a store's files, read from the headers of its log. No lock is taken and nothing is written, so that a
//! new version can be asked about the store of a running server before an upgrade.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::record::{LOG_FORMAT, LOG_FORMAT_OLDEST, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentHeaderError};
use super::segments::segment_number;
use crate::engine::{OpenError, StoreFormat};

/// Reads the header of every segment. Incomplete and damaged ones are passed over: a server may be writing the newest,
/// and an integrity check is for damage.
pub(crate) fn read(directory: &Path) -> Result<StoreFormat, OpenError> {
    let mut newest = None;
    for entry in std::fs::read_dir(directory).map_err(|error| OpenError::io(directory, error))? {
        let path = entry.map_err(|error| OpenError::io(directory, error))?.path();
        if path.file_name().and_then(|name| name.to_str()).and_then(segment_number).is_none() {
            continue;
        }
        match read_segment(&path) {
            Ok(Ok(format)) => newest = newest.max(Some(format)),
            Ok(Err(SegmentHeaderError::Newer(found))) => {
                return Err(OpenError::Newer { file: path, found, known: LOG_FORMAT });
            }
            Ok(Err(SegmentHeaderError::Damaged)) => {}
            // The server has deleted the segment meanwhile, or has only begun to write it.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {}
            Err(error) => return Err(OpenError::io(&path, error)),
        }
    }
    Ok(StoreFormat { stored: newest, oldest_readable: LOG_FORMAT_OLDEST, newest_readable: LOG_FORMAT })
}

fn read_segment(path: &Path) -> io::Result<Result<u32, SegmentHeaderError>> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(SegmentHeader::decode_format(&bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::engine::{RedbOptions, Store};

    #[tokio::test]
    async fn the_format_is_read_while_the_store_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&RedbOptions::new(directory.path())).unwrap();
        let format = Store::format(&RedbOptions::new(directory.path())).unwrap();
        assert_eq!(format.stored, Some(LOG_FORMAT));
        store.close().await;
    }

    #[tokio::test]
    async fn a_store_of_a_newer_format_is_refused_and_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let options = RedbOptions::new(directory.path());
        Store::open(&options).unwrap().close().await;
        let segment = directory.path().join(super::super::segments::segment_file(1));
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[8] = 99;
        let checksum = crc32fast::hash(&bytes[..SEGMENT_HEADER_BYTES - 4]);
        bytes[SEGMENT_HEADER_BYTES - 4..SEGMENT_HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        std::fs::write(&segment, bytes).unwrap();
        let content = || {
            let paths = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
            paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<std::collections::BTreeMap<_, _>>()
        };
        let before = content();
        assert!(matches!(Store::open(&options), Err(OpenError::Newer { found: 99, known: LOG_FORMAT, .. })));
        assert!(content() == before, "a refused store was changed");
    }

    #[test]
    fn a_newer_format_and_a_half_written_header_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let segment = directory.path().join(super::super::segments::segment_file(1));
        std::fs::write(&segment, b"postrlog").unwrap();
        assert_eq!(read(directory.path()).unwrap().stored, None);

        let header = SegmentHeader { segment: 1, store: [0; 16], first_sequence: 1, previous_end: 0 };
        let mut bytes = header.encode();
        bytes[8] = 99;
        let checksum = crc32fast::hash(&bytes[..SEGMENT_HEADER_BYTES - 4]);
        bytes[SEGMENT_HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        std::fs::write(&segment, bytes).unwrap();
        assert!(matches!(read(directory.path()), Err(OpenError::Newer { found: 99, known: LOG_FORMAT, .. })));
    }
}
