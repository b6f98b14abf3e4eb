//! Checks of SPF: several records, limits, and merging.

use std::fmt::Write as _;

use model::domain_setup::RecordPurpose::Spf;
use model::domain_setup::RecordStatus::{Conflict, Mismatch, Missing, Pending, Verified};

use crate::world::{check, check_without_own_records, table};

fn record(text: &str) -> String {
    format!("example.com TXT \"{text}\"\n")
}

/// `count` includes of hosts that have a record.
fn includes(count: usize) -> (String, String) {
    let (mut words, mut zone) = (String::new(), String::new());
    for n in 0..count {
        write!(words, "include:i{n}.example.net ").unwrap();
        writeln!(zone, "i{n}.example.net TXT \"v=spf1 ip4:192.0.2.{n} -all\"").unwrap();
    }
    (words, zone)
}

#[tokio::test]
async fn records_with_our_include_are_verified() {
    let own = record("v=spf1 include:spf.service.example ~all");
    let among = format!("{own}example.com TXT \"some-site-verification=1\"\n");
    let split = "example.com TXT \"v=spf1 include:spf.ser\" \"vice.example ~all\"";
    let through = record("v=spf1 include:all.example.com -all")
        + "all.example.com TXT \"v=spf1 mx include:SPF.service.example. -all\"\nall.example.com MX 1 a.example.";
    let redirect =
        record("v=spf1 redirect=all.example.com") + "all.example.com TXT \"v=spf1 include:spf.service.example -all\"";
    let mut many = record("v=spf1 a mx include:spf.service.example ip4:192.0.2.1 include:other.example -all");
    many += "example.com A 192.0.2.7\nexample.com MX 10 mx.example.com.";
    for zone in [own.as_str(), &among, split, &through, &redirect, &many] {
        table(Spf, &[(zone, Verified, "")]).await;
    }
    let finding = check(Spf, &among).await;
    assert_eq!(finding.found, ["v=spf1 include:spf.service.example ~all"]);
}

#[tokio::test]
async fn a_merged_record_is_suggested() {
    for (existing, merged) in [
        ("v=spf1 include:other.example -all", "v=spf1 include:other.example include:spf.service.example -all"),
        ("v=spf1 redirect=other.example", "v=spf1 include:spf.service.example redirect=other.example"),
        ("v=spf1 ip4:192.0.2.1", "v=spf1 ip4:192.0.2.1 include:spf.service.example"),
    ] {
        let finding = check(Spf, &record(existing)).await;
        assert_eq!((finding.status, finding.merged.as_deref()), (Mismatch, Some(merged)), "{finding:#?}");
        let error = finding.error.unwrap();
        assert!(error.contains("does not authorize our mail: include:spf.service.example is missing"), "{error}");
        assert!(error.contains(merged), "{error}");
        // The proposed record is valid.
        table(Spf, &[(&record(merged), Verified, if existing.contains("ip4") { "no \"all\"" } else { "" })]).await;
    }
    let sign = check(Spf, &record("v=spf1 ~include:spf.service.example -all")).await;
    assert!(sign.error.unwrap().contains("with a qualifier"));
    let behind = check(Spf, &record("v=spf1 -all include:spf.service.example")).await;
    assert!(behind.error.unwrap().contains("after its \"all\""));
    assert_eq!(behind.merged.as_deref(), Some("v=spf1 include:spf.service.example -all"));
}

#[tokio::test]
async fn two_records_are_explained() {
    let two = record("v=spf1 include:other.example -all") + &record("v=spf1 include:spf.service.example ~all");
    let finding = check(Spf, &two).await;
    assert_eq!(finding.status, Mismatch);
    let error = finding.error.unwrap();
    for words in
        ["has 2 SPF records", "\"v=spf1 include:other.example -all\"", "\"v=spf1 include:spf.service.example ~all\""]
    {
        assert!(error.contains(words), "{error}");
    }
    let merged = finding.merged.unwrap();
    assert!(merged.ends_with(" ~all") && merged.contains("include:other.example"), "{merged}");
    table(Spf, &[(&record(&merged), Verified, "")]).await;
}

#[tokio::test]
async fn too_many_lookups_are_explained() {
    let (ten, hosts) = includes(9);
    let at_the_limit = record(&format!("v=spf1 {ten}include:spf.service.example -all")) + &hosts;
    table(Spf, &[(&at_the_limit, Verified, "")]).await;

    let (ten, hosts) = includes(10);
    let eleven = record(&format!("v=spf1 {ten}include:spf.service.example -all")) + &hosts;
    table(Spf, &[(&eleven, Mismatch, "needs 11 DNS lookups, but at most 10 are allowed")]).await;

    // The service's include would be the eleventh lookup, so no merged record is proposed.
    let finding = check(Spf, &(record(&format!("v=spf1 {ten}-all")) + &hosts)).await;
    assert_eq!((finding.status, finding.merged), (Mismatch, None));
    let error = finding.error.unwrap();
    assert!(error.contains("would fail as well: it needs 11 DNS lookups"), "{error}");

    // Lookups of included records count too.
    let nested = record("v=spf1 include:spf.service.example include:n.example -all")
        + "n.example TXT \"v=spf1 a mx ptr exists:%{i}.x.example a:a.example mx:a.example include:m.example -all\"
        m.example TXT \"v=spf1 a mx -all\"
        n.example A 192.0.2.1
        m.example A 192.0.2.1
        a.example A 192.0.2.1
        n.example MX 1 a.example.
        m.example MX 1 a.example.
        a.example MX 1 a.example.";
    table(Spf, &[(&nested, Mismatch, "needs 11 DNS lookups")]).await;
}

