//! The configuration file: text, check, and creation. An existing file is read and never changed.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use message::address::DomainName;

use super::dialog::Dialog;
use super::error::SetupError;
use super::installation::Answers;
use super::options::SetupOptions;
use crate::config::{self, Config};

/// Data directory of the systemd unit.
const DEFAULT_DATA: &str = "/var/lib/postrider";
/// Replaces the hostname before it is known (RFC 6761 6.4: `.invalid` never resolves).
const PLACEHOLDER: &str = "hostname.invalid";
/// Permissions of a directory for the configuration.
const DIRECTORY_MODE: u32 = 0o755;
/// Permissions of the file. The service has a user of its own, which may be allocated at its start, so that no group
/// can be given the file; it contains no secrets.
const FILE_MODE: u32 = 0o644;

/// Loads the configuration, if the file exists.
pub(super) fn load(file: &Path) -> Result<Option<Config>, SetupError> {
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let problems = |problems| SetupError::InvalidConfig { file: file.to_owned(), problems };
    config::from_file_alone(file).map(Some).map_err(problems)
}

/// Checks that the file can be created, before anything is asked.
pub(super) fn check_writable(file: &Path) -> Result<(), SetupError> {
    let directory = parent_of(file);
    let existing = directory.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
        .map_err(|error| SetupError::NotPermitted { directory: existing.to_owned(), reason: error.to_string() })
}

fn parent_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn placeholder_hostname() -> DomainName {
    #[expect(clippy::expect_used, reason = "a constant")]
    PLACEHOLDER.parse().expect("a valid name")
}

/// The configuration before the questions are answered: for the checks of ports, disk and network.
pub(super) fn provisional(options: &SetupOptions) -> Result<Config, SetupError> {
    parse(options, &render(&TextParts { hostname: PLACEHOLDER, answers: None, options, any: any_address() }))
}

fn parse(options: &SetupOptions, text: &str) -> Result<Config, SetupError> {
    config::from_text(text, config::environment())
        .map_err(|problems| SetupError::UnusableConfig { file: options.config.clone(), problems })
}

/// Listen addresses that others reach: of mail, submission, the API and HTTP-01.
pub(super) fn listeners(config: &Config) -> Vec<SocketAddr> {
    let acme = config.tls.acme.iter().flat_map(|acme| &acme.http_listen);
    let smtp = config.mx.listen.iter().chain(&config.submission.listen).chain(&config.submission.implicit_tls);
    smtp.chain(&config.api.listen).chain(acme).chain(&config.ops.listen).copied().collect()
}

/// Writes the configuration after the operator has confirmed it.
pub(super) fn create(dialog: &mut dyn Dialog, options: &SetupOptions, answers: &Answers) -> Result<Config, SetupError> {
    let hostname = answers.hostname.as_str();
    let text = render(&TextParts { hostname, answers: Some(answers), options, any: any_address() });
    let config = parse(options, &text)?;
    let file = &options.config;
    if !options.yes && dialog.can_ask() {
        dialog.print(&format!(
            "Setup will write {}, start the server, and create an account and the domain.",
            file.display()
        ));
        let answer = dialog.ask("Continue? yes or no [yes]:")?.unwrap_or_else(|| "no".to_owned());
        if !matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes") {
            return Err(SetupError::Declined);
        }
    }
    // Checks the files and addresses that it names.
    let check = |written: &Path| {
        let problems = |problems| SetupError::UnusableConfig { file: file.clone(), problems };
        config::from_file(written).map(drop).map_err(problems)
    };
    write_new(file, &text, check)?;
    dialog.print(&format!("Wrote {}.", file.display()));
    Ok(config)
}

/// Writes a file that must not exist, in one step, after `check` has accepted a copy of it.
fn write_new(file: &Path, text: &str, check: impl FnOnce(&Path) -> Result<(), SetupError>) -> Result<(), SetupError> {
    let not_written = |source| SetupError::ConfigNotWritten { file: file.to_owned(), source };
    let directory = parent_of(file);
    create_directory(directory).map_err(not_written)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary: PathBuf = directory.join(name);
    let link = || {
        // Fails if the file exists.
        std::fs::hard_link(&temporary, file)?;
        File::open(directory)?.sync_all()
    };
    let written = write_copy(&temporary, text).map_err(not_written);
    let written = written.and_then(|()| check(&temporary)).and_then(|()| link().map_err(not_written));
    let removed = std::fs::remove_file(&temporary);
    written.and(match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(not_written(error)),
        _ => Ok(()),
    })
}

fn write_copy(temporary: &Path, text: &str) -> io::Result<()> {
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    out.write_all(text.as_bytes())?;
    // Independent of the umask.
    out.set_permissions(Permissions::from_mode(FILE_MODE))?;
    out.sync_all()
}

/// Creates a directory and its parents, independent of the umask. Existing ones keep their permissions.
fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    create_directory(parent_of(directory))?;
    DirBuilder::new().mode(DIRECTORY_MODE).create(directory)?;
    std::fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))
}

/// `[::]`, or `0.0.0.0` on a machine without IPv6.
fn any_address() -> &'static str {
    if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() { "[::]" } else { "0.0.0.0" }
}

/// Contents of a configuration.
struct TextParts<'a> {
    hostname: &'a str,
    /// None before the questions.
    answers: Option<&'a Answers>,
    options: &'a SetupOptions,
    /// The unspecified address of the listeners.
    any: &'static str,
}

