//! Planning of changes from the existing and the wanted records.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use dns::record_changes::{ChangeAction, ExistingRecord, ExistingRecordType, MergePolicy, RecordChange, plan_changes};
use model::domain_setup::{RecordPurpose, RecordType};

use self::domain::{DOMAIN, wanted};

#[path = "../../tests/world/domain.rs"]
mod domain;

/// A valid key of another service.
const OTHER_KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

fn existing_record(kind: ExistingRecordType, name: &str, value: &str) -> ExistingRecord {
    ExistingRecord { name: name.to_owned(), kind, value: value.to_owned() }
}

/// The change of the record with this purpose.
fn change(existing: &[ExistingRecord], purpose: RecordPurpose, merge: MergePolicy) -> RecordChange {
    let changes = plan_changes(existing, &wanted(), merge);
    changes.into_iter().find(|change| change.record.purpose == purpose).unwrap()
}

fn action(existing: &[ExistingRecord], purpose: RecordPurpose) -> ChangeAction {
    change(existing, purpose, MergePolicy::default()).action
}

const MERGE: MergePolicy = MergePolicy { spf: true, mx: true };

#[test]
fn missing_records_are_created_and_existing_ones_skipped() {
    let changes = plan_changes(&[], &wanted(), MERGE);
    assert!(changes.iter().all(|change| change.action == ChangeAction::Create));
    assert_eq!(changes.iter().map(|change| change.record.clone()).collect::<Vec<_>>(), wanted());
    let existing: Vec<ExistingRecord> = wanted()
        .iter()
        .map(|record| {
            let kind = match record.record_type {
                RecordType::Txt => ExistingRecordType::Txt,
                RecordType::Cname => ExistingRecordType::Cname,
                RecordType::Mx => ExistingRecordType::Mx,
            };
            existing_record(kind, &record.name.to_uppercase(), &record.value)
        })
        .collect();
    assert!(plan_changes(&existing, &wanted(), MERGE).iter().all(|change| change.action == ChangeAction::Skip));
}

#[test]
fn other_txt_records_at_the_apex_remain() {
    let existing = [
        existing_record(ExistingRecordType::Txt, DOMAIN, "google-site-verification=xyz"),
        existing_record(ExistingRecordType::Txt, DOMAIN, "v=spf1 mx -all"),
        existing_record(ExistingRecordType::Txt, DOMAIN, "MS=ms123"),
    ];
    let merged = change(&existing, RecordPurpose::Spf, MERGE);
    assert_eq!(merged.action, ChangeAction::Update);
    assert_eq!(merged.record.value, "v=spf1 mx include:spf.post.example -all");
    assert_eq!(merged.replaces.as_deref(), Some("v=spf1 mx -all"));
    assert_eq!(action(&existing[..1], RecordPurpose::Spf), ChangeAction::Create);
}

#[test]
fn an_spf_record_is_merged_only_if_allowed() {
    let existing = [existing_record(ExistingRecordType::Txt, DOMAIN, "v=spf1 mx -all")];
    let unchanged = change(&existing, RecordPurpose::Spf, MergePolicy::default());
    assert_eq!(unchanged.action, ChangeAction::Conflict);
    assert_eq!(unchanged.record.value, "v=spf1 mx include:spf.post.example -all");
    assert!(unchanged.reason.unwrap().contains("allow merging"));
    let two = [
        existing_record(ExistingRecordType::Txt, DOMAIN, "v=spf1 mx -all"),
        existing_record(ExistingRecordType::Txt, DOMAIN, "v=spf1 a -all"),
    ];
    let void = change(&two, RecordPurpose::Spf, MERGE);
    assert_eq!(void.action, ChangeAction::Conflict);
    assert!(void.reason.unwrap().contains("2 SPF records"));
    let full = format!("v=spf1 {}-all", (0..10).map(|n| format!("include:{n}.example ")).collect::<String>());
    assert_eq!(
        change(&[existing_record(ExistingRecordType::Txt, DOMAIN, &full)], RecordPurpose::Spf, MERGE).action,
        ChangeAction::Conflict
    );
}

#[test]
fn a_cname_conflicts_with_other_records() {
    let other = [existing_record(ExistingRecordType::Cname, "rp.shop.example", "elsewhere.example")];
    assert_eq!(change(&other, RecordPurpose::ReturnPath, MERGE).action, ChangeAction::Conflict);
    let same = [existing_record(ExistingRecordType::Cname, "rp.shop.example", "RP.post.example.")];
    assert_eq!(action(&same, RecordPurpose::ReturnPath), ChangeAction::Skip);
    for kind in [ExistingRecordType::Address, ExistingRecordType::Txt, ExistingRecordType::Mx] {
        let existing = [existing_record(kind, "rp.shop.example", "192.0.2.1")];
        assert_eq!(change(&existing, RecordPurpose::ReturnPath, MERGE).action, ChangeAction::Conflict);
    }
    let alias = [existing_record(ExistingRecordType::Cname, DOMAIN, "hosting.example")];
    assert_eq!(change(&alias, RecordPurpose::Spf, MERGE).action, ChangeAction::Conflict);
    assert_eq!(change(&alias, RecordPurpose::Inbound, MERGE).action, ChangeAction::Conflict);
    assert_eq!(action(&alias, RecordPurpose::Dkim), ChangeAction::Create);
}

