//! Certificates are issued by ACME, renewed in time, and survive failures of the CA.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::RetryPolicy;
use jiff::Timestamp;
use postrider::acme::challenge::ChallengeMethod;
use postrider::acme::{AcmeSettings, CertificateRenewer, CertificateStatus};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::database::Server;
use crate::two_nodes;
use crate::world::authority::Authority;
use crate::world::{PATIENCE, TestWorld, tls};

const NAMES: [&str; 2] = ["out.postrider.example", "api.postrider.example"];
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn renewer(world: &TestWorld, authority: &Authority, method: ChallengeMethod) -> Arc<CertificateRenewer> {
    renewer_for_names(world, authority, method, NAMES).await
}

async fn renewer_for_names(
    world: &TestWorld,
    authority: &Authority,
    method: ChallengeMethod,
    names: [&str; 2],
) -> Arc<CertificateRenewer> {
    let settings = AcmeSettings {
        directory: authority.directory(),
        contact: Some("mailto:ops@postrider.example".to_owned()),
        names: names.map(str::to_owned).to_vec(),
        challenge_methods: vec![method],
        roots: None,
        servers: Vec::new(),
        retry_policy: RetryPolicy::new().initial_delay(Duration::from_millis(1)),
        // With TLS-ALPN-01 an order must not finish before the other nodes have loaded its challenge response.
        poll_interval: Duration::from_millis(if method == ChallengeMethod::Http { 20 } else { 500 }),
    };
    CertificateRenewer::open(settings, &world.server).await.unwrap()
}

fn spawn_renewer(world: &TestWorld, renewer: &Arc<CertificateRenewer>) {
    world.listeners().spawn(Arc::clone(renewer).run(world.listeners().stop.clone()));
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn wait(
    status: &mut watch::Receiver<CertificateStatus>,
    condition: impl Fn(&CertificateStatus) -> bool,
) -> CertificateStatus {
    let result = tokio::time::timeout(PATIENCE, status.wait_for(|status| condition(status))).await;
    match result.map(|status| status.unwrap().clone()) {
        Ok(status) => status,
        Err(_) => panic!("timed out: {:#?}", *status.borrow()),
    }
}

/// The certificate that an SMTP client receives.
async fn served_certificate(renewer: &CertificateRenewer) -> Vec<u8> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let acceptor = TlsAcceptor::from(Arc::clone(&renewer.certificates().smtp().borrow()));
    let (certificate, accepted) = tokio::join!(tls::server_certificate(client, NAMES[0], &[]), acceptor.accept(server));
    accepted.unwrap();
    certificate.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_issued_renewed_and_kept_over_a_restart() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.server.clock).await;
    let first = renewer(&world, &authority, ChallengeMethod::Http).await;
    let http = world.listeners().listen_challenges(&first, any_port()).await.unwrap();
    authority.resolve_names_to(Some(http), None);
    assert!(authority.issued_certificates().is_empty() && !served_certificate(&first).await.is_empty(), "self-signed");
    spawn_renewer(&world, &first);
    let mut status = first.status();
    let got = wait(&mut status, |now| now.expires_at.is_some()).await;
    assert_eq!(served_certificate(&first).await, authority.issued_certificates()[0]);
    assert_eq!((got.failures, got.last_failure), (0, None));
    let names = String::from_utf8_lossy(&authority.issued_certificates()[0]).into_owned();
    assert!(NAMES.iter().all(|name| names.contains(name)), "{names}");
    // Renewal is due after two thirds of ninety days.
    world.server.clock.advance(61 * DAY);
    let renewed = wait(&mut status, |now| now.expires_at > got.expires_at).await;
    assert!(renewed.renews_at.unwrap() > world.server.clock.now());
    assert_eq!(served_certificate(&first).await, authority.issued_certificates()[1]);
    // The second order names the certificate that it replaces (RFC 9773 5).
    assert_eq!(authority.replaced_certificates().iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);

    let world = world.restart("").await;
    world.server.clock.advance(61 * DAY);
    let second = renewer(&world, &authority, ChallengeMethod::Http).await;
    assert_eq!(served_certificate(&second).await, authority.issued_certificates()[1], "served right after the start");
    spawn_renewer(&world, &second);
    assert_eq!(authority.order_count(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_alpn_challenges_are_answered_on_the_api_port() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.server.clock).await;
    let renewer = renewer(&world, &authority, ChallengeMethod::TlsAlpn).await;
    let tls = Some(renewer.certificates().http());
    let api = world.listeners().listen_api(&world.server, any_port(), &world.config(), tls).await.unwrap();
    authority.resolve_names_to(None, Some(api));
    spawn_renewer(&world, &renewer);
    wait(&mut renewer.status(), |now| now.expires_at.is_some()).await;
    // HTTPS clients get the certificate; `acme-tls/1` gets none once the challenge is over.
    let connect = || async { tokio::net::TcpStream::connect(api).await.unwrap() };
    assert_eq!(
        tls::server_certificate(connect().await, NAMES[1], &[b"h2"]).await.unwrap(),
        authority.issued_certificates()[0]
    );
    assert_eq!(tls::server_certificate(connect().await, NAMES[1], &[b"acme-tls/1"]).await, None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_in_the_window_that_the_ca_suggests() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.server.clock).await;
    let renewer = renewer(&world, &authority, ChallengeMethod::Http).await;
    let http = world.listeners().listen_challenges(&renewer, any_port()).await.unwrap();
    authority.resolve_names_to(Some(http), None);
    let now = world.server.clock.now();
    authority.suggest_renewal_window((now + 5 * DAY, now + 6 * DAY));
    spawn_renewer(&world, &renewer);
    let mut status = renewer.status();
    let first = wait(&mut status, |now| now.asks_again_at > Some(Timestamp::UNIX_EPOCH)).await;
    let renews_at = first.renews_at.unwrap();
    assert!((now + 5 * DAY..=now + 6 * DAY).contains(&renews_at), "{first:#?}");
    // The CA changes the window to the past, as before a revocation: renew at once.
    authority.suggest_renewal_window((now - DAY, now));
    world.server.clock.advance(2 * DAY);
    let renewed = wait(&mut status, |now| now.expires_at > first.expires_at).await;
    assert_eq!((renewed.failures, authority.order_count()), (0, 2));
    // The new certificate is not renewed at once although the CA suggests the same window for it.
    let advised = wait(&mut status, |now| now.asks_again_at > Some(Timestamp::UNIX_EPOCH)).await;
    assert!(advised.renews_at.unwrap() > now + 2 * DAY, "{advised:#?}");
    world.end().await;
}

