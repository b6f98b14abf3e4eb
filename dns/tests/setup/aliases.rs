//! Checks of the return path, the tracking host and the MX: CNAME and MX records.

use dns::domain_check::{RecordData, RecordObservation, RecordSet, apply_rules};
use jiff::Timestamp;
use model::domain_setup::RecordPurpose;
use model::domain_setup::RecordStatus::{Conflict, Mismatch, Missing, Verified};

use crate::world::{check, record, table};

#[tokio::test]
async fn an_alias_of_our_host_is_verified() {
    table(
        RecordPurpose::ReturnPath,
        &[
            ("rp.example.com CNAME rp.service.example.", Verified, ""),
            ("rp.example.com CNAME RP.Service.Example.", Verified, ""),
            (
                "rp.example.com CNAME one.example.net.
                one.example.net CNAME two.example.net.
                two.example.net CNAME rp.service.example.",
                Verified,
                "",
            ),
            ("*.example.com CNAME rp.service.example.", Verified, ""),
        ],
    )
    .await;
    let track = "track.example.com CNAME track.service.example.";
    table(RecordPurpose::Tracking, &[(track, Verified, "")]).await;
}

#[tokio::test]
async fn an_alias_of_another_host_is_explained() {
    table(
        RecordPurpose::ReturnPath,
        &[
            ("", Missing, "There is no CNAME record at rp.example.com."),
            ("rp.example.com CNAME other.example.", Mismatch, "points to other.example, not to rp.service"),
            ("rp.example.com CNAME rp.example.com.", Mismatch, "points to itself"),
            (
                "rp.example.com CNAME rp.service.example.example.com.",
                Mismatch,
                "with a trailing dot, \"rp.service.example.\"",
            ),
        ],
    )
    .await;
    // Some servers permit two CNAME records.
    let hosts = ["a.example", "rp.service.example"].map(|host| RecordData::Alias(host.to_owned()));
    let answers = RecordObservation::from_records(Ok(RecordSet { aliases: Vec::new(), data: hosts.into() }));
    let finding = apply_rules("example.com", &record(RecordPurpose::ReturnPath), &answers, Timestamp::UNIX_EPOCH);
    assert_eq!((finding.status, finding.found.len()), (Mismatch, 2));
    assert!(finding.error.unwrap().contains("There are 2 CNAME records at rp.example.com"));
}

#[tokio::test]
async fn records_of_another_type_are_explained() {
    table(
        RecordPurpose::ReturnPath,
        &[
            ("rp.example.com TXT \"rp.service.example.\"", Conflict, "published at rp.example.com as a TXT"),
            ("rp.example.com TXT \"v=spf1 -all\"", Conflict, "of type TXT, but a CNAME is required"),
            ("rp.example.com MX 10 mx.example.com.", Conflict, "of type MX, but"),
            ("rp.example.com A 192.0.2.9", Conflict, "turn off its proxy"),
            (
                "rp.example.com A 192.0.2.9\nrp.example.com AAAA 2001:db8::1\nrp.example.com MX 1 a.example.",
                Conflict,
                "of type A, AAAA and MX",
            ),
        ],
    )
    .await;
    let finding = check(RecordPurpose::ReturnPath, "rp.example.com A 192.0.2.9").await;
    assert_eq!(finding.found, ["A 192.0.2.9"]);
}

#[tokio::test]
async fn a_wildcard_answer_is_explained() {
    table(
        RecordPurpose::ReturnPath,
        &[
            ("*.example.com CNAME shop.example.", Missing, "from a wildcard (*.example.com)"),
            ("*.example.com A 192.0.2.9", Missing, "from a wildcard (*.example.com)"),
            ("*.example.com TXT \"hello\"", Missing, "from a wildcard (*.example.com)"),
            // The name has its own record next to the wildcard.
            (
                "*.example.com CNAME shop.example.\nrp.example.com CNAME blog.example.",
                Mismatch,
                "points to blog.example",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_doubled_zone_name_is_explained() {
    table(
        RecordPurpose::ReturnPath,
        &[(
            "rp.example.com.example.com CNAME rp.service.example.",
            Missing,
            "at rp.example.com.example.com instead of rp.example.com: your provider appends example.com to",
        )],
    )
    .await;
}

#[tokio::test]
async fn mx_records_are_checked() {
    table(
        RecordPurpose::Inbound,
        &[
            ("example.com MX 10 mx.service.example.", Verified, ""),
            ("example.com MX 77 mx.service.example.", Verified, ""),
            ("", Missing, "There is no MX record at example.com. Publish it"),
            ("example.com MX 10 mx.other.example.", Conflict, "is delivered to mx.other.example. Replace"),
            ("example.com MX 0 .", Conflict, "has a null MX record"),
            ("example.com MX 10 192.0.2.1.", Conflict, "is delivered to 192.0.2.1"),
            (
                "example.com MX 10 mx.service.example.\nexample.com MX 20 mx.other.example.",
                Mismatch,
                "Besides mx.service.example, the MX records of example.com name mx.other.example",
            ),
            (
                "example.com MX 10 mx.service.example.example.com.",
                Mismatch,
                "Enter the host with a trailing dot, \"mx.service.example.\"",
            ),
            ("example.com CNAME shop.example.", Conflict, "itself is a CNAME to shop.example"),
            (
                "example.com CNAME shop.example.\nshop.example MX 10 mx.other.example.",
                Conflict,
                "itself is a CNAME to shop.example",
            ),
        ],
    )
    .await;
}
