//! Dialling: address check, greeting, EHLO, STARTTLS, AUTH.

use std::net::SocketAddr;

use queue::delivery::client::smtp::{
    DialReason, DialTarget, SmarthostCredentials, SmtpDialer, SmtpFault, TlsSecurityLevel, TransactionPhase,
    TransactionVerdict,
};

use super::script::{Script, certificate, dead_end, dialer, envelope, hasty, shipment};

const ALL_TLS: [TlsSecurityLevel; 4] =
    [TlsSecurityLevel::Opportunistic, TlsSecurityLevel::Required, TlsSecurityLevel::Verified, TlsSecurityLevel::Off];

#[tokio::test]
async fn private_addresses_are_not_dialled() {
    let public_only = SmtpDialer::new("out.example".parse().unwrap()).unwrap();
    let host = Script::default().start().await;
    for address in ["[::ffff:127.0.0.1]:25", "169.254.169.254:25", "[::1]:25", "10.0.0.1:25"]
        .map(|text| text.parse::<SocketAddr>().unwrap())
        .into_iter()
        .chain([host.address])
    {
        let target = DialTarget { address, ..host.target(TlsSecurityLevel::Off) };
        let failure = public_only.connect(&target).await.err().unwrap();
        assert_eq!(failure.reason, DialReason::Private(address.ip()));
    }
}

#[tokio::test]
async fn connection_refused_or_no_greeting() {
    let address = dead_end().await;
    let host = Script::default().expects_end().start().await;
    let target = DialTarget { address, ..host.target(TlsSecurityLevel::Off) };
    let failure = dialer().connect(&target).await.err().unwrap();
    assert!(matches!(failure.reason, DialReason::Connect(SmtpFault::Io(_))), "{failure}");
    let failure = hasty().connect(&host.target(TlsSecurityLevel::Off)).await.err().unwrap();
    assert_eq!(failure.reason, DialReason::ConnectionLost(SmtpFault::TimedOut));
    host.done().await;
}

#[tokio::test]
async fn a_refusing_greeting_is_kept() {
    for (greeting, code) in [("421-4.7.0 slow\r\n421 4.7.0 down\r\n", 421), ("554 5.7.1 no\r\n", 554)] {
        let host = Script::default().replies(greeting).start().await;
        let failure = dialer().connect(&host.target(TlsSecurityLevel::Off)).await.err().unwrap();
        assert_eq!(failure.reason, DialReason::Greeting);
        assert_eq!(failure.reply.unwrap().code, code);
        assert!(failure.transcript.to_string().contains(&format!("< {code}")));
        host.done().await;
    }
}