/// Two nodes order certificates one at a time, and the node that the CA connects to can answer every challenge.
/// Returns the number of orders.
async fn count_orders_of_two_nodes(server: &Server, method: ChallengeMethod, names: [[&str; 2]; 2]) -> usize {
    let nodes = two_nodes::nodes(server, |_, _| {}).await;
    let authority = Authority::start(&nodes[0].server.clock).await;
    let first = renewer_for_names(&nodes[0], &authority, method, names[0]).await;
    let second = renewer_for_names(&nodes[1], &authority, method, names[1]).await;
    // The CA always connects to the second node, so that the first node's challenges are answered by the other node.
    let http = nodes[1].listeners().listen_challenges(&second, any_port()).await.unwrap();
    let tls = Some(second.certificates().http());
    let api = nodes[1].listeners().listen_api(&nodes[1].server, any_port(), &nodes[1].config(), tls).await.unwrap();
    authority.resolve_names_to(Some(http), Some(api));
    spawn_renewer(&nodes[0], &first);
    spawn_renewer(&nodes[1], &second);
    for renewer in [&first, &second] {
        let got = wait(&mut renewer.status(), |now| now.expires_at.is_some()).await;
        assert_eq!((got.failures, got.last_failure), (0, None));
        assert!(authority.issued_certificates().contains(&served_certificate(renewer).await));
    }
    if names[0] == names[1] {
        assert_eq!(served_certificate(&first).await, served_certificate(&second).await);
    }
    let orders = authority.order_count();
    // Renewal: the other node reads the new certificate at its next poll.
    let expires_at = first.status().borrow().expires_at;
    nodes[0].server.clock.advance(61 * DAY);
    wait(&mut first.status(), |now| now.expires_at > expires_at).await;
    if names[0] == names[1] {
        wait(&mut second.status(), |now| now.expires_at > expires_at).await;
        assert_eq!(served_certificate(&first).await, served_certificate(&second).await);
        assert_eq!(authority.order_count(), orders + 1);
    }
    two_nodes::end_nodes(nodes).await;
    orders
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_the_same_names_share_one_certificate() {
    let server = Server::start(&[]);
    for method in [ChallengeMethod::Http, ChallengeMethod::TlsAlpn] {
        assert_eq!(count_orders_of_two_nodes(&server, method, [NAMES; 2]).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_share_a_name_order_one_after_the_other() {
    let server = Server::start(&[]);
    for method in [ChallengeMethod::Http, ChallengeMethod::TlsAlpn] {
        assert_eq!(count_orders_of_two_nodes(&server, method, [NAMES, ["two.postrider.example", NAMES[1]]]).await, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_order_is_reported_and_retried() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.server.clock).await;
    let renewer = renewer(&world, &authority, ChallengeMethod::Http).await;
    let http = world.listeners().listen_challenges(&renewer, any_port()).await.unwrap();
    spawn_renewer(&world, &renewer);
    let mut status = renewer.status();
    let failed = wait(&mut status, |now| now.failures == 1).await;
    let failure = failed.last_failure.unwrap();
    assert!(failure.contains("was not validated by http-01: no valid response; the name must"), "{failure}");
    assert!(!served_certificate(&renewer).await.is_empty(), "the self-signed certificate is still served");
    world.server.clock.advance(Duration::from_secs(61));
    wait(&mut status, |now| now.failures == 2).await;
    authority.resolve_names_to(Some(http), None);
    world.server.clock.advance(Duration::from_secs(15 * 60 + 1));
    let well = wait(&mut status, |now| now.failures == 0).await;
    assert_eq!((well.last_failure, well.tries_again_at), (None, None));
    assert_eq!(served_certificate(&renewer).await, authority.issued_certificates()[0]);
    assert_eq!(authority.order_count(), 3);
    world.end().await;
}
