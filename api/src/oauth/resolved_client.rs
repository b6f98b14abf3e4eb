//! `ResolvedClient`: a client of a request, wherever it is described.

use model::oauth::{ClientReference, redirect_uri};

/// How the client is known, for the person who decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientIdentity {
    /// Part of this program.
    BuiltIn,
    /// Registered by anybody: nothing about it is verified.
    Registered,
    /// The owner of this host published the document.
    Document(String),
}

/// A client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedClient {
    pub reference: ClientReference,
    pub identity: ClientIdentity,
    pub redirect_uris: Vec<String>,
    pub uses_device_codes: bool,
}

impl ResolvedClient {
    /// Returns whether a redirect URI of a request is the client's.
    pub fn has_redirect_uri(&self, requested: &str) -> bool {
        self.redirect_uris.iter().any(|registered| redirect_uri::matches(registered, requested))
    }
}
