//! Property tests: any content of a zone yields a sentence of bounded length, and no panic.

use dns::domain_check::{QueryError, RecordData, RecordObservation, RecordSet, apply_rules};
use jiff::Timestamp;
use model::domain_setup::{RecordPurpose, RecordStatus};
use proptest::prelude::*;

use crate::world::{DOMAIN, record};

const PURPOSES: [RecordPurpose; 7] = [
    RecordPurpose::Ownership,
    RecordPurpose::Dkim,
    RecordPurpose::ReturnPath,
    RecordPurpose::Spf,
    RecordPurpose::Dmarc,
    RecordPurpose::Inbound,
    RecordPurpose::Tracking,
];

/// Texts with words and characters that the parsers recognize.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "\\PC{0,12}",
        "(v=spf1|v=DKIM1|v=DMARC1|p=|p=none|t=y|k=rsa|rua=mailto:a@b.c!)(;| |; )",
        "[+~?-]?(all|a|mx|ptr|include|exists|ip4|ip6|redirect=)(:|/|=)?[a-z0-9.%{}:/]{0,8}",
        "[\"\\\\;=:! ]{1,3}",
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

fn data() -> impl Strategy<Value = RecordData> {
    prop_oneof![
        4 => text().prop_map(RecordData::Text),
        1 => "[a-z.]{0,20}".prop_map(RecordData::Alias),
        1 => ("[a-z.]{0,20}", any::<u16>())
            .prop_map(|(host, preference)| RecordData::MailHost { preference, host }),
    ]
}

proptest! {
    #[test]
    fn any_record_is_checked_without_a_panic(
        data in prop::collection::vec(data(), 0..20),
        aliases in prop::collection::vec("[a-z.]{0,20}", 0..3),
        wildcard: bool,
    ) {
        for purpose in PURPOSES {
            let record_set = RecordSet { aliases: aliases.clone(), data: data.clone() };
            let mut answers = RecordObservation::from_records(Ok(record_set.clone()));
            answers.wildcard = wildcard;
            answers.conflicting = vec![("TXT", record_set.clone())];
            answers.misplaced = vec![("x.example.com".to_owned(), record_set)];
            let finding = apply_rules(DOMAIN, &record(purpose), &answers, Timestamp::UNIX_EPOCH);
            prop_assert!(finding.found.len() <= 10);
            prop_assert!(finding.error.iter().all(|sentence| sentence.len() < 3_000));
            prop_assert!(finding.status == RecordStatus::Verified || finding.error.is_some());
        }
    }
}

#[test]
fn every_query_error_has_a_sentence() {
    for error in [
        QueryError::Unreachable,
        QueryError::Lame,
        QueryError::TimedOut,
        QueryError::Garbled,
        QueryError::Refused,
        QueryError::ServerFailure,
        QueryError::Bogus,
        QueryError::AliasLoop,
    ] {
        let answers = RecordObservation::from_records(Err(error));
        let finding = apply_rules(DOMAIN, &record(RecordPurpose::Dkim), &answers, Timestamp::UNIX_EPOCH);
        let expected = if error == QueryError::AliasLoop { RecordStatus::Mismatch } else { RecordStatus::Pending };
        assert_eq!(finding.status, expected);
        assert!(finding.error.is_some_and(|sentence| sentence.contains(DOMAIN) && sentence.ends_with('.')));
    }
}
