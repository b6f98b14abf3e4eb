//! Options of the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::doctor::context::{DoctorOptions, ProbeHost, ProbeTarget};

/// Configuration of the systemd unit.
pub const DEFAULT_CONFIG: &str = "/etc/postrider/postrider.toml";

/// Answers on the command line, as they were written.
#[derive(Debug, Clone, Default, Args)]
pub struct AnswerFlags {
    /// Host name of this server, such as mx1.example.net
    #[arg(long, value_name = "NAME")]
    pub hostname: Option<String>,
    /// Sending domain: the part after the @ of the addresses that you send from
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Email address of the account's owner, who gets the test email
    #[arg(long, value_name = "ADDRESS")]
    pub owner: Option<String>,
    /// Receive the domain's mail on this server
    #[arg(long)]
    pub receive: bool,
    /// Do not receive the domain's mail on this server
    #[arg(long, conflicts_with = "receive")]
    pub no_receive: bool,
}

impl AnswerFlags {
    /// The answer of `--receive` and `--no-receive`.
    pub(super) fn receives(&self) -> Option<bool> {
        (self.receive || self.no_receive).then_some(self.receive)
    }
}

/// Arguments of `postrider setup`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Run it as root. It asks four questions, which flags can answer; without a terminal, all four flags \
are required. If it is interrupted, run it again: it continues.\n\
Exit status: 0 complete, 1 a problem to correct, 2 invalid usage, 64 a flag is missing or its value is refused, 75 still \
waiting for the server, DNS or the test email: run it again.\n\n\
Example:\n  \
postrider setup --hostname mx1.example.net --domain example.net --owner you@example.org --no-receive"
)]
pub struct SetupOptions {
    #[command(flatten)]
    pub flags: AnswerFlags,
    /// Configuration file, which is written if it does not exist
    #[arg(long, default_value = DEFAULT_CONFIG)]
    pub config: PathBuf,
    /// Data directory in a new configuration [default: /var/lib/postrider]
    #[arg(long = "data", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Accept the defaults for hostname, domain and receiving, without asking for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Check only once for DNS, and for a server that you start yourself; exit with status 75 if they are not ready
    #[arg(long)]
    pub no_wait: bool,
    /// Public address of this machine if it is behind NAT; may be repeated
    #[arg(long = "address", value_name = "IP")]
    pub addresses: Vec<IpAddr>,
    /// Mail host for testing outgoing port 25, HOST or HOST:PORT [default: those of gmail.com and outlook.com]
    #[arg(long, value_name = "HOST:PORT")]
    pub out: Option<ProbeTarget>,
    /// Continue without testing outgoing port 25
    #[arg(long)]
    pub skip_port_25: bool,
    /// Write the API key and the SMTP password to this new file instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub secrets: Option<PathBuf>,
    /// Directory URL of a certificate authority other than Let's Encrypt, for a new configuration
    #[arg(long, value_name = "URL")]
    pub acme_directory: Option<String>,
    /// CA certificates (PEM) that sign that directory's own certificate
    #[arg(long, value_name = "FILE")]
    pub acme_roots: Option<PathBuf>,
}

impl SetupOptions {
    /// The options with absolute paths: the server has another working directory.
    #[must_use]
    pub fn with_absolute_paths(mut self) -> Self {
        let paths = [Some(&mut self.config), self.data_dir.as_mut(), self.secrets.as_mut(), self.acme_roots.as_mut()];
        for path in paths.into_iter().flatten() {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        self
    }

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
            (self.flags.receives() == Some(true), " --receive"),
            (self.flags.receives() == Some(false), " --no-receive"),
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
                no_receive: true,
                ..AnswerFlags::default()
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
