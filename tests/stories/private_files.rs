//! Files that the program creates are private to their owner, whatever the umask; root gives them the owner of the
//! directory.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program, started with umask 0.
fn postrider(arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    let program = env!("CARGO_BIN_EXE_postrider");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", program]).args(arguments).process_group(0);
    command
}

pub(crate) fn start(data_dir: &Path) -> Child {
    let any = "127.0.0.1:0";
    let mut child = postrider(&["dev", "--json", "--api", any, "--submission", any, "--mx", any])
        .arg("--data-dir")
        .arg(data_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with('{'), "{ready}");
    child
}

/// Paths whose mode gives rights to group or others.
fn find_accessible_files(at: &Path) -> Vec<String> {
    let found = std::fs::symlink_metadata(at).unwrap();
    let mode = found.permissions().mode() & 0o777;
    let mut open: Vec<String> = (mode & 0o077 != 0).then(|| format!("{} {mode:o}", at.display())).into_iter().collect();
    if found.is_dir() {
        let entries = std::fs::read_dir(at).unwrap();
        open.extend(entries.flat_map(|entry| find_accessible_files(&entry.unwrap().path())));
    }
    open
}

#[test]
fn created_files_are_private_to_the_owner() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let mut child = start(&data_dir);
    child.kill().unwrap();
    child.wait().unwrap();
    // Modes as an older version created them.
    for path in [data_dir.join("store"), data_dir.clone()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut child = start(&data_dir);
    let backup = data_dir.join("backup");
    let admin = |arguments: &[&str], data_dir: &Path, file: &Path| {
        postrider(&["admin", "--data-dir"]).arg(data_dir).args(arguments).arg(file).output().unwrap()
    };
    let output = admin(&["backup"], &data_dir, &backup);
    assert!(output.status.success(), "{output:?}");
    assert!(data_dir.join("admin.sock").exists() && data_dir.join("secret.key").exists());
    assert_eq!(find_accessible_files(&data_dir), Vec::<String>::new());
    child.kill().unwrap();
    child.wait().unwrap();

    let restored = directory.path().join("restored");
    let output = admin(&["restore"], &restored, &backup);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(find_accessible_files(&restored), Vec::<String>::new());
}

/// Paths not owned by this user and group.
fn find_foreign_files(at: &Path, owner: (u32, u32)) -> Vec<String> {
    let found = std::fs::symlink_metadata(at).unwrap();
    let (uid, gid) = (found.uid(), found.gid());
    let mut foreign_files: Vec<String> =
        ((uid, gid) != owner).then(|| format!("{} {uid}:{gid}", at.display())).into_iter().collect();
    if found.is_dir() {
        let entries = std::fs::read_dir(at).unwrap();
        foreign_files.extend(entries.flat_map(|entry| find_foreign_files(&entry.unwrap().path(), owner)));
    }
    foreign_files
}

/// Only root can create files for another user; without root the test does nothing.
#[test]
fn files_created_by_root_belong_to_the_owner_of_the_directory() {
    const OWNER: (u32, u32) = (4242, 4243);
    let directory = tempfile::tempdir().unwrap();
    if std::fs::metadata(directory.path()).unwrap().uid() != 0 {
        return;
    }
    let owned = |name: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(OWNER.0), Some(OWNER.1)).unwrap();
        path
    };
    let (data_dir, restored, backups) = (owned("data"), owned("restored"), owned("backups"));
    let mut child = start(&data_dir);
    let backup = backups.join("backup");
    let admin = |data_dir: &Path, arguments: &[&str]| {
        let output = postrider(&["admin", "--data-dir"]).arg(data_dir).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    admin(&data_dir, &["backup", backup.to_str().unwrap()]);
    admin(&data_dir, &["clock", "advance", "1"]);
    assert_eq!(find_foreign_files(&data_dir, OWNER), Vec::<String>::new());
    assert_eq!(find_foreign_files(&backups, OWNER), Vec::<String>::new());
    child.kill().unwrap();
    child.wait().unwrap();
    admin(&restored, &["restore", backup.to_str().unwrap()]);
    admin(&restored, &["store", "check"]);
    admin(&restored, &["store", "hold"]);
    assert_eq!(find_foreign_files(&restored, OWNER), Vec::<String>::new());
}
