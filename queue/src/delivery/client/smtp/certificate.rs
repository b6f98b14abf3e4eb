//! Verification of a host's certificate: by name and public roots (PKIX), or by the host's TLSA records (DANE).
//!
//! It runs after the handshake, which verified the signatures. So a failure can be reported in detail, and merely noted
//! where mail is sent anyway.

use std::sync::Arc;

use message::dane::{Tlsa, TlsaMatchingType, TlsaSelector, TlsaUsage};
use message::tls_report::{self, TlsResultType};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};
use thiserror::Error;

/// Certificates of a chain that are compared with trust anchor records.
const CHAIN_MAX: usize = 10;

/// Why a certificate is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ServerCertificateError {
    #[error("the host presented no certificate")]
    Missing,
    #[error("the certificate has expired or is not yet valid")]
    Expired,
    #[error("the certificate is for another name")]
    OtherName,
    #[error("the certificate is not signed by a trusted authority")]
    Untrusted,
    #[error("the certificate is a certificate authority's own, not a server's")]
    Authority,
    #[error("no TLSA record matches the certificate")]
    Tlsa,
    #[error("the certificate is invalid: {0}")]
    Other(String),
}

impl ServerCertificateError {
    /// The failure as a TLS report names it (RFC 8460 4.3).
    pub(super) fn tls_report_failure(&self) -> tls_report::TlsFault {
        let result = match self {
            Self::Missing | Self::Authority | Self::Other(_) => TlsResultType::ValidationFailure,
            Self::Expired => TlsResultType::CertificateExpired,
            Self::OtherName => TlsResultType::CertificateHostMismatch,
            Self::Untrusted => TlsResultType::CertificateNotTrusted,
            Self::Tlsa => TlsResultType::TlsaInvalid,
        };
        tls_report::TlsFault::new(result, self.to_string())
    }
}

impl From<rustls::Error> for ServerCertificateError {
    fn from(error: rustls::Error) -> Self {
        use CertificateError as E;
        match error {
            rustls::Error::InvalidCertificate(error) => match error {
                E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => Self::Expired,
                E::NotValidForName | E::NotValidForNameContext { .. } => Self::OtherName,
                E::UnknownIssuer => Self::Untrusted,
                // webpki's error, which has no variant of its own in rustls.
                E::Other(error) if error.to_string() == "CaUsedAsEndEntity" => Self::Authority,
                E::Other(error) => Self::Other(error.to_string()),
                other => Self::Other(other.to_string()),
            },
            other => Self::Other(other.to_string()),
        }
    }
}

#[derive(Debug)]
pub(super) struct CertificateVerifier {
    provider: Arc<CryptoProvider>,
    pkix: Arc<WebPkiServerVerifier>,
}

impl CertificateVerifier {
    /// Creates a verifier that trusts these roots.
    pub(super) fn new(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Self, rustls::Error> {
        let public = webpki_verifier(roots, provider)
            .ok_or_else(|| rustls::Error::General("no root certificates are configured".to_owned()))?;
        Ok(Self { provider: Arc::clone(provider), pkix: public })
    }

    /// Verifies a chain for a host by the configured roots (RFC 8461 4.2).
    pub(super) fn verify_pkix(&self, chain: &[CertificateDer<'_>], host: &str) -> Result<(), ServerCertificateError> {
        verify_chain(&self.pkix, chain, host)
    }

    /// Verifies a chain by TLSA records (RFC 7672 3.1). For the host's own key or certificate (DANE-EE), names and
    /// dates are ignored (3.1.1); for an authority (DANE-TA), they are checked (3.1.2).
    pub(super) fn verify_dane(
        &self,
        records: &[Tlsa],
        chain: &[CertificateDer<'_>],
        host: &str,
    ) -> Result<(), ServerCertificateError> {
        let [leaf, ..] = chain else { return Err(ServerCertificateError::Missing) };
        let with_usage = |usage| records.iter().filter(move |record| record.usage == usage);
        if with_usage(TlsaUsage::EndEntity).any(|record| matches_record(record, leaf)) {
            return Ok(());
        }
        let mut fault = ServerCertificateError::Tlsa;
        for record in with_usage(TlsaUsage::TrustAnchor) {
            let from_chain =
                chain.iter().skip(1).take(CHAIN_MAX).filter(|certificate| matches_record(record, certificate)).cloned();
            // The record may contain the authority's whole certificate, which the host then need not send.
            let is_full_certificate =
                (record.selector, record.matching) == (TlsaSelector::Certificate, TlsaMatchingType::Full);
            let from_record = is_full_certificate.then(|| CertificateDer::from(record.data.clone()));
            for anchor in from_chain.chain(from_record) {
                let mut roots = RootCertStore::empty();
                if roots.add(anchor.into_owned()).is_err() {
                    continue;
                }
                let Some(verifier) = webpki_verifier(roots, &self.provider) else { continue };
                match verify_chain(&verifier, chain, host) {
                    Ok(()) => return Ok(()),
                    Err(found) => fault = found,
                }
            }
        }
        Err(fault)
    }
}

fn webpki_verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Option<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build().ok()
}

fn verify_chain(
    verifier: &WebPkiServerVerifier,
    chain: &[CertificateDer<'_>],
    host: &str,
) -> Result<(), ServerCertificateError> {
    let [leaf, intermediates @ ..] = chain else { return Err(ServerCertificateError::Missing) };
    let name = ServerName::try_from(host).map_err(|_| ServerCertificateError::OtherName)?;
    verifier.verify_server_cert(leaf, intermediates, &name, &[], UnixTime::now())?;
    Ok(())
}

fn matches_record(record: &Tlsa, certificate: &CertificateDer<'_>) -> bool {
    match ParsedCertificate::try_from(certificate) {
        Ok(parsed) => record.matches(certificate, parsed.subject_public_key_info().as_ref()),
        // A certificate that cannot be parsed can still match byte for byte.
        Err(_) => record.selector == TlsaSelector::Certificate && record.matches(certificate, &[]),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    #[test]
    fn an_authoritys_own_certificate_is_named_as_such() {
        let mut params = CertificateParams::new(vec!["mx.example".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = CertificateVerifier::new(roots, &provider).unwrap();
        let error = verifier.verify_pkix(&[authority], "mx.example").unwrap_err();
        assert_eq!(error, ServerCertificateError::Authority);
    }
}