/// A missing record of the service is not the customer's mistake, and does not hide one of theirs.
#[tokio::test]
async fn a_missing_record_at_our_include_is_tolerated_or_explained() {
    let (ten, hosts) = includes(10);
    let full = check_without_own_records(Spf, &(record(&format!("v=spf1 {ten}-all")) + &hosts)).await;
    assert_eq!((full.status, full.merged), (Mismatch, None));
    let error = full.error.unwrap();
    assert!(error.contains("it needs 11 DNS lookups"), "{error}");
    assert!(error.ends_with("First remove what you no longer use."), "{error}");
    let plain = check_without_own_records(Spf, &record("v=spf1 ip4:192.0.2.1 a:x.example mx:y.example -all")).await;
    assert_eq!(plain.status, Mismatch);
    assert!(plain.merged.is_some_and(|merged| merged.contains("include:spf.service.example")));
    let published = check_without_own_records(Spf, &record("v=spf1 include:spf.service.example -all")).await;
    assert_eq!(published.status, Mismatch);
    let error = published.error.unwrap();
    assert!(error.contains("spf.service.example, which has no SPF record. This is our mistake"), "{error}");
}

#[tokio::test]
async fn include_loops_are_explained() {
    let own = "v=spf1 include:spf.service.example";
    let itself = record(&format!("{own} include:Example.com. -all"));
    let back = record(&format!("{own} include:c.example -all")) + "c.example TXT \"v=spf1 redirect=example.com\"";
    let other = record(&format!("{own} include:c.example -all"))
        + "c.example TXT \"v=spf1 include:d.example -all\"\nd.example TXT \"v=spf1 include:c.example -all\"";
    table(
        Spf,
        &[
            (&itself, Mismatch, "it includes itself, so it never ends"),
            (&back, Mismatch, "it includes itself, so it never ends"),
            (&other, Mismatch, "it includes c.example, whose SPF record includes itself"),
        ],
    )
    .await;
}

#[tokio::test]
async fn names_without_records_are_explained() {
    let two = record("v=spf1 include:spf.service.example a:x.example mx:y.example -all");
    let three = record("v=spf1 include:spf.service.example a:x.example mx:y.example a:z.example -all");
    table(
        Spf,
        &[
            (&two, Verified, ""),
            (&three, Mismatch, "3 of its names have no records (x.example, y.example and z.example)"),
        ],
    )
    .await;
    for (include, words) in [
        ("gone.example", "it includes gone.example, which has no SPF record"),
        ("double.example", "it includes double.example, which has several SPF records"),
        ("wrong.example", "it includes wrong.example, whose SPF record is invalid: \"ip4:no\" is not an IPv4"),
    ] {
        let zone = record(&format!("v=spf1 include:spf.service.example include:{include} -all"))
            + "double.example TXT \"v=spf1 -all\"
            double.example TXT \"v=spf1 ~all\"
            wrong.example TXT \"v=spf1 ip4:no -all\"";
        table(Spf, &[(&zone, Mismatch, words)]).await;
    }
}

#[tokio::test]
async fn syntax_errors_are_explained() {
    for (text, words) in [
        ("v=spf1 include:spf.service.example ip4:192.0.2.300 -all", "\"ip4:192.0.2.300\" is not an IPv4 address"),
        ("v=spf1 include:spf.service.example, -all", "separated by spaces"),
        ("v=spf1 include:spf.service.example v=spf1 -all", "two records were joined"),
        ("v=spf1include:spf.service.example -all", "does not begin with \\\"v=spf1\\\" and a space"),
        ("v=spf1; include:spf.service.example -all", "does not begin with"),
        ("\\\"v=spf1 include:spf.service.example -all\\\"", "was quoted twice"),
    ] {
        table(Spf, &[(&record(text), Mismatch, &words.replace("\\\"", "\""))]).await;
    }
}

#[tokio::test]
async fn risky_records_are_verified_with_a_note() {
    for (text, words) in [
        ("v=spf1 include:spf.service.example +all", "\"+all\" lets anyone send as your domain"),
        ("v=spf1 include:spf.service.example all", "\"+all\" lets anyone"),
        ("v=spf1 include:spf.service.example ?all", "\"?all\" makes no statement about other senders"),
        ("v=spf1 include:spf.service.example", "it has no \"all\""),
    ] {
        table(Spf, &[(&record(text), Verified, words)]).await;
    }
    let unanswered = record("v=spf1 include:spf.service.example include:dead.example -all") + "$SERVFAIL dead.example";
    let unknown = record("v=spf1 include:dead.example -all") + "$SERVFAIL dead.example";
    table(
        Spf,
        &[
            (&unanswered, Verified, "dead.example, which it names, could not be looked up"),
            (&unknown, Pending, "includes dead.example, which could not be looked up"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_missing_record_is_explained() {
    table(
        Spf,
        &[
            (
                "example.com TXT \"v=spf1 -include:spf.service.example include:spf.service.example -all\"",
                Mismatch,
                "with a qualifier that does not authorize our mail",
            ),
            ("example.com TXT \"hello\"", Missing, "None of the TXT records at example.com is an SPF record."),
            (
                "$SPF99 example.com \"v=spf1 include:spf.service.example -all\"",
                Missing,
                "with the type SPF (99), which receivers no longer query",
            ),
            (
                "example.com.example.com TXT \"v=spf1 include:spf.service.example -all\"",
                Missing,
                "as its name, type \"@\"",
            ),
            ("example.com CNAME shop.example.", Conflict, "itself is a CNAME to shop.example"),
            (
                "example.com CNAME shop.example.\nshop.example TXT \"v=spf1 include:spf.service.example ~all\"",
                Verified,
                "",
            ),
        ],
    )
    .await;
}
