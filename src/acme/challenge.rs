//! ACME challenges: responses by which the authority validates that this installation controls a name.
//!
//! TLS-ALPN-01 (RFC 8737): a handshake that offers only `acme-tls/1` gets a certificate made for the challenge.
//! HTTP-01 (RFC 8555 8.3): a well-known path returns the key authorization.

use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use instant_acme::ChallengeType;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

/// ALPN protocol of a TLS-ALPN-01 handshake (RFC 8737 6.2).
pub const ALPN: &[u8] = b"acme-tls/1";

/// Challenge type by which a name is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengeMethod {
    /// TLS-ALPN-01, on the API's listener on port 443.
    TlsAlpn,
    /// HTTP-01, on a listener on port 80.
    Http,
}

impl ChallengeMethod {
    /// Name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::TlsAlpn => "tls-alpn-01",
            Self::Http => "http-01",
        }
    }

    pub(super) fn challenge_type(self) -> ChallengeType {
        match self {
            Self::TlsAlpn => ChallengeType::TlsAlpn01,
            Self::Http => ChallengeType::Http01,
        }
    }
}

/// Response to the challenge of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChallengeResponse {
    /// Token in the path of an HTTP-01 request.
    pub(super) token: String,
    /// Key authorization (RFC 8555 8.1). It is not secret.
    pub(super) key_authorization: String,
}

/// Challenge responses of an order, by name.
pub(super) type ChallengeResponses = BTreeMap<String, ChallengeResponse>;

/// Challenge responses that this node serves now, by name.
#[derive(Debug, Default)]
pub struct ActiveChallenges {
    responses: RwLock<HashMap<String, ActiveChallenge>>,
}

/// A challenge response and its TLS-ALPN-01 certificate.
type ActiveChallenge = (ChallengeResponse, Option<Arc<CertifiedKey>>);

impl ActiveChallenges {
    /// Replaces the challenge responses. Unchanged ones keep their certificate.
    pub(super) fn set_responses(&self, new_responses: ChallengeResponses) {
        let mut responses = self.responses.write();
        responses.retain(|name, (response, _)| new_responses.get(name) == Some(&*response));
        for (name, response) in new_responses {
            if responses.contains_key(&name) {
                continue;
            }
            let certificate = challenge_certificate(&name, &response);
            if let Err(error) = &certificate {
                tracing::warn!(name, error, "cannot create the TLS-ALPN-01 certificate");
            }
            responses.insert(name, (response, certificate.ok()));
        }
    }

    /// Key authorization for an HTTP-01 request.
    pub(super) fn http_response(&self, name: &str, token: &str) -> Option<String> {
        let responses = self.responses.read();
        let (response, _) = responses.get(name).filter(|(response, _)| response.token == token)?;
        Some(response.key_authorization.clone())
    }

    fn tls_alpn_certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.responses.read().get(name)?.1.clone()
    }
}

/// Creates a TLS-ALPN-01 certificate: self-signed, with the name and the digest of the key authorization (RFC 8737 3).
fn challenge_certificate(name: &str, response: &ChallengeResponse) -> Result<Arc<CertifiedKey>, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, response.key_authorization.as_bytes());
    let mut params = CertificateParams::new([name.to_owned()]).map_err(|error| failed(&error))?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let certificate = params.self_signed(&key).map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // Not validated further: rustls does not support its critical extension.
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|error| failed(&error))?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

/// Selects the challenge certificate for TLS-ALPN-01 handshakes, and the default certificate for all others.
#[derive(Debug)]
pub(crate) struct CertificateResolver {
    pub(crate) default_certificate: Arc<CertifiedKey>,
    pub(crate) challenges: Arc<ActiveChallenges>,
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut offered = hello.alpn().into_iter().flatten();
        if (offered.next(), offered.next()) == (Some(ALPN), None) {
            return self.challenges.tls_alpn_certificate(&hello.server_name()?.to_ascii_lowercase());
        }
        Some(Arc::clone(&self.default_certificate))
    }
}
