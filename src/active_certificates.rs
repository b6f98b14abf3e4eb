//! The certificates that the listeners present: one for SMTP, and one for HTTP with ALPN. They are replaced at run time.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio::sync::watch;

use crate::acme::challenge::ActiveChallenges;
use crate::certificate::{Certificate, CertificateError};

/// Receives the current TLS configuration; certificates are replaced at run time.
pub type ServerConfigReceiver = watch::Receiver<Arc<ServerConfig>>;

/// Current certificates: for SMTP, and for HTTP with ALPN.
pub struct ActiveCertificates {
    smtp: watch::Sender<Arc<ServerConfig>>,
    http: watch::Sender<Arc<ServerConfig>>,
    /// Challenge responses of TLS-ALPN-01, which the API's listeners serve.
    challenges: Option<Arc<ActiveChallenges>>,
}

impl ActiveCertificates {
    /// Installs a certificate.
    pub fn new(certificate: &Certificate) -> Result<Self, CertificateError> {
        let [smtp, http] = tls_configs(certificate, None)?.map(watch::Sender::new);
        Ok(Self { smtp, http, challenges: None })
    }

    /// As [`new`](Self::new); HTTP listeners also serve TLS-ALPN-01 challenges.
    pub fn with_challenges(
        certificate: &Certificate,
        challenges: Arc<ActiveChallenges>,
    ) -> Result<Self, CertificateError> {
        let [smtp, http] = tls_configs(certificate, Some(&challenges))?.map(watch::Sender::new);
        Ok(Self { smtp, http, challenges: Some(challenges) })
    }

    /// Replaces the certificate for new connections.
    ///
    /// # Errors
    /// The PEM or the key pair is invalid; the old certificate stays installed.
    pub fn replace(&self, certificate: &Certificate) -> Result<(), CertificateError> {
        let [smtp, http] = tls_configs(certificate, self.challenges.as_ref())?;
        self.smtp.send_replace(smtp);
        self.http.send_replace(http);
        Ok(())
    }

    /// TLS configuration of SMTP listeners.
    pub fn smtp(&self) -> ServerConfigReceiver {
        self.smtp.subscribe()
    }

    /// TLS configuration of HTTP listeners.
    pub fn http(&self) -> ServerConfigReceiver {
        self.http.subscribe()
    }
}

/// Builds the configurations for SMTP and for HTTP.
fn tls_configs(
    certificate: &Certificate,
    challenges: Option<&Arc<ActiveChallenges>>,
) -> Result<[Arc<ServerConfig>; 2], CertificateError> {
    let alpn = api::serve::alpn_protocols();
    let http = match challenges {
        Some(challenges) => certificate.server_config_with_challenges(alpn, Arc::clone(challenges)),
        None => certificate.server_config(alpn),
    };
    Ok([certificate.server_config(Vec::new())?, http?])
}
