//! Dynamic updates with TSIG against a real name server (Knot DNS), whose answers are checked.

use dns::resolver::Resolver;
use provider::{
    ApplyError, ChangeAction, MergePolicy, Provider, ProviderCredentials, PublishReport, PublishRequest, Publisher,
    RecordChangeOutcome, ServerError, UpstreamFault,
};
use serde_json::json;

use super::domain::{DOMAIN, NOW, name, resolver, wanted, wanted_of};
use super::knot::{KEY, Knot, NARROW_KEY};
use super::zone::NameServer;

const MERGE: MergePolicy = MergePolicy { spf: true, mx: false };

fn credentials(server: &str, key_name: &str, secret: &str) -> ProviderCredentials {
    let algorithm = if key_name == "narrow-key" { "hmac-sha512" } else { "hmac-sha256" };
    let object = json!({"server": server, "key_name": key_name, "algorithm": algorithm, "secret": secret});
    ProviderCredentials::parse(Provider::Rfc2136, &object).unwrap()
}

fn full(knot: &Knot) -> ProviderCredentials {
    credentials(&knot.address.to_string(), "all-key", KEY)
}

async fn apply(
    knot: &Knot,
    credentials: &ProviderCredentials,
    merge: MergePolicy,
    dry_run: bool,
) -> Result<PublishReport, ApplyError> {
    let publisher = Publisher::new(resolver(knot.address), true);
    let request = PublishRequest { domain: &name(DOMAIN), zone: None, records: &wanted(), merge, dry_run, now: NOW };
    publisher.apply(credentials, &request).await
}

fn outcomes(report: &PublishReport) -> Vec<(ChangeAction, RecordChangeOutcome)> {
    report.changes.iter().map(|step| (step.change.action, step.outcome)).collect()
}

async fn texts(resolver: &Resolver, at: &str) -> Vec<String> {
    let mut texts = resolver.txt(&name(at)).await.unwrap().data;
    texts.sort();
    texts
}

/// The apex has an SPF record that is split into strings differently, and another text.
const APEX: &str = "@ TXT \"v=spf1 mx\" \" ip4:192.0.2.7 -all\"\n@ TXT \"google-site-verification=xyz\"\n";

#[tokio::test]
async fn all_records_are_published_next_to_existing_ones() {
    let Some(knot) = Knot::start(DOMAIN, APEX) else { return };
    let credentials = full(&knot);
    let resolver_of_zone = resolver(knot.address);

    let dry = apply(&knot, &credentials, MERGE, true).await.unwrap();
    assert!(!dry.applied && dry.failure.is_none() && !dry.has_conflict());
    assert!(dry.changes.iter().all(|step| step.outcome == RecordChangeOutcome::NotDone));
    assert_eq!(texts(&resolver_of_zone, "_dmarc.shop.example").await, Vec::<String>::new());

    let report = apply(&knot, &credentials, MERGE, false).await.unwrap();
    assert_eq!(report.failure, None);
    assert!(report.applied);
    let create = (ChangeAction::Create, RecordChangeOutcome::Done);
    assert_eq!(
        outcomes(&report),
        [create, create, create, (ChangeAction::Update, RecordChangeOutcome::Done), create, create]
    );
    let merged = "v=spf1 mx ip4:192.0.2.7 include:spf.post.example -all";
    assert_eq!(texts(&resolver_of_zone, DOMAIN).await, ["google-site-verification=xyz", merged]);
    for record in wanted().iter().filter(|record| record.name.starts_with('_') || record.name.starts_with("pr1")) {
        assert_eq!(texts(&resolver_of_zone, &record.name).await, [record.value.as_str()]);
    }
    let mail = resolver_of_zone.mx(&name(DOMAIN)).await.unwrap().data;
    assert!(format!("{mail:?}").contains("in.post.example"), "{mail:?}");

    let again = apply(&knot, &credentials, MERGE, false).await.unwrap();
    assert!(again.applied);
    assert!(outcomes(&again).iter().all(|outcome| *outcome == (ChangeAction::Skip, RecordChangeOutcome::Unchanged)));
}

#[tokio::test]
async fn a_domain_is_found_in_its_parent_zone() {
    let Some(knot) = Knot::start(DOMAIN, "") else { return };
    let publisher = Publisher::new(resolver(knot.address), true);
    let domain = name("news.mail.shop.example");
    let wanted = wanted_of(domain.as_str());
    let request =
        PublishRequest { domain: &domain, zone: None, records: &wanted, merge: MERGE, dry_run: false, now: NOW };
    let report = publisher.apply(&full(&knot), &request).await.unwrap();
    assert!(report.applied, "{report:?}");
    let resolver_of_zone = resolver(knot.address);
    assert_eq!(texts(&resolver_of_zone, "news.mail.shop.example").await, ["v=spf1 include:spf.post.example ~all"]);

    let foreign = name("other.example");
    let wanted = wanted_of(foreign.as_str());
    let request =
        PublishRequest { domain: &foreign, zone: None, records: &wanted, merge: MERGE, dry_run: false, now: NOW };
    let Err(ApplyError::Upstream(error)) = publisher.apply(&full(&knot), &request).await else { panic!() };
    assert_eq!(error.fault, UpstreamFault::NoZone, "{error}");
    // A zone that does not contain the domain is refused.
    let request = PublishRequest { zone: Some(&name(DOMAIN)), ..request };
    let Err(ApplyError::Upstream(error)) = publisher.apply(&full(&knot), &request).await else { panic!() };
    assert_eq!(error.fault, UpstreamFault::NoZone);
}

