//! Whether a host's certificate is good: for its name by the public roots, or by its own TLSA records.
//!
//! Looked at after the handshake, whose signatures were checked: so what does not hold is told in words, and noted where
//! mail goes all the same.

use std::sync::Arc;

use mail::dane::{Matching, Selector, Tlsa, Usage};
use mail::tls_report::{self, ResultType};
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
pub(super) enum CertificateFault {
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

impl CertificateFault {
    /// The same in the words of reports (RFC 8460 4.3).
    pub(super) fn told(&self) -> tls_report::Fault {
        let result = match self {
            Self::Missing | Self::Other(_) => ResultType::ValidationFailure,
            Self::Expired => ResultType::CertificateExpired,
            Self::OtherName => ResultType::CertificateHostMismatch,
            Self::Untrusted => ResultType::CertificateNotTrusted,
            Self::Tlsa => ResultType::TlsaInvalid,
        };
        tls_report::Fault::new(result, self.to_string())
    }
}

impl From<rustls::Error> for CertificateFault {
    fn from(error: rustls::Error) -> Self {
        use CertificateError as E;
        match error {
            rustls::Error::InvalidCertificate(error) => match error {
                E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
                    Self::Expired
                }
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
pub(super) struct Judge {
    provider: Arc<CryptoProvider>,
    public: Arc<WebPkiServerVerifier>,
}

impl Judge {
    /// One that trusts these roots.
    pub(super) fn new(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Self, rustls::Error> {
        let public = verifier(roots, provider).ok_or_else(|| {
            rustls::Error::General("there are no roots to check certificates by".to_owned())
        })?;
        Ok(Self { provider: Arc::clone(provider), public })
    }

    /// Whether a chain is good for a host by the public roots (RFC 8461 4.2).
    pub(super) fn by_roots(&self, chain: &[CertificateDer<'_>], host: &str) -> Result<(), CertificateFault> {
        judge(&self.public, chain, host)
    }

    /// Whether one of these records means a chain (RFC 7672 3.1). Where it names the host's own key or certificate, names
    /// and dates are of no matter (3.1.1); where it names an authority, they are (3.1.2).
    pub(super) fn by_records(
        &self,
        records: &[Tlsa],
        chain: &[CertificateDer<'_>],
        host: &str,
    ) -> Result<(), CertificateFault> {
        let [own, ..] = chain else { return Err(CertificateFault::Missing) };
        let of = |usage| records.iter().filter(move |record| record.usage == usage);
        if of(Usage::EndEntity).any(|record| names(record, own)) {
            return Ok(());
        }
        let mut fault = CertificateFault::Tlsa;
        for record in of(Usage::TrustAnchor) {
            let shown = chain.iter().skip(1).take(CHAIN_MAX).filter(|one| names(record, one)).cloned();
            // The authority's certificate may stand in the record alone.
            let is_whole = (record.selector, record.matching) == (Selector::Certificate, Matching::Full);
            let told = is_whole.then(|| CertificateDer::from(record.data.clone()));
            for anchor in shown.chain(told) {
                let mut roots = RootCertStore::empty();
                if roots.add(anchor.into_owned()).is_err() {
                    continue;
                }
                let Some(verifier) = verifier(roots, &self.provider) else { continue };
                match judge(&verifier, chain, host) {
                    Ok(()) => return Ok(()),
                    Err(found) => fault = found,
                }
            }
        }
        Err(fault)
    }
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Option<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build().ok()
}

fn judge(
    verifier: &WebPkiServerVerifier,
    chain: &[CertificateDer<'_>],
    host: &str,
) -> Result<(), CertificateFault> {
    let [own, rest @ ..] = chain else { return Err(CertificateFault::Missing) };
    let name = ServerName::try_from(host).map_err(|_| CertificateFault::OtherName)?;
    verifier.verify_server_cert(own, rest, &name, &[], UnixTime::now())?;
    Ok(())
}

fn names(record: &Tlsa, certificate: &CertificateDer<'_>) -> bool {
    match ParsedCertificate::try_from(certificate) {
        Ok(parsed) => record.names(certificate, parsed.subject_public_key_info().as_ref()),
        // What cannot be read can still be the very same bytes.
        Err(_) => record.selector == Selector::Certificate && record.names(certificate, &[]),
    }
}
