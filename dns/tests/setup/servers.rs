//! The servers that a check queries, and its results if servers fail.

use std::time::Duration;

use dns::domain_check::{DomainCheckSettings, DomainChecker};
use model::domain_setup::RecordPurpose::{Dkim, Ownership, ReturnPath, Spf};
use model::domain_setup::RecordStatus::{Mismatch, Missing, Pending, Verified};

use crate::world::{DELEGATION, OWN_RECORDS, TOKEN, check, check_all, check_one, record, settings, table};
use crate::zone::NameServer;

/// The domain's records on its authoritative server.
fn published() -> String {
    format!(
        "_service.example.com TXT \"{TOKEN}\"
        rp.example.com CNAME rp.service.example.
        example.com TXT \"v=spf1 include:spf.service.example ~all\"\n"
    )
}

#[tokio::test]
async fn authoritative_servers_are_preferred_to_the_cache() {
    let resolver =
        NameServer::start(&format!("{DELEGATION}{OWN_RECORDS}_service.example.com TXT \"of yesterday\"\n")).await;
    let authority = NameServer::start("").await;
    let checker = DomainChecker::new(settings(&resolver, &authority)).unwrap();
    let records = [record(Ownership), record(ReturnPath), record(Spf)];
    for finding in check_all(&checker, &records).await {
        assert_eq!(finding.status, Missing, "{finding:#?}");
    }
    // Published a moment ago: the previous answer must not be cached.
    authority.set(&published());
    for finding in check_all(&checker, &records).await {
        assert_eq!((finding.status, finding.error), (Verified, None));
    }
    authority.set("");
    for finding in check_all(&checker, &records).await {
        assert_eq!(finding.status, Missing, "{finding:#?}");
    }
}

#[tokio::test]
async fn configured_servers_are_queried_without_ns_records() {
    let resolver = NameServer::start(&format!("{OWN_RECORDS}{}", published())).await;
    let idle = NameServer::start("").await;
    let checker = DomainChecker::new(settings(&resolver, &idle)).unwrap();
    let records = [record(Ownership), record(ReturnPath), record(Spf)];
    for finding in check_all(&checker, &records).await {
        assert_eq!((finding.status, finding.error), (Verified, None));
    }
    assert_eq!(idle.queries(), 0);
}

#[tokio::test]
async fn private_name_servers_are_not_queried() {
    let resolver = NameServer::start(&format!("{DELEGATION}{OWN_RECORDS}{}", published())).await;
    let inside = NameServer::start("_service.example.com TXT \"secret\"\n").await;
    let settings = DomainCheckSettings { allow_private: false, ..settings(&resolver, &inside) };
    let finding = check_one(&DomainChecker::new(settings).unwrap(), record(Ownership)).await;
    assert_eq!((finding.status, inside.queries()), (Verified, 0));
}

#[tokio::test]
async fn one_lame_server_of_several_is_tolerated() {
    // No server listens at the first address; the second one does not serve the zone.
    let delegation = "example.com NS a.provider.example.
        example.com NS b.provider.example.
        example.com NS c.provider.example.
        a.provider.example A 127.0.0.9
        b.provider.example A 127.0.0.1
        c.provider.example A 127.0.0.2";
    let resolver = NameServer::start(delegation).await;
    let lame = NameServer::start("$REFUSED _service.example.com\n").await;
    let _good = lame.beside("127.0.0.2", &published()).await;
    let checker = DomainChecker::new(settings(&resolver, &lame)).unwrap();
    assert_eq!(check_one(&checker, record(Ownership)).await.status, Verified);
}

#[tokio::test]
async fn delegated_subzones_are_followed() {
    let delegation = format!("{DELEGATION}keys.example A 127.0.0.2\n");
    let resolver = NameServer::start(&delegation).await;
    let authority = NameServer::start("$DELEGATED _domainkey.example.com keys.example\n").await;
    let mut key = record(Dkim);
    key.value = "v=DKIM1; p=AAAA".to_owned();
    let _keys = authority.beside("127.0.0.2", "s1._domainkey.example.com TXT \"p=AAAA\"\n").await;
    let checker = DomainChecker::new(settings(&resolver, &authority)).unwrap();
    let finding = check_one(&checker, key.clone()).await;
    assert_eq!((finding.status, finding.error), (Verified, None));

    // A server that refers to itself: following it ends, and the configured server is queried instead.
    authority.set("$DELEGATED _domainkey.example.com ns1.provider.example\n");
    assert_eq!(check_one(&checker, key).await.status, Missing);
}

#[tokio::test]
async fn the_configured_server_is_queried_if_none_serves_the_zone() {
    let server = NameServer::start(DELEGATION).await;
    let idle = NameServer::start("").await;
    let settings = settings(&server, &idle);
    drop(idle);
    // The configured server is used instead; here it has the name.
    server.set(&format!("{DELEGATION}{}", published()));
    let checker = DomainChecker::new(settings).unwrap();
    assert_eq!(check_one(&checker, record(Ownership)).await.status, Verified);
}

