//! Options of the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::doctor::context::{DoctorOptions, ProbeHost, ProbeTarget};

/// Configuration of the systemd unit.
pub const DEFAULT_CONFIG: &str = "/etc/postrider/postrider.toml";

/// Answers on the command line, as they were written.
#[derive(Debug, Clone, Default)]
pub struct AnswerFlags {
    pub hostname: Option<String>,
    pub domain: Option<String>,
    pub owner: Option<String>,
    pub receive: Option<bool>,
}

/// Options of the command line.
#[derive(Debug, Clone, Default)]
pub struct SetupOptions {
    pub flags: AnswerFlags,
    /// Configuration file, which is written if it does not exist.
    pub config: PathBuf,
    /// Data directory in a new configuration.
    pub data_dir: Option<PathBuf>,
    /// Accept the defaults, and ask for no confirmation.
    pub yes: bool,
    /// Check DNS once instead of waiting for it.
    pub no_wait: bool,
    /// Public addresses of this machine, if it is behind NAT.
    pub addresses: Vec<IpAddr>,
    /// Mail host for the test of outgoing port 25.
    pub out: Option<ProbeTarget>,
    /// Continue although outgoing port 25 was not tested.
    pub skip_port_25: bool,
    /// File for the secrets of a new account, instead of the terminal.
    pub secrets: Option<PathBuf>,
    /// URL of the certificate authority's directory in a new configuration.
    pub acme_directory: Option<String>,
    /// PEM file of CA certificates that sign the directory's certificate.
    pub acme_roots: Option<PathBuf>,
}

impl SetupOptions {
    /// A command of this program that uses the same configuration.
    pub(super) fn command(&self, words: &str) -> String {
        if self.config == Path::new(DEFAULT_CONFIG) {
            format!("postrider {words}")
        } else {
            format!("postrider {words} --config {}", path_word(&self.config))
        }
    }

    /// The command that continues, with the flags that matter once the configuration exists.
    pub(super) fn command_again(&self) -> String {
        let mut command = self.command("setup");
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                command = format!("{command} {flag} {value}");
            }
        };
        add("--domain", self.flags.domain.as_deref().map(shell_word));
        add("--owner", self.flags.owner.as_deref().map(shell_word));
        self.addresses.iter().for_each(|address| add("--address", Some(address.to_string())));
        add("--out", self.out.as_ref().map(|target| shell_word(&target_text(target))));
        // The file is created with the account, which has no further use for it.
        add("--secrets", self.secrets.as_deref().filter(|file| !file.exists()).map(path_word));
        let switches = [
            (self.flags.receive == Some(true), " --receive"),
            (self.flags.receive == Some(false), " --no-receive"),
            (self.skip_port_25, " --skip-port-25"),
            (self.yes, " --yes"),
        ];
        switches.into_iter().filter(|(is_given, _)| *is_given).for_each(|(_, flag)| command.push_str(flag));
        command
    }

    /// The given flags that only affect a new configuration.
    pub(super) fn config_flags(&self) -> Vec<&'static str> {
        [
            (self.data_dir.is_some(), "--data"),
            (self.acme_directory.is_some(), "--acme-directory"),
            (self.acme_roots.is_some(), "--acme-roots"),
        ]
        .into_iter()
        .filter(|(is_given, _)| *is_given)
        .map(|(_, flag)| flag)
        .collect()
    }

    pub(super) fn doctor_options(&self) -> DoctorOptions {
        DoctorOptions { out: self.out.clone(), ntp: None, addresses: self.addresses.clone() }
    }
}

fn target_text(target: &ProbeTarget) -> String {
    match (&target.host, target.port) {
        (ProbeHost::Address(address), Some(port)) => SocketAddr::new(*address, port).to_string(),
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_string(),
    }
}

fn path_word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Quotes a word for the shell (POSIX.1, XCU 2.2.2), if it must be.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_continues_has_the_flags_that_still_matter() {
        let default = SetupOptions { config: DEFAULT_CONFIG.into(), ..SetupOptions::default() };
        assert_eq!(default.command_again(), "postrider setup");
        let options = SetupOptions {
            flags: AnswerFlags {
                hostname: Some("mx1.example.net".to_owned()),
                domain: Some("example.net".to_owned()),
                owner: Some("o'hara@example.org".to_owned()),
                receive: Some(false),
            },
            config: "/srv/my mail/p.toml".into(),
            data_dir: Some("/srv/data".into()),
            yes: true,
            addresses: vec!["192.0.2.2".parse().unwrap(), "2001:db8::2".parse().unwrap()],
            out: Some("[2001:db8::25]:2525".parse().unwrap()),
            skip_port_25: true,
            secrets: Some("/nonexistent/secrets".into()),
            ..SetupOptions::default()
        };
        assert_eq!(
            options.command_again(),
            "postrider setup --config '/srv/my mail/p.toml' --domain example.net --owner 'o'\\''hara@example.org' \
             --address 192.0.2.2 --address 2001:db8::2 --out '[2001:db8::25]:2525' --secrets /nonexistent/secrets \
             --no-receive --skip-port-25 --yes"
        );
        assert_eq!(options.config_flags(), ["--data"]);
        let directory = tempfile::tempdir().unwrap();
        let written = SetupOptions { secrets: Some(directory.path().to_owned()), ..default };
        assert_eq!(written.command_again(), "postrider setup", "the account exists");
    }
}
