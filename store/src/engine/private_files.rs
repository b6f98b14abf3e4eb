//! Creates directories and files that only their owner can access, regardless of the umask, because they contain mail
//! and secrets.
//!
//! A file that root creates in another user's directory is given to that user, because a server that runs as that user
//! must be able to open it. Existing files keep their owner.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown, lchown,
};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Maximum depth of [`restrict_permissions`]; the data directory is not deeper.
const DEPTH_MAX: usize = 4;

/// Creates a directory and its parents. An existing directory is closed to group and others.
///
/// # Errors
/// It cannot be created, or belongs to another user.
pub fn create_directory(path: &Path) -> io::Result<()> {
    create_above(path)?;
    if std::fs::metadata(path)?.permissions().mode() & OTHERS != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

fn create_above(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = directory_of(path);
    if parent != path {
        create_above(parent)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Ok(()) => {
            let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
            let created = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
            give_to_owner_of(parent, &created)
        }
        // Another process created it concurrently.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The directory that contains a file.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a new file for reading and writing.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
    give_to_owner_of(directory_of(path), &file)?;
    Ok(file)
}

/// Creates a file, replacing an existing one.
pub fn create_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => create_new_file(path),
    }
}

/// Opens a file for reading and writing, and creates it if it does not exist.
pub fn open_or_create_file(path: &Path) -> io::Result<File> {
    match create_new_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().read(true).write(true).open(path)
        }
        created => created,
    }
}

/// Gives a file or directory that root created to the owner of `directory`.
fn give_to_owner_of(directory: &Path, new: &File) -> io::Result<()> {
    // A new file belongs to its creator.
    if new.metadata()?.uid() != 0 {
        return Ok(());
    }
    let owner = std::fs::metadata(directory)?;
    if owner.uid() == 0 {
        return Ok(());
    }
    check_ownership_change(directory, fchown(new.as_fd(), Some(owner.uid()), Some(owner.gid())))
}

/// In a container without CAP_CHOWN, root cannot change the owner; log that and continue.
fn check_ownership_change(directory: &Path, changed: io::Result<()>) -> io::Result<()> {
    match changed {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(directory = %directory.display(), %error, "cannot give a new file to the directory's owner");
            Ok(())
        }
        changed => changed,
    }
}

/// Gives a file that this process created at `path` to the owner of the data directory.
///
/// # Errors
/// It no longer exists, or its owner cannot be changed.
pub fn give_file(path: &Path, data_dir: &Path) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // A file with several links may be another user's file that was linked here.
    if file.metadata()?.nlink() == 1 { give_to_owner_of(data_dir, &file) } else { Ok(()) }
}

/// Gives a socket that root created to the owner of its directory.
pub fn give_socket(path: &Path) -> io::Result<()> {
    let (created, directory) = (std::fs::symlink_metadata(path)?, directory_of(path));
    let owner = std::fs::metadata(directory)?;
    if created.uid() != 0 || owner.uid() == 0 {
        return Ok(());
    }
    check_ownership_change(directory, lchown(path, Some(owner.uid()), Some(owner.gid())))
}

/// Removes permissions of group and others within a directory, as left by an older version or set by hand. Returns what
/// could not be changed, with the error, usually because it belongs to another user.
pub fn restrict_permissions(directory: &Path) -> Vec<(PathBuf, io::Error)> {
    let mut left = Vec::new();
    restrict_within(directory, DEPTH_MAX, &mut left);
    left
}

fn restrict_within(directory: &Path, depth: usize, left: &mut Vec<(PathBuf, io::Error)>) {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return left.push((directory.to_owned(), error)),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // Do not follow symbolic links.
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
            restrict_within(&path, depth - 1, left);
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
    fn open_permissions_are_restricted() {
        let directory = tempfile::tempdir().unwrap();
        let (inner, file) = (directory.path().join("store"), directory.path().join("store/0001.log"));
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("link")).unwrap();
        assert!(restrict_permissions(directory.path()).is_empty());
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        std::fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        create_directory(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        create_file(&inner.join("new")).unwrap();
        assert_eq!(mode(&inner.join("new")) & OTHERS, 0);
    }

    /// Runs as root only, because only root can change a file's owner.
    #[test]
    fn files_created_by_root_belong_to_the_directory_owner() {
        let directory = tempfile::tempdir().unwrap();
        let (data, backup) = (directory.path().join("data"), directory.path().join("backup"));
        std::fs::create_dir(&data).unwrap();
        if std::fs::metadata(&data).unwrap().uid() != 0 {
            return;
        }
        std::fs::write(data.join("old"), "").unwrap();
        std::os::unix::fs::chown(&data, Some(4242), Some(4243)).unwrap();
        create_directory(&data.join("one/two")).unwrap();
        create_file(&data.join("one/two/file")).unwrap();
        open_or_create_file(&data.join("lock")).unwrap();
        open_or_create_file(&data.join("old")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(data.join("socket")).unwrap();
        give_socket(&data.join("socket")).unwrap();
        create_file(&backup).unwrap();
        let owner = |path: &Path| {
            let found = std::fs::metadata(path).unwrap();
            (found.uid(), found.gid())
        };
        for path in ["one", "one/two", "one/two/file", "lock", "socket"] {
            assert_eq!(owner(&data.join(path)), (4242, 4243), "{path}");
        }
        assert_eq!(owner(&data.join("old")), (0, 0), "an existing file keeps its owner");
        assert_eq!(owner(&backup), (0, 0));
        give_file(&backup, &data).unwrap();
        assert_eq!(owner(&backup), (4242, 4243));
    }
}
