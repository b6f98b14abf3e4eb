//! `postrider admin backup`: the server writes the backup, and this program puts it where the operator wants it.
//!
//! A server in a sandbox, such as that of the systemd unit, can write to its data directory alone. So if the server
//! runs as another user than this program, it writes the backup there, and the file is moved afterwards. The server's
//! user could replace that file: links are not followed, and a pipe is not waited for.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::Value;
use store::engine::{BackupError, private_files};

use crate::admin::{AdminError, AdminRequest};

/// Name of the server's file in the data directory: always the same, so that interrupted backups do not pile up.
const UNFINISHED: &str = "unfinished-backup";

/// Lets the server with this data directory write a backup to `file`.
///
/// # Errors
/// The server is not running, or the file cannot be written.
pub(super) fn back_up(
    directory: &Path,
    file: &Path,
    send_request: &dyn Fn(&AdminRequest) -> Result<Value, AdminError>,
) -> Result<Value, AdminError> {
    // The server has another working directory.
    let file = std::path::absolute(file).map_err(|error| error.to_string())?;
    let directory = std::path::absolute(directory).map_err(|error| error.to_string())?;
    let is_own_server = std::fs::metadata(&directory).is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw());
    if is_own_server {
        return send_request(&AdminRequest::Backup { file });
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => AdminError::from(BackupError::Exists { file: file.clone() }.to_string()),
        _ => AdminError::from(format!("{}: {error}", file.display())),
    };
    // Known before the server does its work.
    check_absent(&file).map_err(failed)?;
    let written = directory.join(UNFINISHED);
    // Left by a backup that was interrupted.
    remove_unfinished(&written).map_err(failed)?;
    let answered = send_request(&AdminRequest::Backup { file: written.clone() });
    let moved = answered.and_then(|response| move_file(&written, &file).map_err(failed).map(|()| response));
    // A file left there is a copy of all mail, on the disk that accepts mail.
    let removed = remove_unfinished(&written)
        .map_err(|error| AdminError::from(format!("{}: {error}; delete it yourself", written.display())));
    let mut response = moved?;
    removed?;
    if let Some(fields) = response.as_object_mut() {
        fields.insert("file".to_owned(), file.display().to_string().into());
    }
    Ok(response)
}

/// Removes the server's file and what it has of an incomplete one.
fn remove_unfinished(written: &Path) -> io::Result<()> {
    for file in [written, &written.with_extension("partial")] {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn check_absent(file: &Path) -> io::Result<()> {
    match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Copies a file completely, or leaves nothing.
fn move_file(written: &Path, file: &Path) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let result = copy_file(written, &partial).and_then(|()| check_absent(file)).and_then(|()| {
        std::fs::rename(&partial, file)?;
        File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()
    });
    if result.is_err() {
        drop(std::fs::remove_file(&partial));
    }
    result
}

fn copy_file(written: &Path, partial: &Path) -> io::Result<()> {
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(written)?;
    let metadata = source.metadata()?;
    // A file with several links may be another user's file that was linked here.
    if !metadata.is_file() || metadata.nlink() != 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut copy = private_files::create_file(partial)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_backup_is_copied_completely_and_privately() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("written"), "rows").unwrap();
        std::fs::write(at("file.partial"), "of an earlier attempt").unwrap();
        move_file(&at("written"), &at("file")).unwrap();
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "rows");
        assert_eq!(std::fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!at("file.partial").exists());
    }

    #[test]
    fn nothing_is_overwritten_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("secret"), "of root").unwrap();
        symlink(at("secret"), at("link")).unwrap();
        std::fs::hard_link(at("secret"), at("hard_link")).unwrap();
        std::fs::write(at("file"), "first").unwrap();
        std::fs::write(at("written"), "second").unwrap();
        for (written, file) in [("written", "file"), ("link", "new"), ("hard_link", "new")] {
            assert!(move_file(&at(written), &at(file)).is_err(), "{written}");
        }
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "first");
        assert!(!at("new").exists() && !at("file.partial").exists() && !at("new.partial").exists());
    }
}
