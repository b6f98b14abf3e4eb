//! The answers of the operator, and the installation that the later phases complete.

use std::net::IpAddr;

use message::address::{Address, DomainName};

use super::admin_client::AdminClient;
use crate::config::Config;

/// Local part of the sender of test mail and of the server's own mail.
const SENDER_LOCAL_PART: &str = "postrider";

/// Valid answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answers {
    /// Host name of this server.
    pub(super) hostname: DomainName,
    /// Sending domain.
    pub(super) domain: DomainName,
    /// The account's owner, who also gets the test mail.
    pub(super) owner: Address,
    /// True: mail for the domain is received by this server.
    pub(super) receive: bool,
}

impl Answers {
    /// Sender of the test mail and of the server's own mail.
    pub(super) fn sender(&self) -> String {
        format!("{SENDER_LOCAL_PART}@{}", self.domain)
    }
}

/// The installation as far as it is prepared: a valid configuration, and the operator's answers.
#[derive(Debug, Clone)]
pub struct Installation {
    pub(super) config: Config,
    pub(super) answers: Answers,
    /// Public addresses of this machine.
    pub(super) addresses: Vec<IpAddr>,
}

impl Installation {
    pub(super) fn admin(&self) -> AdminClient {
        AdminClient::new(&self.config.data_dir)
    }
}
