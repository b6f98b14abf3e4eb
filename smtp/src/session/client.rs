//! Facts about the client of a session: address, name, TLS and login.

use std::net::IpAddr;

use message::address::DomainName;
use model::id::AccountId;

use crate::handler::{SessionTls, SessionTrace};

/// The client of a session.
#[derive(Debug)]
pub(crate) struct SessionClient {
    pub(crate) peer: IpAddr,
    /// The name of HELO or EHLO, and whether it was EHLO.
    helo: Option<(Box<str>, bool)>,
    tls: Option<SessionTls>,
    authenticated: bool,
    /// The authenticated account.
    account: Option<AccountId>,
}

impl SessionClient {
    pub(super) fn new(peer: IpAddr) -> Self {
        Self { peer, helo: None, tls: None, authenticated: false, account: None }
    }

    /// Records the name of HELO or EHLO.
    pub(super) fn set_helo(&mut self, name: &str, is_esmtp: bool) {
        self.helo = Some((name.into(), is_esmtp));
    }

    /// Whether the client greeted with EHLO; `None` before its greeting.
    pub(super) fn greeted_with_ehlo(&self) -> Option<bool> {
        self.helo.as_ref().map(|(_, is_esmtp)| *is_esmtp)
    }

    pub(crate) fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    pub(super) fn account(&self) -> Option<AccountId> {
        self.account
    }

    /// Records a login.
    pub(super) fn authenticate(&mut self, account: Option<AccountId>) {
        (self.authenticated, self.account) = (true, account);
    }

    /// Starts anew under TLS: RFC 3207 4.2 requires that all data received in clear text is discarded.
    pub(super) fn restart_under_tls(&mut self, tls: SessionTls) {
        *self = Self { tls: Some(tls), ..Self::new(self.peer) };
    }

    /// The facts for the `Received` field of a message.
    pub(super) fn trace(&self, session: u64, hostname: &DomainName) -> SessionTrace {
        let (helo, is_esmtp) = self.helo.clone().unwrap_or_default();
        SessionTrace {
            session,
            peer: self.peer,
            helo,
            is_esmtp,
            tls: self.tls,
            authenticated: self.authenticated,
            hostname: hostname.clone(),
        }
    }
}
