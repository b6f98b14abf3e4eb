//! The certificate that a listener shows, which can be changed while it runs.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The PEM text holds no certificate.
    #[error("the file holds no certificate in PEM form")]
    NoCertificate,
    /// The PEM text holds no private key.
    #[error("the file holds no private key in PEM form")]
    NoKey,
    /// They do not fit each other, or are of a kind that is not known.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// A certificate with its key. Connections that come after [`Self::replace`] see the new one.
#[derive(Debug)]
pub struct TlsSource {
    current: RwLock<Arc<ServerConfig>>,
}

impl TlsSource {
    /// Reads a chain and a key from PEM texts.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self { current: RwLock::new(config(chain, key)?) }))
    }

    /// Shows another certificate from now on. On an error the old one stays.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let config = config(chain, key)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

fn config(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|_| TlsError::NoCertificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // One ticket resumes one session; mail clients seldom open two at once.
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}
