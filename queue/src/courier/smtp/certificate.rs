//! Whether a host's certificate is good: for its name by the public roots, or by its own TLSA records.
//!
//! Looked at after the handshake, whose signatures were checked: so what does not hold is told in words, and noted where
//! mail goes all the same.

use std::sync::Arc;

use mail::dane::{Tlsa, TlsaMatchingType, TlsaSelector, TlsaUsage};
use mail::tls_report::{self, TlsResultType};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};
use thiserror::Error;

/// Certificates of a chain that are looked at.
const CHAIN_MAX: usize = 10;

/// Why a certificate is not good.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ServerCertificateError {
    /// The host showed none.
    #[error("the host shows no certificate")]
    Missing,
    /// Its time is over, or has not come.
    #[error("its certificate has expired, or is not valid yet")]
    Expired,
    /// It is for others.
    #[error("its certificate is for another name")]
    OtherName,
    /// Nobody whom we trust has signed it.
    #[error("its certificate is not signed by an authority that is trusted")]
    Untrusted,
    /// None of the host's TLSA records means it.
    #[error("none of its TLSA records means its certificate")]
    Tlsa,
    /// Something else.
    #[error("its certificate does not hold: {0}")]
    Other(String),
}

impl ServerCertificateError {
    /// The same in the words of reports (RFC 8460 4.3).
    pub(super) fn tls_report_failure(&self) -> tls_report::TlsFault {
        let result = match self {
            Self::Missing | Self::Other(_) => TlsResultType::ValidationFailure,
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
                other => Self::Other(format!("{other:?}")),
            },
            other => Self::Other(other.to_string()),
        }
    }
}

/// Judges certificates.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    provider: Arc<CryptoProvider>,
    pkix: Arc<WebPkiServerVerifier>,
}

impl CertificateVerifier {
    /// One that trusts these roots.
    pub(super) fn new(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Self, rustls::Error> {
        let public = webpki_verifier(roots, provider)
            .ok_or_else(|| rustls::Error::General("there are no roots to check certificates by".to_owned()))?;
        Ok(Self { provider: Arc::clone(provider), pkix: public })
    }

    /// Whether a chain is good for a host by the public roots (RFC 8461 4.2).
    pub(super) fn verify_pkix(&self, chain: &[CertificateDer<'_>], host: &str) -> Result<(), ServerCertificateError> {
        verify_chain(&self.pkix, chain, host)
    }

    /// Whether one of these records means a chain (RFC 7672 3.1). Where it names the host's own key or certificate, names
    /// and dates are of no matter (3.1.1); where it names an authority, they are (3.1.2).
    pub(super) fn verify_dane(
        &self,
        records: &[Tlsa],
        chain: &[CertificateDer<'_>],
        host: &str,
    ) -> Result<(), ServerCertificateError> {
        let [own, ..] = chain else { return Err(ServerCertificateError::Missing) };
        let of = |usage| records.iter().filter(move |record| record.usage == usage);
        if of(TlsaUsage::EndEntity).any(|record| matches_record(record, own)) {
            return Ok(());
        }
        let mut fault = ServerCertificateError::Tlsa;
        for record in of(TlsaUsage::TrustAnchor) {
            let shown = chain.iter().skip(1).take(CHAIN_MAX).filter(|one| matches_record(record, one)).cloned();
            // The authority's certificate may stand in the record alone.
            let is_whole = (record.selector, record.matching) == (TlsaSelector::Certificate, TlsaMatchingType::Full);
            let told = is_whole.then(|| CertificateDer::from(record.data.clone()));
            for anchor in shown.chain(told) {
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
    let [own, rest @ ..] = chain else { return Err(ServerCertificateError::Missing) };
    let name = ServerName::try_from(host).map_err(|_| ServerCertificateError::OtherName)?;
    verifier.verify_server_cert(own, rest, &name, &[], UnixTime::now())?;
    Ok(())
}

fn matches_record(record: &Tlsa, certificate: &CertificateDer<'_>) -> bool {
    match ParsedCertificate::try_from(certificate) {
        Ok(parsed) => record.matches(certificate, parsed.subject_public_key_info().as_ref()),
        // What cannot be read can still be the very same bytes.
        Err(_) => record.selector == TlsaSelector::Certificate && record.matches(certificate, &[]),
    }
}