#[tokio::test]
async fn a_conflict_changes_nothing() {
    let Some(knot) = Knot::start(DOMAIN, "@ MX 10 mx.other.example.\nrp A 192.0.2.1\n@ TXT \"v=spf1 -all\"") else {
        return;
    };
    let report = apply(&knot, &full(&knot), MergePolicy::default(), false).await.unwrap();
    assert!(report.has_conflict() && !report.applied && report.failure.is_none());
    let (create, conflict) =
        ((ChangeAction::Create, RecordChangeOutcome::NotDone), (ChangeAction::Conflict, RecordChangeOutcome::NotDone));
    assert_eq!(outcomes(&report), [create, create, conflict, conflict, create, conflict]);
    assert_eq!(texts(&resolver(knot.address), "_postrider.shop.example").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_failure_is_reported_and_ends_the_changes() {
    let Some(knot) = Knot::start(DOMAIN, APEX) else { return };
    let narrow = credentials(&knot.address.to_string(), "narrow-key", NARROW_KEY);
    let report = apply(&knot, &narrow, MERGE, false).await.unwrap();
    let done = (ChangeAction::Create, RecordChangeOutcome::Done);
    assert_eq!(
        outcomes(&report),
        [
            done,
            done,
            (ChangeAction::Create, RecordChangeOutcome::Failed),
            (ChangeAction::Update, RecordChangeOutcome::NotDone),
            (ChangeAction::Create, RecordChangeOutcome::NotDone),
            (ChangeAction::Create, RecordChangeOutcome::NotDone),
        ]
    );
    assert!(!report.applied);
    let failure = report.failure.unwrap();
    assert_eq!(failure.fault, UpstreamFault::Credentials, "{failure}");
    // With another key, the publication continues where it ended.
    let report = apply(&knot, &full(&knot), MERGE, false).await.unwrap();
    assert!(report.applied);
    assert_eq!(outcomes(&report)[..2], [(ChangeAction::Skip, RecordChangeOutcome::Unchanged); 2]);
}

#[tokio::test]
async fn a_wrong_key_is_reported_without_its_value() {
    let Some(knot) = Knot::start(DOMAIN, "") else { return };
    for (key_name, secret) in [("all-key", NARROW_KEY), ("no-such-key", KEY)] {
        let wrong = credentials(&knot.address.to_string(), key_name, secret);
        let report = apply(&knot, &wrong, MERGE, false).await.unwrap();
        assert_eq!(report.changes[0].outcome, RecordChangeOutcome::Failed);
        let failure = report.failure.unwrap();
        assert_eq!(failure.fault, UpstreamFault::Credentials, "{failure}");
        assert!(!failure.to_string().contains(secret));
        // A dry run fails too.
        let Err(ApplyError::Upstream(dry)) = apply(&knot, &wrong, MERGE, true).await else { panic!() };
        assert_eq!(dry, failure);
    }
    let serial = resolver(knot.address).find_zone(&name(DOMAIN)).await.unwrap();
    assert_eq!(serial, Some(name(DOMAIN)));
    assert!(apply(&knot, &full(&knot), MERGE, true).await.is_ok());
}

#[tokio::test]
async fn servers_at_private_addresses_are_not_contacted() {
    let names = NameServer::start("ns.shop.example A 127.0.0.1\nns.shop.example AAAA ::1\nmeta.example A 169.254.169.254\nmixed.example AAAA ::ffff:10.0.0.1").await;
    let publisher = Publisher::new(resolver(names.address), false);
    let wanted = wanted();
    let domain = name(DOMAIN);
    let request =
        PublishRequest { domain: &domain, zone: None, records: &wanted, merge: MERGE, dry_run: true, now: NOW };
    let private = ["ns.shop.example:5353", "meta.example", "mixed.example", "127.0.0.1:5353", "10.1.2.3", "[::1]:53"];
    for server in private {
        let error = publisher.apply(&credentials(server, "k", KEY), &request).await.unwrap_err();
        assert_eq!(error, ApplyError::Server(ServerError::Private), "{server}");
    }
    let error = publisher.apply(&credentials("nowhere.example", "k", KEY), &request).await.unwrap_err();
    assert!(matches!(error, ApplyError::Server(ServerError::NoAddress(_))), "{error:?}");
}