#[tokio::test]
async fn a_subdomain_in_its_parents_zone_is_checked() {
    let mut owned = record(Ownership);
    owned.name = "_service.mail.example.com".to_owned();
    let domain = "mail.example.com".parse().unwrap();
    for (misplaced, entry) in
        [("_service.mail.example.com.example.com", "_service.mail"), ("_service.example.com", "_service.mail")]
    {
        let zone = format!("{DELEGATION}{misplaced} TXT \"{TOKEN}\"\n");
        let server = NameServer::start(&zone).await;
        let checker = DomainChecker::new(settings(&server, &server)).unwrap();
        let found = checker.check(&domain, &[owned.clone()], jiff::Timestamp::UNIX_EPOCH).await;
        let error = found[0].error.clone().unwrap();
        assert_eq!(found[0].status, Missing);
        assert!(error.contains(&format!("published at {misplaced} instead of")), "{error}");
        assert!(error.ends_with(&format!("type \"{entry}\".")), "{error}");
    }
}

#[tokio::test]
async fn failing_refusing_and_bogus_servers_are_explained() {
    table(
        Ownership,
        &[
            ("$SERVFAIL _service.example.com", Pending, "of example.com fail (SERVFAIL) when queried for"),
            ("$REFUSED _service.example.com", Pending, "refuse to answer for _service.example.com (REFUSED)"),
        ],
    )
    .await;
    // The zone's server answers; validating resolvers do not.
    let forged = format!("{DELEGATION}$BOGUS _service.example.com\n{}", published());
    let resolver = NameServer::start(&forged).await;
    let authority = NameServer::start(&published()).await;
    let finding = check_one(&DomainChecker::new(settings(&resolver, &authority)).unwrap(), record(Ownership)).await;
    assert_eq!(finding.status, Pending);
    assert!(finding.error.unwrap().contains("The DNSSEC signatures of example.com are invalid (bogus)"));
    // Without access to the zone's own server the result is the same.
    let finding = check_with_resolver("$BOGUS _service.example.com\n").await;
    assert!(finding.error.unwrap().contains("(bogus)"));
    let finding = check_with_resolver("$SERVFAIL _service.example.com\n").await;
    assert!(finding.error.unwrap().contains("(SERVFAIL)"));
}

async fn check_with_resolver(zone: &str) -> model::domain_setup::RecordFinding {
    let server = NameServer::start(zone).await;
    check_one(&DomainChecker::new(settings(&server, &server)).unwrap(), record(Ownership)).await
}

#[tokio::test]
async fn late_answers_time_out() {
    let zone = format!("{DELEGATION}{OWN_RECORDS}{}$TIMEOUT _service.example.com\n", published());
    let server = NameServer::start(&zone).await;
    // A server that takes longer than the timeout.
    let settings = DomainCheckSettings {
        try_timeout: Duration::from_millis(200),
        next_after: Duration::from_millis(50),
        deadline: Duration::from_millis(800),
        ..settings(&server, &server)
    };
    let checker = DomainChecker::new(settings).unwrap();
    let finding = check_one(&checker, record(Ownership)).await;
    assert_eq!(finding.status, Pending);
    let error = finding.error.unwrap();
    assert!(error.contains("The name servers of example.com did not answer in time"), "{error}");
}

#[tokio::test]
async fn alias_loops_are_explained() {
    let zone = "_service.example.com CNAME a.example.com.\na.example.com CNAME b.example.net.\n\
        b.example.net CNAME _service.example.com.";
    let finding = check(Ownership, zone).await;
    assert_eq!(finding.status, Mismatch);
    assert!(finding.error.unwrap().contains("is part of a loop"));
}

#[tokio::test]
async fn an_unregistered_domain_is_explained() {
    let delegation = "com NS ns1.provider.example.\nns1.provider.example A 127.0.0.1\n";
    let finding = check_with_resolver(delegation).await;
    assert_eq!(finding.status, Missing);
    assert!(finding.error.unwrap().contains("The domain example.com does not exist in the DNS: it is not registered"));
}

#[tokio::test]
async fn hundreds_of_concurrent_checks_succeed() {
    let server = NameServer::start(&format!("{DELEGATION}{OWN_RECORDS}{}", published())).await;
    let checker = DomainChecker::new(settings(&server, &server)).unwrap();
    let records = [record(Ownership), record(ReturnPath), record(Spf)];
    let checks = (0..300).map(|_| check_all(&checker, &records));
    for findings in futures_util::future::join_all(checks).await {
        assert!(findings.iter().all(|finding| finding.status == Verified), "{findings:#?}");
    }
}

/// If other checks use up the rate limit of a DNS provider's servers, the configured server is queried at once.
#[tokio::test]
async fn rate_limited_name_servers_are_replaced_by_the_resolver() {
    let delegation = "example.com NS ns1.provider.example.\nns1.provider.example A 127.0.0.2\n";
    let resolver = NameServer::start(&format!("{delegation}{}", published())).await;
    let authority = resolver.beside("127.0.0.2", "_service.example.com TXT \"of yesterday\"\n").await;
    let checker = DomainChecker::new(settings(&resolver, &authority)).unwrap();
    let mut checks = 0;
    while check_one(&checker, record(Ownership)).await.status != Verified {
        checks += 1;
        assert!(checks < 5_000, "the rate limit of the zone's servers is never reached");
    }
    assert!(authority.queries() >= 400, "{}", authority.queries());
}
