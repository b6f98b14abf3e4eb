//! Inspects the files of a data directory from outside the server, and damages them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All regular files below a directory, with their bytes.
pub(crate) fn read_files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.append(&mut read_files(&entry.path()));
        } else if kind.is_file() {
            files.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Log segments, oldest first.
pub(crate) fn segment_files(data: &Path) -> Vec<PathBuf> {
    let store = read_files(&data.join("store"));
    store.into_keys().filter(|path| path.extension().is_some_and(|ending| ending == "seg")).collect()
}

/// Length of a file without its trailing zeros (preallocated space).
pub(crate) fn used_bytes(file: &Path) -> usize {
    std::fs::read(file).unwrap().iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Offsets of the commit groups of a segment, found by their magic bytes. No test message contains these.
pub(crate) fn group_offsets(file: &Path) -> Vec<usize> {
    let found = std::fs::read(file).unwrap();
    found.windows(4).enumerate().filter(|(_, bytes)| bytes == b"grp1").map(|(at, _)| at).collect()
}

/// Flips bits in a range of bytes of a file. A second call restores them.
pub(crate) fn invert_bytes(file: &Path, at: usize, bytes: usize) {
    let mut found = std::fs::read(file).unwrap();
    found[at..at + bytes].iter_mut().for_each(|byte| *byte ^= 0x5A);
    std::fs::write(file, found).unwrap();
}

/// Truncates a file to a length.
pub(crate) fn truncate(file: &Path, bytes: usize) {
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.set_len(bytes as u64).unwrap();
}
