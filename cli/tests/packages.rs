//! The packages of npm and PyPI that `cli/packages/build` makes.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs a program; `None` if it is not installed.
fn run(program: &str, arguments: &[&str], directory: &Path) -> Option<Output> {
    match Command::new(program).args(arguments).current_dir(directory).output() {
        Ok(output) => Some(output),
        Err(_) => {
            eprintln!("skipped: {program} is not installed");
            None
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn packages_have_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().unwrap();
    let (script, out) = (root.join("packages/build"), directory.path().join("out"));
    let arguments =
        [script.to_str().unwrap(), "--binary", env!("CARGO_BIN_EXE_postrider-cli"), "--out", out.to_str().unwrap()];
    let Some(built) = run("python3", &arguments, root) else { return };
    assert!(built.status.success(), "{}", text(&built.stderr));
    let wheel = text(&built.stdout).trim();
    let version = env!("CARGO_PKG_VERSION");
    let listed = run("python3", &["-m", "zipfile", "--list", wheel], root).unwrap();
    let files =
        format!("postrider_cli-{version}.data/scripts/postrider postrider_cli-{version}.dist-info/licenses/LICENSE");
    for file in files.split(' ') {
        assert!(text(&listed.stdout).contains(file), "{}", text(&listed.stdout));
    }
    // As npm installs the two packages: one beside the other.
    let modules = directory.path().join("node_modules");
    std::fs::create_dir(&modules).unwrap();
    for package in std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        std::fs::rename(&package, modules.join(package.file_name().unwrap())).unwrap();
    }
    let launcher = modules.join("postrider-cli/bin/postrider.js");
    let Some(asked) = run("node", &[launcher.to_str().unwrap(), "--version"], directory.path()) else { return };
    assert_eq!((asked.status.code(), text(&asked.stdout).trim()), (Some(0), format!("postrider {version}").as_str()));
    let Some(packed) = run("npm", &["pack", "--dry-run", "--json"], &modules.join("postrider-cli")) else { return };
    let packed: serde_json::Value = serde_json::from_slice(&packed.stdout).unwrap();
    let mut files: Vec<&str> =
        packed[0]["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(files, ["LICENSE", "README.md", "bin/postrider.js", "package.json"]);
}
