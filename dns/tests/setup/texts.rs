//! Checks of TXT records: ownership and DMARC.

use model::domain_setup::RecordPurpose::{Dmarc, Ownership};
use model::domain_setup::RecordStatus::{Conflict, Mismatch, Missing, Verified};

use crate::world::{TOKEN, check, table};

#[tokio::test]
async fn the_value_is_found_among_others() {
    table(
        Ownership,
        &[
            ("_service.example.com TXT \"service-verification=Abc123\"", Verified, ""),
            ("_service.example.com TXT \"service-\" \"verification=Abc123\"", Verified, ""),
            ("_service.example.com TXT \" service-verification=Abc123 \"", Verified, ""),
            (
                "_service.example.com TXT \"service-claim=1\"
                _service.example.com TXT \"service-verification=Abc123\"",
                Verified,
                "",
            ),
            (
                "_service.example.com CNAME proof.example.
                proof.example TXT \"service-verification=Abc123\"",
                Verified,
                "",
            ),
            ("_service.example.com TXT \"service-claim=1\"", Mismatch, "but none with the value"),
            ("_service.example.com TXT \"service-verification=abc123\"", Mismatch, "upper and lower case"),
            ("_service.example.com TXT \"\\\"service-verification=Abc123\\\"\"", Mismatch, "was quoted twice"),
            ("_service.example.com CNAME x.example.", Conflict, "Replace the CNAME with the TXT record"),
            ("", Missing, "There is no TXT record at _service.example.com. Publish it"),
            ("*.example.com TXT \"anything\"", Missing, "from a wildcard"),
            (
                "_service.example.com.example.com TXT \"service-verification=Abc123\"",
                Missing,
                "at _service.example.com.example.com instead of _service.example.com",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_answer_of_60_kilobytes_is_read() {
    use std::fmt::Write as _;
    let mut zone = String::new();
    for n in 0..240 {
        writeln!(zone, "_service.example.com TXT \"{n} {}\"", "x".repeat(230)).unwrap();
    }
    let finding = check(Ownership, &zone).await;
    assert!(finding.error.unwrap().contains("but none with the value"));
    assert_eq!(finding.found.len(), 10);

    writeln!(zone, "_service.example.com TXT \"{TOKEN}\"").unwrap();
    let finding = check(Ownership, &zone).await;
    assert_eq!((finding.status, finding.error), (Verified, None));
    assert_eq!(finding.found[0], TOKEN);
    assert!(finding.found.iter().map(String::len).sum::<usize>() < 6_000);
}

#[tokio::test]
async fn any_dmarc_policy_is_verified() {
    table(
        Dmarc,
        &[
            ("_dmarc.example.com TXT \"v=DMARC1; p=none\"", Verified, ""),
            ("_dmarc.example.com TXT \"v=DMARC1; p=reject; rua=mailto:a@other.example\"", Verified, ""),
            ("_dmarc.example.com TXT \"v=DMARC1; p=none\"\n_dmarc.example.com TXT \"hello\"", Verified, ""),
            ("", Missing, "It is optional here, but large receivers require it."),
            (
                "_dmarc.example.com TXT \"v=DMARC1; p=none\"\n_dmarc.example.com TXT \"v=DMARC1; p=reject\"",
                Mismatch,
                "There are 2 DMARC records",
            ),
            ("_dmarc.example.com TXT \"v=DMARC1; p=block\"", Mismatch, "\"p=block\" should be \"none\""),
            ("_dmarc.example.com TXT \"v=DMARC1; rua=mailto:a@a.example\"", Mismatch, "it has no policy"),
            ("_dmarc.example.com TXT \"p=none; v=DMARC1\"", Mismatch, "does not begin with"),
            ("_dmarc.example.com TXT \"\\\"v=DMARC1; p=none\\\"\"", Mismatch, "quoted twice"),
            ("*.example.com TXT \"v=spf1 -all\"", Missing, "from a wildcard (*.example.com)"),
        ],
    )
    .await;
}
