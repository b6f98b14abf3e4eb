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

async fn keeper(world: &TestWorld, authority: &Authority, way: ChallengeMethod) -> Arc<CertificateRenewer> {
    keeper_of(world, authority, way, NAMES).await
}

async fn keeper_of(
    world: &TestWorld,
    authority: &Authority,
    way: ChallengeMethod,
    names: [&str; 2],
) -> Arc<CertificateRenewer> {
    let settings = AcmeSettings {
        directory: authority.directory(),
        contact: Some("mailto:ops@postrider.example".to_owned()),
        names: names.map(str::to_owned).to_vec(),
        challenge_methods: vec![way],
        roots: None,
        servers: Vec::new(),
        retry_policy: RetryPolicy::new().initial_delay(Duration::from_millis(1)),
        // With TLS-ALPN-01 an order must not finish before the other nodes have loaded its challenge response.
        poll_interval: Duration::from_millis(if way == ChallengeMethod::Http { 20 } else { 500 }),
    };
    CertificateRenewer::open(settings, &world.world).await.unwrap()
}

fn keep(world: &TestWorld, keeper: &Arc<CertificateRenewer>) {
    world.doors().spawn(Arc::clone(keeper).run(world.doors().stop.clone()));
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn wait(
    standing: &mut watch::Receiver<CertificateStatus>,
    wanted: impl Fn(&CertificateStatus) -> bool,
) -> CertificateStatus {
    let waited = tokio::time::timeout(PATIENCE, standing.wait_for(|now| wanted(now))).await;
    match waited.map(|now| now.unwrap().clone()) {
        Ok(now) => now,
        Err(_) => panic!("timed out: {:#?}", *standing.borrow()),
    }
}

/// The certificate that an SMTP client receives.
async fn shown(keeper: &CertificateRenewer) -> Vec<u8> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let acceptor = TlsAcceptor::from(Arc::clone(&keeper.certificates().smtp().borrow()));
    let (seen, accepted) = tokio::join!(tls::shown(client, NAMES[0], &[]), acceptor.accept(server));
    accepted.unwrap();
    seen.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_issued_renewed_and_kept_over_a_restart() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let first = keeper(&world, &authority, ChallengeMethod::Http).await;
    let http = world.doors().listen_challenges(&first, anywhere()).await.unwrap();
    authority.lead(Some(http), None);
    assert!(authority.issued().is_empty() && !shown(&first).await.is_empty(), "self-signed");
    keep(&world, &first);
    let mut standing = first.status();
    let got = wait(&mut standing, |now| now.expires_at.is_some()).await;
    assert_eq!(shown(&first).await, authority.issued()[0]);
    assert_eq!((got.failures, got.last_failure), (0, None));
    let names = String::from_utf8_lossy(&authority.issued()[0]).into_owned();
    assert!(NAMES.iter().all(|name| names.contains(name)), "{names}");
    // Renewal is due after two thirds of ninety days.
    world.world.clock.advance(61 * DAY);
    let renewed = wait(&mut standing, |now| now.expires_at > got.expires_at).await;
    assert!(renewed.renews_at.unwrap() > world.world.clock.now());
    assert_eq!(shown(&first).await, authority.issued()[1]);
    // The second order names the certificate that it replaces (RFC 9773 5).
    assert_eq!(authority.replaced().iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);

    let world = world.restart("").await;
    world.world.clock.advance(61 * DAY);
    let second = keeper(&world, &authority, ChallengeMethod::Http).await;
    assert_eq!(shown(&second).await, authority.issued()[1], "served right after the start");
    keep(&world, &second);
    assert_eq!(authority.orders(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_alpn_challenges_are_answered_on_the_api_port() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let keeper = keeper(&world, &authority, ChallengeMethod::TlsAlpn).await;
    let tls = Some(keeper.certificates().http());
    let api = world.doors().listen_api(&world.world, anywhere(), &world.config(), tls).await.unwrap();
    authority.lead(None, Some(api));
    keep(&world, &keeper);
    wait(&mut keeper.status(), |now| now.expires_at.is_some()).await;
    // HTTPS clients get the certificate; `acme-tls/1` gets none once the challenge is over.
    let connect = || async { tokio::net::TcpStream::connect(api).await.unwrap() };
    assert_eq!(tls::shown(connect().await, NAMES[1], &[b"h2"]).await.unwrap(), authority.issued()[0]);
    assert_eq!(tls::shown(connect().await, NAMES[1], &[b"acme-tls/1"]).await, None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_in_the_window_that_the_ca_suggests() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let keeper = keeper(&world, &authority, ChallengeMethod::Http).await;
    let http = world.doors().listen_challenges(&keeper, anywhere()).await.unwrap();
    authority.lead(Some(http), None);
    let now = world.world.clock.now();
    authority.advise((now + 5 * DAY, now + 6 * DAY));
    keep(&world, &keeper);
    let mut standing = keeper.status();
    let first = wait(&mut standing, |now| now.asks_again_at > Some(Timestamp::UNIX_EPOCH)).await;
    let renews_at = first.renews_at.unwrap();
    assert!((now + 5 * DAY..=now + 6 * DAY).contains(&renews_at), "{first:#?}");
    // The CA changes the window to the past, as before a revocation: renew at once.
    authority.advise((now - DAY, now));
    world.world.clock.advance(2 * DAY);
    let renewed = wait(&mut standing, |now| now.expires_at > first.expires_at).await;
    assert_eq!((renewed.failures, authority.orders()), (0, 2));
    // The new certificate is not renewed at once although the CA suggests the same window for it.
    let advised = wait(&mut standing, |now| now.asks_again_at > Some(Timestamp::UNIX_EPOCH)).await;
    assert!(advised.renews_at.unwrap() > now + 2 * DAY, "{advised:#?}");
    world.end().await;
}

/// Two nodes order certificates one at a time, and the node that the CA connects to can answer every challenge.
/// Returns the number of orders.
async fn of_two_nodes(server: &Server, way: ChallengeMethod, names: [[&str; 2]; 2]) -> usize {
    let nodes = two_nodes::nodes(server, |_, _| {}).await;
    let authority = Authority::start(&nodes[0].world.clock).await;
    let one = keeper_of(&nodes[0], &authority, way, names[0]).await;
    let two = keeper_of(&nodes[1], &authority, way, names[1]).await;
    // The CA always connects to the second node, so that the first node's challenges are answered by the other node.
    let http = nodes[1].doors().listen_challenges(&two, anywhere()).await.unwrap();
    let tls = Some(two.certificates().http());
    let api = nodes[1].doors().listen_api(&nodes[1].world, anywhere(), &nodes[1].config(), tls).await.unwrap();
    authority.lead(Some(http), Some(api));
    keep(&nodes[0], &one);
    keep(&nodes[1], &two);
    for keeper in [&one, &two] {
        let got = wait(&mut keeper.status(), |now| now.expires_at.is_some()).await;
        assert_eq!((got.failures, got.last_failure), (0, None));
        assert!(authority.issued().contains(&shown(keeper).await));
    }
    if names[0] == names[1] {
        assert_eq!(shown(&one).await, shown(&two).await);
    }
    let orders = authority.orders();
    // Renewal: the other node reads the new certificate at its next poll.
    let first = one.status().borrow().expires_at;
    nodes[0].world.clock.advance(61 * DAY);
    wait(&mut one.status(), |now| now.expires_at > first).await;
    if names[0] == names[1] {
        wait(&mut two.status(), |now| now.expires_at > first).await;
        assert_eq!(shown(&one).await, shown(&two).await);
        assert_eq!(authority.orders(), orders + 1);
    }
    two_nodes::end(nodes).await;
    orders
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_the_same_names_share_one_certificate() {
    let server = Server::start(&[]);
    for way in [ChallengeMethod::Http, ChallengeMethod::TlsAlpn] {
        assert_eq!(of_two_nodes(&server, way, [NAMES; 2]).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_share_a_name_order_one_after_the_other() {
    let server = Server::start(&[]);
    for way in [ChallengeMethod::Http, ChallengeMethod::TlsAlpn] {
        assert_eq!(of_two_nodes(&server, way, [NAMES, ["two.postrider.example", NAMES[1]]]).await, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_order_is_reported_and_retried() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let keeper = keeper(&world, &authority, ChallengeMethod::Http).await;
    let http = world.doors().listen_challenges(&keeper, anywhere()).await.unwrap();
    keep(&world, &keeper);
    let mut standing = keeper.status();
    let failed = wait(&mut standing, |now| now.failures == 1).await;
    let failure = failed.last_failure.unwrap();
    assert!(failure.contains("was not validated by http-01: no valid response; the name must"), "{failure}");
    assert!(!shown(&keeper).await.is_empty(), "the self-signed certificate is still served");
    world.world.clock.advance(Duration::from_secs(61));
    wait(&mut standing, |now| now.failures == 2).await;
    authority.lead(Some(http), None);
    world.world.clock.advance(Duration::from_secs(15 * 60 + 1));
    let well = wait(&mut standing, |now| now.failures == 0).await;
    assert_eq!((well.last_failure, well.tries_again_at), (None, None));
    assert_eq!(shown(&keeper).await, authority.issued()[0]);
    assert_eq!(authority.orders(), 3);
    world.end().await;
}