fn render(TextParts { hostname, answers, options, any }: &TextParts<'_>) -> String {
    let data_dir = options.data_dir.as_deref().unwrap_or(Path::new(DEFAULT_DATA));
    let mut out = String::from(
        "# Written by `postrider setup`. Every key is documented in the guide \"Configuration\" and in\n\
         # /usr/share/doc/postrider/examples/postrider.toml. After a change: postrider check, then\n\
         # systemctl reload postrider.\n",
    );
    let mut key = |name: &str, value: toml::Value| {
        // Writing to a String does not fail.
        let _ = match value {
            toml::Value::Table(_) => writeln!(out, "\n[{name}]"),
            value => writeln!(out, "{name} = {value}"),
        };
    };
    let section = || toml::Value::Table(toml::Table::new());
    let text = |value: &str| toml::Value::from(value);
    let path = |value: &Path| toml::Value::from(value.to_string_lossy().into_owned());
    let port = |port: u16| toml::Value::from(format!("{any}:{port}"));
    key("hostname", text(hostname));
    key("data_dir", path(data_dir));
    key("tls.acme", section());
    if let Some(answers) = answers {
        key("contact", text(&answers.owner.to_string()));
    }
    if let Some(answers) = answers.filter(|answers| answers.receive) {
        // Serves the MTA-STS policy of the domain.
        let names = vec![toml::Value::from(super::host_records::policy_name(&answers.domain))];
        key("names", toml::Value::Array(names));
    }
    if let Some(directory) = &options.acme_directory {
        key("directory", text(directory));
    }
    if let Some(roots) = &options.acme_roots {
        key("roots", path(roots));
    }
    key("submission", section());
    key("listen", port(587));
    key("implicit_tls", port(465));
    key("mx", section());
    key("listen", port(25));
    if let Some(answers) = answers {
        key("postmaster", text(&answers.owner.to_string()));
    }
    key("api", section());
    key("listen", port(443));
    key("base_url", text(&format!("https://{hostname}")));
    key("tls", toml::Value::from(true));
    key("ops", section());
    key("listen", text("127.0.0.1:9025"));
    if let Some(answers) = answers {
        key("service", section());
        key("sandbox_sender", text(&answers.sender()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(receive: bool) -> Answers {
        Answers {
            hostname: "mx1.example.net".parse().unwrap(),
            domain: "example.net".parse().unwrap(),
            owner: "you@example.org".parse().unwrap(),
            receive,
        }
    }

    fn text(options: &SetupOptions, receive: bool) -> String {
        let answers = answers(receive);
        render(&TextParts { hostname: "mx1.example.net", answers: Some(&answers), options, any: "[::]" })
    }

    #[test]
    fn the_configuration_is_valid() {
        let options = SetupOptions {
            data_dir: Some("/srv/a \"b\"".into()),
            acme_directory: Some("https://acme.example/dir".to_owned()),
            ..SetupOptions::default()
        };
        let config = config::from_text(&text(&options, true), []).unwrap();
        assert_eq!(config.hostname.as_str(), "mx1.example.net");
        assert_eq!(config.data_dir, Path::new("/srv/a \"b\""));
        let acme = config.tls.acme.as_ref().unwrap();
        assert_eq!((acme.directory.as_str(), acme.names.len()), ("https://acme.example/dir", 1));
        assert_eq!(config.service.sandbox_sender.as_ref().unwrap().to_string(), "postrider@example.net");
        let ports: Vec<u16> = listeners(&config).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [25, 587, 465, 443, 9025]);
        let config = config::from_text(&text(&SetupOptions::default(), false), []).unwrap();
        assert!(config.tls.acme.as_ref().unwrap().names.is_empty());
        assert_eq!(config.data_dir, Path::new(DEFAULT_DATA));
    }

    #[test]
    fn the_provisional_configuration_is_valid() {
        let config = provisional(&SetupOptions::default()).unwrap();
        assert_eq!(config.hostname, placeholder_hostname());
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/postrider.toml");
        assert!(load(&file).unwrap().is_none());
        write_new(&file, "first", |_| Ok(())).unwrap();
        let error = write_new(&file, "second", |_| Ok(())).unwrap_err();
        let is_existing = |source: &io::Error| source.kind() == io::ErrorKind::AlreadyExists;
        assert!(matches!(&error, SetupError::ConfigNotWritten { source, .. } if is_existing(source)), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "first");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (FILE_MODE, DIRECTORY_MODE));
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
        let error = load(&file).unwrap_err();
        assert!(error.to_string().contains("correct it"), "{error}");
    }

    #[test]
    fn nothing_is_written_if_a_named_file_is_unusable() {
        let directory = tempfile::tempdir().unwrap();
        let options = SetupOptions {
            config: directory.path().join("postrider.toml"),
            data_dir: Some(directory.path().join("data")),
            acme_roots: Some(directory.path().join("absent.pem")),
            yes: true,
            ..SetupOptions::default()
        };
        let mut dialog = super::super::testing::ScriptedDialog::without_terminal();
        let error = create(&mut dialog, &options, &answers(false)).unwrap_err();
        assert!(matches!(error, SetupError::UnusableConfig { .. }), "{error}");
        assert!(error.to_string().contains("absent.pem"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
