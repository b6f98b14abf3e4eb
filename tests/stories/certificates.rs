//! Certificates come by ACME, are renewed in time, and survive whatever the authority does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::RetryPolicy;
use postrider::acme::challenge::Way;
use postrider::acme::{Keeper, Standing, Wish};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::world::authority::Authority;
use crate::world::{PATIENCE, TestWorld, tls};

const NAMES: [&str; 2] = ["out.postrider.example", "api.postrider.example"];
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn keeper(world: &TestWorld, authority: &Authority, way: Way) -> Arc<Keeper> {
    let wish = Wish {
        directory: authority.directory(),
        contact: Some("mailto:ops@postrider.example".to_owned()),
        names: NAMES.map(str::to_owned).to_vec(),
        ways: vec![way],
        roots: None,
        servers: Vec::new(),
        patience: RetryPolicy::new().initial_delay(Duration::from_millis(1)),
    };
    Keeper::open(wish, &world.world).await.unwrap()
}

fn keep(world: &TestWorld, keeper: &Arc<Keeper>) {
    world.doors().run(Arc::clone(keeper).keep(world.doors().stop.clone()));
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn wait(standing: &mut watch::Receiver<Standing>, wanted: impl Fn(&Standing) -> bool) -> Standing {
    let waited = tokio::time::timeout(PATIENCE, standing.wait_for(|now| wanted(now))).await;
    match waited.map(|now| now.unwrap().clone()) {
        Ok(now) => now,
        Err(_) => panic!("it did not come to that: {:#?}", *standing.borrow()),
    }
}

/// The certificate that a mail client sees.
async fn shown(keeper: &Keeper) -> Vec<u8> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let acceptor = TlsAcceptor::from(Arc::clone(&keeper.certificates().smtp().borrow()));
    let (seen, accepted) = tokio::join!(tls::shown(client, NAMES[0], &[]), acceptor.accept(server));
    accepted.unwrap();
    seen.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_comes_is_renewed_and_is_there_after_a_restart() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let first = keeper(&world, &authority, Way::Http).await;
    let http = world.doors().challenges(&first, anywhere()).await.unwrap();
    authority.lead(Some(http), None);
    assert!(authority.issued().is_empty() && !shown(&first).await.is_empty(), "a self-signed one");
    keep(&world, &first);
    let mut standing = first.standing();
    let got = wait(&mut standing, |now| now.expires_at.is_some()).await;
    assert_eq!(shown(&first).await, authority.issued()[0]);
    assert_eq!((got.failures, got.last_failure), (0, None));
    let names = String::from_utf8_lossy(&authority.issued()[0]).into_owned();
    assert!(NAMES.iter().all(|name| names.contains(name)), "{names}");
    // Two thirds of ninety days, from midnight.
    world.world.clock.advance(61 * DAY);
    let renewed = wait(&mut standing, |now| now.expires_at > got.expires_at).await;
    assert!(renewed.renews_at.unwrap() > world.world.clock.now());
    assert_eq!(shown(&first).await, authority.issued()[1]);

    let world = world.restart("").await;
    world.world.clock.advance(61 * DAY);
    let second = keeper(&world, &authority, Way::Http).await;
    assert_eq!(shown(&second).await, authority.issued()[1], "shown from the first moment");
    keep(&world, &second);
    assert_eq!(authority.orders(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_proved_on_the_port_of_the_api() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let keeper = keeper(&world, &authority, Way::TlsAlpn).await;
    let tls = Some(keeper.certificates().http());
    let api = world.doors().api(&world.world, anywhere(), &world.config(), tls).await.unwrap();
    authority.lead(None, Some(api));
    keep(&world, &keeper);
    wait(&mut keeper.standing(), |now| now.expires_at.is_some()).await;
    // Who comes for HTTP is shown the certificate; who comes for a proof that is over, nothing.
    let connect = || async { tokio::net::TcpStream::connect(api).await.unwrap() };
    assert_eq!(tls::shown(connect().await, NAMES[1], &[b"h2"]).await.unwrap(), authority.issued()[0]);
    assert_eq!(tls::shown(connect().await, NAMES[1], &[b"acme-tls/1"]).await, None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_told_and_tried_again() {
    let world = TestWorld::start().await;
    let authority = Authority::start(&world.world.clock).await;
    let keeper = keeper(&world, &authority, Way::Http).await;
    let http = world.doors().challenges(&keeper, anywhere()).await.unwrap();
    keep(&world, &keeper);
    let mut standing = keeper.standing();
    let failed = wait(&mut standing, |now| now.failures == 1).await;
    let told = failed.last_failure.unwrap();
    assert!(told.contains("was not proved by http-01: nobody answered as wanted; the name must"), "{told}");
    assert!(!shown(&keeper).await.is_empty(), "the self-signed one is shown on");
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
