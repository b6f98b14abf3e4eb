//! Directories and files for their owner alone, whatever the umask is: mail and secrets lie in them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// What others may do with a file.
const OTHERS: u32 = 0o077;
/// Directories in directories that are closed: ours are not deeper.
const DEPTH_MAX: usize = 4;

/// Makes a directory, with those above it; one that was there before is closed to others.
///
/// # Errors
/// It cannot be made, or is somebody else's.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
    if std::fs::metadata(path)?.permissions().mode() & OTHERS != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

/// How a file is opened that is private if it is made.
#[must_use]
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes a file, or empties the one that is there, to be written.
///
/// # Errors
/// It cannot be made.
pub fn create_file(path: &Path) -> io::Result<File> {
    file_options().write(true).create(true).truncate(true).open(path)
}

/// Closes to others what an older version, or somebody's hand, has left open in a directory. Says what could not be
/// closed, and why: it is another user's.
#[must_use]
pub fn close_to_others(directory: &Path) -> Vec<(PathBuf, io::Error)> {
    let mut left = Vec::new();
    close_within(directory, DEPTH_MAX, &mut left);
    left
}

fn close_within(directory: &Path, depth: usize, left: &mut Vec<(PathBuf, io::Error)>) {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return left.push((directory.to_owned(), error)),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // Not of what a symbolic link leads to.
        let Ok(found) = entry.metadata() else { continue };
        let mode = match (found.is_dir(), found.is_file()) {
            (true, _) => DIRECTORY_MODE,
            (_, true) => FILE_MODE,
            _ => continue,
        };
        if found.permissions().mode() & OTHERS != 0
            && let Err(error) = std::fs::set_permissions(&path, Permissions::from_mode(mode))
        {
            left.push((path, error));
        } else if found.is_dir() && depth > 0 {
            close_within(&path, depth - 1, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_was_open_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let (inner, file) = (directory.path().join("store"), directory.path().join("store/0001.log"));
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("link")).unwrap();
        assert!(close_to_others(directory.path()).is_empty());
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        std::fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        create_directory(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        create_file(&inner.join("new")).unwrap();
        assert_eq!(mode(&inner.join("new")) & OTHERS, 0);
    }
}
