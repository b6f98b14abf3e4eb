//! Challenges: what proves to the authority that a name is ours, while it asks.
//!
//! By TLS-ALPN-01 (RFC 8737) a handshake that offers `acme-tls/1` and nothing else is shown a certificate
//! made for the challenge; by HTTP-01 (RFC 8555 8.3) a path answers with the key authorization.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use instant_acme::ChallengeType;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

/// The protocol of a handshake that looks for a proof (RFC 8737 6.2).
pub const ALPN: &[u8] = b"acme-tls/1";

/// How a name is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengeMethod {
    /// By the API's listener on port 443.
    TlsAlpn,
    /// By a listener on port 80.
    Http,
}

impl ChallengeMethod {
    /// As the protocol names it.
    #[must_use]
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

/// What is answered to the authority about one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChallengeResponse {
    /// By which HTTP-01 asks.
    pub(super) token: String,
    /// The answer (RFC 8555 8.1). It is no secret.
    pub(super) key_authorization: String,
}

/// What is answered about each name of an order.
pub(super) type ChallengeResponses = BTreeMap<String, ChallengeResponse>;

/// The proofs of this moment, by name.
#[derive(Debug, Default)]
pub struct ActiveChallenges {
    responses: RwLock<HashMap<String, ActiveChallenge>>,
}

/// A proof, and the certificate that shows it.
type ActiveChallenge = (ChallengeResponse, Option<Arc<CertifiedKey>>);

impl ActiveChallenges {
    /// Answers with these, and with nothing else, from now on.
    pub(super) fn set_responses(&self, wanted: ChallengeResponses) {
        let mut proofs = self.responses.write().unwrap_or_else(PoisonError::into_inner);
        proofs.retain(|name, (known, _)| wanted.get(name) == Some(&*known));
        for (name, proof) in wanted {
            if proofs.contains_key(&name) {
                continue;
            }
            let shown = challenge_certificate(&name, &proof);
            if let Err(error) = &shown {
                tracing::warn!(name, error, "no certificate for the challenge can be made");
            }
            proofs.insert(name, (proof, shown.ok()));
        }
    }

    /// The answer to HTTP-01.
    pub(super) fn http_response(&self, name: &str, token: &str) -> Option<String> {
        let proofs = self.responses.read().unwrap_or_else(PoisonError::into_inner);
        let (proof, _) = proofs.get(name).filter(|(proof, _)| proof.token == token)?;
        Some(proof.key_authorization.clone())
    }

    fn tls_alpn_certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.responses.read().unwrap_or_else(PoisonError::into_inner).get(name)?.1.clone()
    }
}

/// The certificate of a challenge: self-signed, the name, and the digest of the key authorization (RFC 8737 3).
fn challenge_certificate(name: &str, proof: &ChallengeResponse) -> Result<Arc<CertifiedKey>, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, proof.key_authorization.as_bytes());
    let mut asked = CertificateParams::new([name.to_owned()]).map_err(|error| failed(&error))?;
    asked.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let made = asked.self_signed(&key).map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // Not looked at any further: its critical extension is nothing that rustls knows.
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|error| failed(&error))?;
    Ok(Arc::new(CertifiedKey::new(vec![made.der().clone()], key)))
}

/// Shows a certificate to everybody, and proofs to who looks for them.
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
