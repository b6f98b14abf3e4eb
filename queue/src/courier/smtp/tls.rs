//! TLS toward a destination: two client configurations, made once and shared.
//!
//! *Opportunistic* takes any certificate (RFC 7435): most hosts' certificates cannot
//! be tied to a name that a stranger could not have put into the MX record, and an unauthenticated
//! cipher is still better than none. *Judged* takes any certificate whose owner signs the handshake, for
//! [`certificate`](super::certificate) to look at after it. Each has a session cache of its own, so that no session begun
//! without verification is ever resumed with it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnection, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, HandshakeKind, ProtocolVersion, RootCertStore, SignatureScheme,
};
use tokio_rustls::TlsConnector;

use super::certificate::CertificateVerifier;

/// Sessions kept for resumption, which halves the cost of a handshake. rustls keeps up to eight per
/// host, about 2 KB each.
const SESSIONS_MAX: usize = 2_048;

/// What was agreed on, for the record of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboundTls {
    /// `TLSv1.3`, `TLSv1.2`.
    pub version: &'static str,
    /// The IANA name of the cipher suite.
    pub cipher: &'static str,
    /// Whether the certificate was checked against roots and name.
    pub verified: bool,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

impl OutboundTls {
    pub(super) fn from_session(session: &ClientConnection, verified: bool) -> Self {
        Self {
            // As people and the events write it; rustls has an underscore.
            version: match session.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                _ => "unknown",
            },
            cipher: session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("unknown"),
            verified,
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

/// The two configurations, and who looks at what the second one let through.
#[derive(Clone)]
pub(super) struct TlsConnectors {
    pub opportunistic: TlsConnector,
    pub verified: TlsConnector,
    pub verifier: Arc<CertificateVerifier>,
}

impl TlsConnectors {
    pub(super) fn new(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        // The suite that every TLS 1.3 host must know (RFC 8446 9.1) comes first: SHA-256 makes the
        // handshake's key schedule markedly cheaper than SHA-384, for both ends.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        let provider = Arc::new(provider);
        let judge = Arc::new(CertificateVerifier::new(roots, &provider)?);
        let any = AcceptAnyCertificate { algorithms: None, schemes: schemes(&provider) };
        let owned = AcceptAnyCertificate {
            algorithms: Some(provider.signature_verification_algorithms),
            schemes: schemes(&provider),
        };
        let builder =
            || ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let mut opportunistic =
            builder()?.dangerous().with_custom_certificate_verifier(Arc::new(any)).with_no_client_auth();
        let mut judged = builder()?.dangerous().with_custom_certificate_verifier(Arc::new(owned)).with_no_client_auth();
        for config in [&mut opportunistic, &mut judged] {
            config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        }
        let [opportunistic, judged] = [opportunistic, judged].map(|config| Arc::new(config).into());
        Ok(Self { opportunistic, verified: judged, verifier: judge })
    }
}

fn schemes(provider: &CryptoProvider) -> Vec<SignatureScheme> {
    provider.signature_verification_algorithms.supported_schemes()
}

/// Takes any certificate, and any signature by it: whoever can stand between us and the host could
/// bring a certificate and a good signature of their own, so checking one without the other would
/// cost time and mail (old keys, odd encodings) and protect nothing. Where the certificate is looked at later, the
/// signature by it is checked (`algorithms`).
#[derive(Debug)]
struct AcceptAnyCertificate {
    algorithms: Option<WebPkiSupportedAlgorithms>,
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.algorithms {
            Some(algorithms) => verify_tls12_signature(message, cert, signature, algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.algorithms {
            Some(algorithms) => verify_tls13_signature(message, cert, signature, algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
