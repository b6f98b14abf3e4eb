//! Certificate checks by a host's TLSA records (RFC 7672), and checks for reports only (RFC 8461 5).

use std::sync::Arc;

use message::dane::Tlsa;
use queue::delivery::client::smtp::{DialFailure, DialReason, DialTarget, SmtpConnection, TlsSecurityLevel};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest as _, Sha256, Sha512};
use tokio_rustls::TlsAcceptor;

use crate::script::{Script, certificate, dialer};

/// A certificate chain: the host's certificate and that of its issuer.
struct Chain {
    leaf: CertificateDer<'static>,
    authority: CertificateDer<'static>,
    acceptor: TlsAcceptor,
}

/// Creates a chain for these names, optionally expired long ago, and with or without the issuer's certificate in the
/// handshake.
fn chain(names: &[&str], expired: bool, is_shown: bool) -> Chain {
    let mut above = CertificateParams::new(Vec::new()).unwrap();
    above.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let above_key = KeyPair::generate().unwrap();
    let authority = above.self_signed(&above_key).unwrap().der().clone();
    let issuer = Issuer::new(above, above_key);
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut leaf_params = CertificateParams::new(names).unwrap();
    if expired {
        (leaf_params.not_before, leaf_params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    }
    let leaf = leaf_params.signed_by(&key, &issuer).unwrap().der().clone();
    let mut presented = vec![leaf.clone()];
    presented.extend(is_shown.then(|| authority.clone()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(presented, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
        .unwrap();
    Chain { leaf, authority, acceptor: Arc::new(config).into() }
}

fn key_of(certificate: &CertificateDer<'_>) -> Vec<u8> {
    ParsedCertificate::try_from(certificate).unwrap().subject_public_key_info().as_ref().to_vec()
}

fn record(usage: u8, selector: u8, matching: u8, certificate: &CertificateDer<'_>) -> Tlsa {
    let part = if selector == 0 { certificate.to_vec() } else { key_of(certificate) };
    let data = match matching {
        0 => part,
        1 => Sha256::digest(part).to_vec(),
        _ => Sha512::digest(part).to_vec(),
    };
    Tlsa::from_fields(usage, selector, matching, data).unwrap()
}

async fn dial(
    acceptor: &TlsAcceptor,
    tls: TlsSecurityLevel,
    records: Option<Vec<Tlsa>>,
) -> Result<SmtpConnection, DialFailure> {
    let host = Script::offering(&["STARTTLS"])
        .expects("STARTTLS\r\n")
        .replies("220 go\r\n")
        .starts_tls(acceptor.clone())
        .ehlo(&["DSN"])
        .start()
        .await;
    let target = DialTarget { dane: records.map(Into::into), ..host.target(tls) };
    dialer().connect(&target).await
}

#[tokio::test]
async fn a_dane_ee_record_verifies_the_hosts_key() {
    // With DANE-EE names and dates do not matter (RFC 7672 3.1.1).
    let chain = chain(&["other.example"], true, false);
    for (selector, matching) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
        let records = vec![record(3, 1, 1, &chain.authority), record(3, selector, matching, &chain.leaf)];
        let connection = dial(&chain.acceptor, TlsSecurityLevel::Opportunistic, Some(records)).await.unwrap();
        assert!(connection.tls().unwrap().verified, "3 {selector} {matching}");
    }
}

#[tokio::test]
async fn a_key_without_a_tlsa_record_is_rejected() {
    let (presented, recorded) = (chain(&["mx.example"], false, true), chain(&["mx.example"], false, true));
    for tls in [
        TlsSecurityLevel::Opportunistic,
        TlsSecurityLevel::Testing,
        TlsSecurityLevel::Required,
        TlsSecurityLevel::Verified,
    ] {
        for records in [vec![record(3, 1, 1, &recorded.leaf)], vec![record(2, 0, 1, &recorded.authority)]] {
            let failure = dial(&presented.acceptor, tls, Some(records)).await.err().unwrap();
            assert!(matches!(&failure.reason, DialReason::Tls(why) if why.reason.contains("TLSA")), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_dane_ta_record_verifies_name_and_validity() {
    let valid = chain(&["mx.example"], false, true);
    for (selector, matching) in [(0, 0), (0, 1), (1, 1), (1, 2)] {
        let records = vec![record(2, selector, matching, &valid.authority)];
        let connection = dial(&valid.acceptor, TlsSecurityLevel::Opportunistic, Some(records)).await.unwrap();
        assert!(connection.tls().unwrap().verified, "2 {selector} {matching}");
    }
    // The issuer's certificate is in the record only, not in the handshake.
    let bare = chain(&["mx.example"], false, false);
    assert!(
        dial(&bare.acceptor, TlsSecurityLevel::Opportunistic, Some(vec![record(2, 0, 0, &bare.authority)]))
            .await
            .is_ok()
    );
    for (chain, error) in
        [(chain(&["other.example"], false, true), "another name"), (chain(&["mx.example"], true, true), "expired")]
    {
        let records = vec![record(2, 0, 1, &chain.authority)];
        let failure = dial(&chain.acceptor, TlsSecurityLevel::Opportunistic, Some(records)).await.err().unwrap();
        assert!(matches!(&failure.reason, DialReason::Tls(why) if why.reason.contains(error)), "{failure}");
    }
}

#[tokio::test]
async fn with_tlsa_records_plaintext_is_refused() {
    let record = record(3, 1, 1, &chain(&["mx.example"], false, false).leaf);
    let host = Script::offering(&["DSN"]).start().await;
    let target = DialTarget { dane: Some(vec![record].into()), ..host.target(TlsSecurityLevel::Opportunistic) };
    let failure = dialer().connect(&target).await.err().unwrap();
    assert!(matches!(failure.reason, DialReason::NoTls), "{failure}");
    host.done().await;
}

#[tokio::test]
async fn testing_mode_records_the_result_and_delivers() {
    let (acceptor, roots) = certificate();
    let host = || async {
        Script::offering(&["STARTTLS"])
            .expects("STARTTLS\r\n")
            .replies("220 go\r\n")
            .starts_tls(acceptor.clone())
            .ehlo(&["DSN"])
            .start()
            .await
    };
    for (dialer, holds) in [(dialer().with_roots(roots).unwrap(), true), (dialer(), false)] {
        let connection = dialer.connect(&host().await.target(TlsSecurityLevel::Testing)).await.unwrap();
        assert_eq!(connection.tls().unwrap().verified, holds);
    }
    let bare = Script::offering(&["DSN"]).start().await;
    assert!(dialer().connect(&bare.target(TlsSecurityLevel::Testing)).await.unwrap().tls().is_none());
}
