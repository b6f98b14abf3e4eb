//! The resolver against a name server on loopback, with all cases of RFC 5321 5.1.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/world/zone.rs"]
mod zone;

use std::time::Duration;

use dns::mx::{HOSTS_MAX, MailHosts};
use dns::resolver::{ADDRESSES_MAX, LookupError, Resolver, ResolverSettings, parse_server};
use message::address::DomainName;
use zone::NameServer;

fn resolver(server: &NameServer) -> Resolver {
    Resolver::new(&ResolverSettings {
        servers: vec![server.address],
        try_timeout: Duration::from_millis(100),
        retries: 1,
        deadline: Duration::from_secs(2),
        ..ResolverSettings::default()
    })
    .unwrap()
}

fn name(text: &str) -> DomainName {
    text.parse().unwrap()
}

const ZONE: &str = r#"
mx.example            MX 20 b.example.
mx.example            MX 10 A.example.
mx.example            MX 10 c.example.
twice.example         MX 10 a.example.
twice.example         MX 5  a.example.
one.example      7    MX 10 a.example.
null.example          MX 0 .
nullandmore.example   MX 0 .
nullandmore.example   MX 10 a.example.
implicit4.example     A 192.0.2.1
implicit6.example     AAAA 2001:db8::1
implicita.example     CNAME implicit4.example.
nomail.example        TXT "here, but no mail"
alias.example         CNAME far.example.
far.example           CNAME mx.example.
deadalias.example     CNAME nowhere.example.
loop.example          CNAME loop2.example.
loop2.example         CNAME loop.example.
address.example       MX 10 192.0.2.1.
mixed.example         MX 10 192.0.2.1.
mixed.example         MX 20 a.example.
*.wild.example        MX 10 a.example.
there.wild.example    TXT "a name of its own"
below.ent.example     A 192.0.2.9
a.example             A 192.0.2.1
a.example             AAAA 2001:db8::1
half6.example         A 192.0.2.3
half4.example         AAAA 2001:db8::3
txt.example           TXT "v=one" " and two"
txt.example           TXT "second"
1.2.0.192.in-addr.arpa PTR a.example.
$SERVFAIL broken.example
$REFUSED  closed.example
$TIMEOUT  slow.example
$SERVFAIL half6.example AAAA
$TIMEOUT  half4.example A
implicitbroken.example TXT "x"
$SERVFAIL implicitbroken.example A
"#;

fn hosts(list: &[(u16, &str)]) -> MailHosts {
    MailHosts::Mx(list.iter().map(|&(preference, host)| dns::mx::MxHost { preference, host: name(host) }).collect())
}

#[tokio::test]
async fn mx_hosts_are_looked_up() {
    let server = NameServer::start(ZONE).await;
    let resolver = resolver(&server);
    let sorted = hosts(&[(10, "a.example"), (10, "c.example"), (20, "b.example")]);
    let single = hosts(&[(10, "a.example")]);
    for (domain, expected) in [
        ("mx.example", sorted.clone()),
        ("alias.example", sorted),
        ("twice.example", hosts(&[(5, "a.example")])),
        ("one.example", single.clone()),
        ("null.example", MailHosts::NullMx),
        ("nullandmore.example", single.clone()),
        ("implicit4.example", MailHosts::ImplicitMx(name("implicit4.example"))),
        ("implicit6.example", MailHosts::ImplicitMx(name("implicit6.example"))),
        ("implicita.example", MailHosts::ImplicitMx(name("implicita.example"))),
        ("nomail.example", MailHosts::NoMail),
        ("ent.example", MailHosts::NoMail),
        ("deadalias.example", MailHosts::NoSuchDomain),
        ("nowhere.example", MailHosts::NoSuchDomain),
        ("mixed.example", hosts(&[(20, "a.example")])),
        ("deep.down.wild.example", single.clone()),
        ("there.wild.example", MailHosts::NoMail),
    ] {
        let found = resolver.mx(&name(domain)).await;
        assert_eq!(found.map(|answer| answer.data), Ok(expected), "{domain}");
    }
    let ttl = resolver.mx(&name("one.example")).await.unwrap().ttl;
    assert!(ttl > Duration::from_secs(5) && ttl <= Duration::from_secs(7), "{ttl:?}");
    let ttl = resolver.mx(&name("nowhere.example")).await.unwrap().ttl;
    assert!(ttl > Duration::from_secs(50) && ttl <= Duration::from_secs(60), "{ttl:?}");
}

#[tokio::test]
async fn missing_answers_are_temporary_errors() {
    let server = NameServer::start(ZONE).await;
    let resolver = resolver(&server);
    for domain in ["broken.example", "closed.example", "slow.example", "implicitbroken.example"] {
        let found = resolver.mx(&name(domain)).await;
        assert!(matches!(found, Err(LookupError::Temporary { .. })), "{domain}: {found:?}");
    }
    let found = resolver.mx(&name("address.example")).await;
    assert!(matches!(found, Err(LookupError::Malformed { .. })), "{found:?}");
    // A CNAME loop must end, with any result.
    let found = resolver.mx(&name("loop.example")).await;
    assert!(!matches!(found, Ok(ref answer) if matches!(answer.data, MailHosts::Mx(_))), "{found:?}");

    let closed = server.address;
    drop(server);
    let settings =
        ResolverSettings { servers: vec![closed], deadline: Duration::from_millis(300), ..ResolverSettings::default() };
    let found = Resolver::new(&settings).unwrap().mx(&name("mx.example")).await;
    assert!(matches!(found, Err(LookupError::Temporary { .. })), "{found:?}");
}

