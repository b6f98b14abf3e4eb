//! Options of the command line.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::doctor::context::{DoctorOptions, ProbeTarget};

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
            format!("postrider {words} --config {}", self.config.display())
        }
    }

    /// The command that continues.
    pub(super) fn command_again(&self) -> String {
        let addresses: String = self.addresses.iter().map(|address| format!(" --address {address}")).collect();
        self.command("setup") + &addresses
    }

    pub(super) fn doctor_options(&self) -> DoctorOptions {
        DoctorOptions { out: self.out.clone(), ntp: None, addresses: self.addresses.clone() }
    }
}