#[tokio::test]
async fn helo_when_ehlo_is_unknown() {
    let host = Script::default()
        .replies("220 old.example\r\n")
        .expects("EHLO out.example\r\n")
        .replies("502 what?\r\n")
        .expects("HELO out.example\r\n")
        .replies("250 old.example\r\n")
        .expects("MAIL FROM:<v1@rp.example>\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    assert_eq!(connection.ehlo_name, "old.example");
    assert_eq!(connection.deliver(&shipment(1, "x"), None).await.phase, TransactionPhase::Mail);
    host.done().await;

    let host = Script::default()
        .replies("220 x\r\n")
        .expects("EHLO out.example\r\n")
        .replies("550 no\r\n")
        .expects("HELO out.example\r\n")
        .replies("550 5.7.1 still no\r\n")
        .start()
        .await;
    let failure = dialer().connect(&host.target(TlsSecurityLevel::Off)).await.err().unwrap();
    assert_eq!(failure.reason, DialReason::Hello);
    assert_eq!(failure.reply.unwrap().to_string(), "550 5.7.1 still no");
    host.done().await;
}

#[tokio::test]
async fn starttls_resets_all_capabilities() {
    let (acceptor, roots) = certificate();
    for mode in [TlsSecurityLevel::Opportunistic, TlsSecurityLevel::Required, TlsSecurityLevel::Verified] {
        // Capabilities offered before TLS are discarded.
        let host = Script::offering(&["STARTTLS", "PIPELINING", "SMTPUTF8", "SIZE 1"])
            .expects("STARTTLS\r\n")
            .replies("220 go\r\n")
            .starts_tls(acceptor.clone())
            .ehlo(&["PIPELINING", "REQUIRETLS"])
            .expects(envelope(1) + "DATA\r\n")
            .replies("250 a\r\n250 b\r\n354 c\r\n")
            .expects("one\r\n.\r\n".to_owned() + &envelope(2) + "DATA\r\n")
            .replies("250 ok\r\n250 a\r\n250 b\r\n354 c\r\n")
            .expects("two\r\n.\r\n")
            .replies("250 ok\r\n")
            .start()
            .await;
        let trusting = dialer().with_roots(roots.clone()).unwrap();
        let mut connection = trusting.connect(&host.target(mode)).await.unwrap();
        assert!(!connection.capabilities.smtputf8 && connection.plaintext_reason().is_none());
        let (first, second) = (shipment(1, "one"), shipment(2, "two"));
        let delivery = connection.deliver(&first, Some(&second)).await;
        assert_eq!(delivery.verdict, TransactionVerdict::Accepted);
        let tls = delivery.tls.unwrap();
        assert_eq!((tls.version, tls.verified), ("TLSv1.3", mode == TlsSecurityLevel::Verified));
        assert!(tls.cipher.starts_with("TLS13_"), "{}", tls.cipher);
        assert!(delivery.transcript.to_string().contains("* TLSv1.3 TLS13_"));
        assert_eq!(connection.deliver(&second, None).await.verdict, TransactionVerdict::Accepted);
        host.done().await;
    }
}

#[tokio::test]
async fn sessions_are_resumed() {
    let (acceptor, _) = certificate();
    let ready = |script: Script| {
        script
            .replies("220 mx\r\n")
            .ehlo(&["STARTTLS"])
            .expects("STARTTLS\r\n")
            .replies("220 go\r\n")
            .starts_tls(acceptor.clone())
            .ehlo(&["DSN"])
    };
    let host =
        ready(ready(Script::default()).expects("QUIT\r\n").replies("221 bye\r\n").next_connection()).start().await;
    let dialer = dialer();
    let target = host.target(TlsSecurityLevel::Required);
    let first = dialer.connect(&target).await.unwrap();
    assert!(!first.tls().unwrap().resumed);
    first.quit().await;
    assert!(dialer.connect(&target).await.unwrap().tls().unwrap().resumed);
    host.done().await;
}

#[tokio::test]
async fn requiretls_needs_a_verified_certificate() {
    let (acceptor, roots) = certificate();
    for (mode, phase) in
        [(TlsSecurityLevel::Required, TransactionPhase::Local), (TlsSecurityLevel::Verified, TransactionPhase::Mail)]
    {
        let mut script = Script::offering(&["STARTTLS"])
            .expects("STARTTLS\r\n")
            .replies("220 go\r\n")
            .starts_tls(acceptor.clone())
            .ehlo(&["REQUIRETLS"]);
        if phase == TransactionPhase::Mail {
            script = script.expects("MAIL FROM:<v1@rp.example> REQUIRETLS\r\n").replies("451 later\r\n");
        }
        let host = script.start().await;
        let trusting = dialer().with_roots(roots.clone()).unwrap();
        let mut connection = trusting.connect(&host.target(mode)).await.unwrap();
        let mut secret = shipment(1, "x");
        secret.require_tls = true;
        assert_eq!(connection.deliver(&secret, None).await.phase, phase);
        host.done().await;
    }
}

#[tokio::test]
async fn an_unknown_certificate_is_not_verified() {
    let (acceptor, _) = certificate();
    let host = Script::offering(&["STARTTLS"])
        .expects("STARTTLS\r\n")
        .replies("220 go\r\n")
        .starts_tls(acceptor)
        .start()
        .await;
    let failure = dialer().connect(&host.target(TlsSecurityLevel::Verified)).await.err().unwrap();
    assert!(matches!(failure.reason, DialReason::Tls(_)), "{failure}");
    host.done().await;
}

#[tokio::test]
async fn tls_not_offered_or_refused() {
    for mode in ALL_TLS {
        let host = Script::offering(&["DSN"]).expects_end().start().await;
        let dialled = dialer().connect(&host.target(mode)).await;
        let allows_plaintext = matches!(mode, TlsSecurityLevel::Opportunistic | TlsSecurityLevel::Off);
        assert_eq!(dialled.is_ok(), allows_plaintext, "{mode:?}");
        assert!(dialled.err().is_none_or(|failure| failure.reason == DialReason::NoTls));
        host.done().await;
    }
    for mode in [TlsSecurityLevel::Opportunistic, TlsSecurityLevel::Required] {
        let host = Script::offering(&["STARTTLS"])
            .expects("STARTTLS\r\n")
            .replies("454 4.7.0 not now\r\n")
            .expects_end()
            .start()
            .await;
        let dialled = dialer().connect(&host.target(mode)).await;
        assert_eq!(dialled.is_ok(), mode == TlsSecurityLevel::Opportunistic);
        drop(dialled);
        host.done().await;
    }
}

#[tokio::test]
async fn a_failed_handshake_is_followed_by_one_plaintext_try() {
    let host = Script::offering(&["STARTTLS"])
        .expects("STARTTLS\r\n")
        .replies("220 go\r\n")
        .replies("this is not TLS at all, it is plain text\r\n")
        .next_connection()
        .replies("220 mx.example ESMTP\r\n")
        .ehlo(&["STARTTLS"])
        .expects("MAIL FROM:<v1@rp.example>\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    assert!(connection.plaintext_reason().is_some() && connection.tls().is_none());
    let delivery = connection.deliver(&shipment(1, "x"), None).await;
    assert!(delivery.transcript.to_string().contains("retrying in plaintext"));
    host.done().await;
}

#[tokio::test]
async fn a_host_that_hangs_up_on_starttls_is_dialled_in_plaintext() {
    let host = Script::offering(&["STARTTLS"])
        .expects("STARTTLS\r\n")
        .next_connection()
        .replies("220 mx.example ESMTP\r\n")
        .ehlo(&["DSN"])
        .start()
        .await;
    assert!(host.connect().await.plaintext_reason().is_some());
    host.done().await;
}

#[tokio::test]
async fn a_421_to_starttls_is_a_close_and_no_tls_failure() {
    let script = || Script::offering(&["STARTTLS"]).expects("STARTTLS\r\n").replies("421 4.3.2 shutting down\r\n");
    for (mode, wanted) in
        [(TlsSecurityLevel::Opportunistic, DialReason::Closing), (TlsSecurityLevel::Required, DialReason::NoTls)]
    {
        let host = script().start().await;
        let failure = dialer().connect(&host.target(mode)).await.err().unwrap();
        assert_eq!(failure.fault.is_some(), wanted == DialReason::NoTls);
        assert_eq!((failure.reason, failure.reply.unwrap().code), (wanted, 421));
        host.done().await;
    }
}

#[tokio::test]
async fn a_connection_lost_after_starttls_reports_its_tls_version() {
    let (acceptor, _) = certificate();
    let host = Script::offering(&["STARTTLS"])
        .expects("STARTTLS\r\n")
        .replies("220 go\r\n")
        .starts_tls(acceptor)
        .expects("EHLO out.example\r\n")
        .start()
        .await;
    let failure = dialer().connect(&host.target(TlsSecurityLevel::Required)).await.err().unwrap();
    assert!(matches!(failure.reason, DialReason::ConnectionLostAfterGreeting(_)), "{failure}");
    assert_eq!((failure.tls.unwrap().version, failure.fault), ("TLSv1.3", None));
    assert!(failure.local.unwrap().is_loopback());
    host.done().await;
}

/// RFC 3207 5: plaintext injected behind the 220 must not be taken for the host's replies inside TLS.
#[tokio::test]
async fn plaintext_behind_starttls_is_a_failure() {
    let injected = "220 go\r\n250-mx.example\r\n250 AUTH PLAIN\r\n";
    let (acceptor, _) = certificate();
    for mode in [TlsSecurityLevel::Required, TlsSecurityLevel::Verified] {
        let host = Script::offering(&["STARTTLS"])
            .expects("STARTTLS\r\n")
            .replies(injected)
            .start_broken_tls(acceptor.clone())
            .start()
            .await;
        let failure = dialer().connect(&host.target(mode)).await.err().unwrap();
        assert!(matches!(failure.reason, DialReason::Tls(_)), "{failure}");
        host.done().await;
    }
}

#[tokio::test]
async fn credentials_go_over_tls_only_and_leave_no_trace() {
    let (acceptor, _) = certificate();
    let credentials = || Some(SmarthostCredentials { username: "me".into(), password: "geheim".into() });
    let host = Script::offering(&["STARTTLS", "AUTH PLAIN"])
        .expects("STARTTLS\r\n")
        .replies("220 go\r\n")
        .starts_tls(acceptor)
        .ehlo(&["AUTH LOGIN PLAIN"])
        .expects("AUTH PLAIN AG1lAGdlaGVpbQ==\r\n")
        .replies("235 2.7.0 welcome\r\n")
        .expects("MAIL FROM:<v1@rp.example>\r\n")
        .start()
        .await;
    let target = DialTarget { credentials: credentials(), ..host.target(TlsSecurityLevel::Required) };
    assert!(!format!("{target:?}").contains("geheim"));
    let mut connection = dialer().connect(&target).await.unwrap();
    let delivery = connection.deliver(&shipment(1, "x"), None).await;
    let transcript = delivery.transcript.to_string();
    assert!(transcript.contains("> AUTH PLAIN [secret]") && !transcript.contains("AG1l"), "{transcript}");
    host.done().await;

    let host = Script::offering(&["AUTH PLAIN"]).expects_end().start().await;
    let target = DialTarget { credentials: credentials(), ..host.target(TlsSecurityLevel::Opportunistic) };
    assert_eq!(dialer().connect(&target).await.err().unwrap().reason, DialReason::NoAuth);
    host.done().await;

    let host = Script::offering(&["AUTH PLAIN"])
        .expects("AUTH PLAIN AG1lAGdlaGVpbQ==\r\n")
        .replies("535 5.7.8 who?\r\n")
        .start()
        .await;
    let target = DialTarget { credentials: credentials(), ..host.target(TlsSecurityLevel::Off) };
    let failure = dialer().connect(&target).await.err().unwrap();
    assert_eq!((failure.reason, failure.reply.unwrap().code), (DialReason::Auth, 535));
    host.done().await;
}
