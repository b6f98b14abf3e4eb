//! Certificates: loaded from PEM files and reloaded on SIGHUP; self-signed for development and until ACME issues one.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CipherSuite, InconsistentKeys, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

use crate::acme::challenge::{self, ActiveChallenges, CertificateResolver};
use crate::config::Config;

/// Errors of loading or building a certificate.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    /// Not PEM, a key that does not match the certificate, or an unsupported type of key.
    #[error("certificate and private key: {0}")]
    Pair(String),
}

/// Loads the CA certificates of a PEM file, to trust in place of the public ones.
///
/// # Errors
/// The file cannot be read, is not PEM, or contains no certificate.
pub fn load_roots(file: &Path) -> Result<RootCertStore, String> {
    let to_error = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let pem = std::fs::read(file).map_err(|error| to_error(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| to_error(&"contains a certificate that is not valid PEM"))?;
        roots.add(certificate).map_err(|_| to_error(&"contains a certificate that cannot be decoded"))?;
    }
    if roots.is_empty() {
        return Err(to_error(&"contains no certificate"));
    }
    Ok(roots)
}

/// A certificate chain and its key, PEM.
pub struct Certificate {
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

impl Certificate {
    /// Reads the files that `[tls]` names. Returns none if `[tls]` names none.
    pub fn from_config(config: &Config) -> Result<Option<Self>, CertificateError> {
        match (&config.tls.certificate, &config.tls.private_key) {
            (Some(certificate), Some(private_key)) => Self::from_pem_files(certificate, private_key).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads a chain and a private key from PEM files.
    pub fn from_pem_files(certificate: &Path, private_key: &Path) -> Result<Self, CertificateError> {
        let read = |file: &Path| {
            std::fs::read(file).map_err(|error| CertificateError::File { file: file.display().to_string(), error })
        };
        Ok(Self { chain: read(certificate)?, key: read(private_key)? })
    }

    /// Creates a self-signed certificate (ECDSA P-256) for these names.
    ///
    /// # Errors
    /// The certificate cannot be generated, for example because a name is not ASCII.
    pub fn self_signed(names: &[&str]) -> Result<Self, CertificateError> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let generated =
            rcgen::generate_simple_self_signed(names).map_err(|error| CertificateError::Pair(error.to_string()))?;
        Ok(Self { chain: generated.cert.pem().into_bytes(), key: generated.signing_key.serialize_pem().into_bytes() })
    }

    /// Builds the rustls configuration of a server that presents this certificate.
    pub fn server_config(&self, alpn: Vec<Vec<u8>>) -> Result<Arc<ServerConfig>, CertificateError> {
        self.build_server_config(alpn, |pair| Arc::new(SingleCertAndKey::from(pair)))
    }

    /// As [`server_config`](Self::server_config); it also answers TLS-ALPN-01 challenges (RFC 8737).
    pub fn server_config_with_challenges(
        &self,
        mut alpn: Vec<Vec<u8>>,
        challenges: Arc<ActiveChallenges>,
    ) -> Result<Arc<ServerConfig>, CertificateError> {
        alpn.push(challenge::ALPN.to_vec());
        self.build_server_config(alpn, |pair| {
            Arc::new(CertificateResolver { default_certificate: Arc::new(pair), challenges })
        })
    }

    fn build_server_config(
        &self,
        alpn: Vec<Vec<u8>>,
        build_resolver: impl FnOnce(CertifiedKey) -> Arc<dyn ResolvesServerCert>,
    ) -> Result<Arc<ServerConfig>, CertificateError> {
        let to_error = |error: &dyn std::fmt::Display| CertificateError::Pair(error.to_string());
        let chain = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| to_error(&error))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| to_error(&error))?;
        let mut provider = aws_lc_rs::default_provider();
        // Prefer the suite that every TLS 1.3 client must implement (RFC 8446 9.1), whatever the client prefers:
        // SHA-256 makes the handshake's key schedule markedly cheaper than SHA-384, for both ends.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        if chain.is_empty() {
            return Err(to_error(&"contains no certificate"));
        }
        let pair = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                to_error(&"the key does not belong to the certificate")
            }
            error => to_error(&error),
        })?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| to_error(&error))?
            .with_no_client_auth()
            .with_cert_resolver(build_resolver(pair));
        config.ignore_client_order = true;
        // With an ECDSA certificate, a resumed handshake costs the server as much as a full one, and TLS 1.3
        // takes the same number of round trips (RFC 8446 2.2). Tickets would only add a packet.
        config.send_tls13_tickets = 0;
        config.alpn_protocols = alpn;
        Ok(Arc::new(config))
    }
}