#[test]
fn records_of_the_owner_remain() {
    let policy =
        [existing_record(ExistingRecordType::Txt, "_dmarc.shop.example", "v=DMARC1; p=reject; rua=mailto:a@b.example")];
    let unchanged = change(&policy, RecordPurpose::Dmarc, MERGE);
    assert_eq!(unchanged.action, ChangeAction::Skip);
    assert!(unchanged.reason.unwrap().contains("its own DMARC policy"));
    let noise = [existing_record(ExistingRecordType::Txt, "_dmarc.shop.example", "not a policy")];
    assert_eq!(action(&noise, RecordPurpose::Dmarc), ChangeAction::Create);
    let key = "pr1._domainkey.shop.example";
    let spaced = format!("{};", wanted()[1].value.replace("; ", ";").replace("kqh", "kqh "));
    assert_eq!(
        action(&[existing_record(ExistingRecordType::Txt, key, &spaced)], RecordPurpose::Dkim),
        ChangeAction::Skip
    );
    let other = format!("v=DKIM1; k=rsa; p={OTHER_KEY}");
    assert_eq!(
        action(&[existing_record(ExistingRecordType::Txt, key, &other)], RecordPurpose::Dkim),
        ChangeAction::Conflict
    );
    let claim =
        [existing_record(ExistingRecordType::Txt, "_postrider.shop.example", "postrider-verify=of-another-account")];
    assert_eq!(action(&claim, RecordPurpose::Ownership), ChangeAction::Create);
}

/// A record that the domain check accepts is left unchanged, and one that it rejects is corrected.
#[test]
fn a_dkim_key_is_compared_as_in_the_domain_check() {
    let name = "pr1._domainkey.shop.example";
    let own = wanted()[1].value.clone();
    let key = own.split_once("p=").unwrap().1.to_owned();
    for right in [format!("p={key}"), format!("k=rsa;p={key};"), format!("v=DKIM1; t=s; p={key}")] {
        assert_eq!(
            action(&[existing_record(ExistingRecordType::Txt, name, &right)], RecordPurpose::Dkim),
            ChangeAction::Skip,
            "{right}"
        );
    }
    for (wrong, why) in [
        (format!("v=DKIM1; k=rsa; t=y; p={key}"), "testing flag"),
        ("v=DKIM1; k=rsa; p=".to_owned(), "is revoked"),
        (format!("v=DKIM1; k=rsa; p={}", &key[..key.len() / 2]), "was cut off"),
        (format!("\"v=DKIM1; k=rsa; p={key}\""), "quoted twice"),
        (format!("v=DKIM1; k=ed25519; p={key}"), "declares a key type"),
        ("not a key".to_owned(), "is not a DKIM key"),
    ] {
        let change = change(
            &[existing_record(ExistingRecordType::Txt, name, &wrong)],
            RecordPurpose::Dkim,
            MergePolicy::default(),
        );
        assert_eq!((change.action, change.replaces.as_ref()), (ChangeAction::Update, Some(&wrong)));
        assert!(change.reason.as_ref().unwrap().contains(why), "{change:?}");
        assert_eq!(change.record.value, own);
    }
    let two =
        [existing_record(ExistingRecordType::Txt, name, &own), existing_record(ExistingRecordType::Txt, name, "p=")];
    assert_eq!(action(&two, RecordPurpose::Dkim), ChangeAction::Conflict);
}

#[test]
fn existing_mx_records_remain() {
    let existing = [existing_record(ExistingRecordType::Mx, DOMAIN, "mx.other.example")];
    assert_eq!(action(&existing, RecordPurpose::Inbound), ChangeAction::Conflict);
    let added = change(&existing, RecordPurpose::Inbound, MERGE);
    assert_eq!(added.action, ChangeAction::Create);
    assert!(added.reason.unwrap().contains("mx.other.example"));
    let null = [existing_record(ExistingRecordType::Mx, DOMAIN, ".")];
    assert_eq!(change(&null, RecordPurpose::Inbound, MERGE).action, ChangeAction::Conflict);
    let own = [existing_record(ExistingRecordType::Mx, DOMAIN, "In.Post.Example.")];
    assert_eq!(action(&own, RecordPurpose::Inbound), ChangeAction::Skip);
}
