//! A data directory, seen from outside: what stands in its files, and damage done to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every regular file under a directory, with its bytes.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            all.append(&mut contents(&entry.path()));
        } else if kind.is_file() {
            all.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    all
}

/// The log's segments, oldest first.
pub(crate) fn segments(data: &Path) -> Vec<PathBuf> {
    let store = contents(&data.join("store"));
    store.into_keys().filter(|path| path.extension().is_some_and(|ending| ending == "seg")).collect()
}

/// Where the bytes of a file end that are not zero: what follows is room set aside.
pub(crate) fn used_bytes(file: &Path) -> usize {
    std::fs::read(file).unwrap().iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Where the groups of a segment begin, by the mark that each begins with (no message here holds it).
pub(crate) fn groups(file: &Path) -> Vec<usize> {
    let found = std::fs::read(file).unwrap();
    found.windows(4).enumerate().filter(|(_, bytes)| bytes == b"grp1").map(|(at, _)| at).collect()
}

/// Makes other bytes of some in a file.
pub(crate) fn garble(file: &Path, at: usize, bytes: usize) {
    let mut found = std::fs::read(file).unwrap();
    found[at..at + bytes].iter_mut().for_each(|byte| *byte ^= 0x5A);
    std::fs::write(file, found).unwrap();
}

/// Cuts a file off.
pub(crate) fn cut(file: &Path, bytes: usize) {
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.set_len(bytes as u64).unwrap();
}
