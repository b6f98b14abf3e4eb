//! TLS to a destination: two client configurations, built once and shared.
//!
//! *Opportunistic* accepts any certificate (RFC 7435). Most hosts' certificates cannot be tied to a name that an
//! attacker could not have put into the MX record, and unauthenticated encryption is better than none. *Verified*
//! accepts any certificate whose key signs the handshake; [`certificate`](super::certificate) verifies it afterwards.
//! Each has its own session cache, so that a session from an unverified handshake is never resumed as a verified one.

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

/// TLS sessions cached for resumption, which halves the cost of a handshake. rustls stores up to eight for each host,
/// about 2 KB each.
const SESSIONS_MAX: usize = 2_048;

/// Negotiated TLS parameters, for the attempt's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboundTls {
    /// `TLSv1.3`, `TLSv1.2`.
    pub version: &'static str,
    /// IANA name of the cipher suite.
    pub cipher: &'static str,
    /// True if the certificate was verified.
    pub verified: bool,
    /// True if an earlier session was resumed.
    pub resumed: bool,
}

impl OutboundTls {
    pub(super) fn from_session(session: &ClientConnection, verified: bool) -> Self {
        Self {
            // The names that events use; rustls writes `TLSv1_3`.
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

/// The two configurations, and the verifier for the second.
#[derive(Clone)]
pub(super) struct TlsConnectors {
    pub opportunistic: TlsConnector,
    pub verified: TlsConnector,
    pub verifier: Arc<CertificateVerifier>,
}

impl TlsConnectors {
    pub(super) fn new(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        // Prefer the suite that TLS 1.3 requires (RFC 8446 9.1): SHA-256 makes the key schedule markedly cheaper than
        // SHA-384 for both ends.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        let provider = Arc::new(provider);
        let verifier = Arc::new(CertificateVerifier::new(roots, &provider)?);
        let any = AcceptAnyCertificate { algorithms: None, schemes: schemes(&provider) };
        let signed = AcceptAnyCertificate {
            algorithms: Some(provider.signature_verification_algorithms),
            schemes: schemes(&provider),
        };
        let builder =
            || ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let mut opportunistic =
            builder()?.dangerous().with_custom_certificate_verifier(Arc::new(any)).with_no_client_auth();
        let mut verified =
            builder()?.dangerous().with_custom_certificate_verifier(Arc::new(signed)).with_no_client_auth();
        for config in [&mut opportunistic, &mut verified] {
            config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        }
        let [opportunistic, verified] = [opportunistic, verified].map(|config| Arc::new(config).into());
        Ok(Self { opportunistic, verified, verifier })
    }
}

fn schemes(provider: &CryptoProvider) -> Vec<SignatureScheme> {
    provider.signature_verification_algorithms.supported_schemes()
}

/// Accepts any certificate. Without `algorithms` it accepts any signature too: an attacker in the middle could present
/// a valid signature by its own certificate, so checking the signature alone would cost time and mail (old keys, odd
/// encodings) and protect nothing. Where the certificate is verified later, `algorithms` checks the signature.
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