#[tokio::test]
async fn addresses_of_both_families_are_returned() {
    let server = NameServer::start(ZONE).await;
    let resolver = resolver(&server);
    for (host, expected) in [
        ("a.example", vec!["2001:db8::1", "192.0.2.1"]),
        ("implicit4.example", vec!["192.0.2.1"]),
        ("implicita.example", vec!["192.0.2.1"]),
        ("half6.example", vec!["192.0.2.3"]),
        ("half4.example", vec!["2001:db8::3"]),
        ("nomail.example", vec![]),
        ("nowhere.example", vec![]),
    ] {
        let found = resolver.addresses(&name(host)).await.unwrap();
        let expected: Vec<std::net::IpAddr> = expected.iter().map(|ip| ip.parse().unwrap()).collect();
        assert_eq!(found.data, expected, "{host}");
    }
    for host in ["broken.example", "slow.example", "implicitbroken.example"] {
        assert!(matches!(resolver.addresses(&name(host)).await, Err(LookupError::Temporary { .. })), "{host}");
    }
}

#[tokio::test]
async fn long_answers_are_fetched_by_tcp_and_truncated() {
    use std::fmt::Write as _;
    let mut zone = String::new();
    for n in 0..250 {
        writeln!(zone, "many.example MX {n} a-host-with-a-long-name-{n}.many.example.").unwrap();
        writeln!(zone, "many.example A 192.0.2.{n}").unwrap();
        writeln!(zone, "many.example AAAA 2001:db8::{n:x}").unwrap();
    }
    let server = NameServer::start(&zone).await;
    let resolver = resolver(&server);
    let MailHosts::Mx(found) = resolver.mx(&name("many.example")).await.unwrap().data else { panic!() };
    assert_eq!(found.len(), HOSTS_MAX);
    assert_eq!(found[0].host.as_str(), "a-host-with-a-long-name-0.many.example");
    let found = resolver.addresses(&name("many.example")).await.unwrap().data;
    assert_eq!(found.len(), ADDRESSES_MAX);
    assert_eq!(found.iter().filter(|ip| ip.is_ipv4()).count(), ADDRESSES_MAX / 2);
}

#[tokio::test]
async fn txt_and_ptr_records_are_read() {
    let server = NameServer::start(ZONE).await;
    let resolver = resolver(&server);
    let mut found = resolver.txt(&name("txt.example")).await.unwrap().data;
    found.sort();
    assert_eq!(found, ["second", "v=one and two"]);
    assert!(resolver.txt(&name("nowhere.example")).await.unwrap().data.is_empty());
    assert!(resolver.txt(&name("broken.example")).await.is_err());
    assert_eq!(resolver.ptr("192.0.2.1".parse().unwrap()).await.unwrap().data, [name("a.example")]);
    assert!(resolver.ptr("192.0.2.77".parse().unwrap()).await.unwrap().data.is_empty());
}

#[tokio::test]
async fn answers_and_refusals_are_cached_until_the_cache_is_cleared() {
    let server = NameServer::start("a.example A 192.0.2.1\n").await;
    let resolver = resolver(&server);
    let count = async |host: &str| resolver.addresses(&name(host)).await.unwrap().data.len();
    assert_eq!((count("a.example").await, count("b.example").await), (1, 0));
    let queries = server.queries();
    assert_eq!((count("a.example").await, count("b.example").await), (1, 0));
    assert_eq!(server.queries(), queries);

    server.set("b.example A 192.0.2.1\n");
    assert_eq!((count("a.example").await, count("b.example").await), (1, 0));
    resolver.clear_cache();
    assert_eq!((count("a.example").await, count("b.example").await), (0, 1));
}

#[tokio::test]
async fn one_silent_server_of_two_is_tolerated() {
    let silent = NameServer::start("$TIMEOUT a.example\n").await;
    let good = NameServer::start("a.example A 192.0.2.1\n").await;
    let settings = ResolverSettings { servers: vec![silent.address, good.address], ..ResolverSettings::default() };
    let found = Resolver::new(&settings).unwrap().addresses(&name("a.example")).await.unwrap();
    assert_eq!(found.data.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_concurrent_lookups_succeed() {
    let server = NameServer::start("*.many.example MX 10 a.example.\n*.many.example A 192.0.2.1\n").await;
    // A loaded machine may take longer for all of them than the deadline of one lookup.
    let (try_timeout, deadline) = (Duration::from_secs(30), Duration::from_secs(300));
    let settings =
        ResolverSettings { servers: vec![server.address], try_timeout, deadline, ..ResolverSettings::default() };
    let resolver = Resolver::new(&settings).unwrap();
    let tasks: Vec<_> = (0..3_000)
        .map(|n| {
            let (resolver, domain) = (resolver.clone(), name(&format!("d{n}.many.example")));
            tokio::spawn(async move {
                resolver.addresses(&domain).await?;
                resolver.mx(&domain).await
            })
        })
        .collect();
    for task in tasks {
        assert!(matches!(task.await.unwrap().unwrap().data, MailHosts::Mx(_)));
    }
}

#[test]
fn configured_servers_are_parsed() {
    for (text, expected) in [
        ("127.0.0.1:5300", Some("127.0.0.1:5300")),
        ("192.0.2.53", Some("192.0.2.53:53")),
        ("2001:db8::53", Some("[2001:db8::53]:53")),
        ("[::1]:5300", Some("[::1]:5300")),
        ("dns.example", None),
        ("", None),
    ] {
        assert_eq!(parse_server(text).map(|server| server.to_string()).as_deref(), expected, "{text}");
    }
}
