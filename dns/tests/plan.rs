//! Planning of changes from the existing and the wanted records.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use dns::record_changes::{ChangeAction, ExistingRecord, ExistingRecordType, MergePolicy, RecordChange, plan_changes};
use mail::domain_setup::{RecordPurpose, RecordType};

use self::domain::{DOMAIN, wanted};

#[path = "../../tests/world/domain.rs"]
mod domain;

/// A valid key of another service.
const OTHER_KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

fn standing(kind: ExistingRecordType, name: &str, value: &str) -> ExistingRecord {
    ExistingRecord { name: name.to_owned(), kind, value: value.to_owned() }
}

/// The change of the record with this purpose.
fn change(there: &[ExistingRecord], purpose: RecordPurpose, merge: MergePolicy) -> RecordChange {
    let changes = plan_changes(there, &wanted(), merge);
    changes.into_iter().find(|change| change.record.purpose == purpose).unwrap()
}

fn action(there: &[ExistingRecord], purpose: RecordPurpose) -> ChangeAction {
    change(there, purpose, MergePolicy::default()).action
}

const MERGE: MergePolicy = MergePolicy { spf: true, mx: true };

#[test]
fn an_empty_zone_gets_all_and_a_full_one_nothing() {
    let made = plan_changes(&[], &wanted(), MERGE);
    assert!(made.iter().all(|change| change.action == ChangeAction::Create));
    assert_eq!(made.iter().map(|change| change.record.clone()).collect::<Vec<_>>(), wanted());
    let there: Vec<ExistingRecord> = wanted()
        .iter()
        .map(|record| {
            let kind = match record.record_type {
                RecordType::Txt => ExistingRecordType::Txt,
                RecordType::Cname => ExistingRecordType::Cname,
                RecordType::Mx => ExistingRecordType::Mx,
            };
            standing(kind, &record.name.to_uppercase(), &record.value)
        })
        .collect();
    assert!(plan_changes(&there, &wanted(), MERGE).iter().all(|change| change.action == ChangeAction::Skip));
}

#[test]
fn other_texts_at_the_apex_stay() {
    let there = [
        standing(ExistingRecordType::Txt, DOMAIN, "google-site-verification=xyz"),
        standing(ExistingRecordType::Txt, DOMAIN, "v=spf1 mx -all"),
        standing(ExistingRecordType::Txt, DOMAIN, "MS=ms123"),
    ];
    let merged = change(&there, RecordPurpose::Spf, MERGE);
    assert_eq!(merged.action, ChangeAction::Update);
    assert_eq!(merged.record.value, "v=spf1 mx include:spf.post.example -all");
    assert_eq!(merged.replaces.as_deref(), Some("v=spf1 mx -all"));
    assert_eq!(action(&there[..1], RecordPurpose::Spf), ChangeAction::Create);
}

#[test]
fn an_spf_record_is_merged_only_when_that_is_allowed() {
    let there = [standing(ExistingRecordType::Txt, DOMAIN, "v=spf1 mx -all")];
    let kept = change(&there, RecordPurpose::Spf, MergePolicy::default());
    assert_eq!(kept.action, ChangeAction::Conflict);
    assert_eq!(kept.record.value, "v=spf1 mx include:spf.post.example -all");
    assert!(kept.reason.unwrap().contains("allow merging"));
    let two = [
        standing(ExistingRecordType::Txt, DOMAIN, "v=spf1 mx -all"),
        standing(ExistingRecordType::Txt, DOMAIN, "v=spf1 a -all"),
    ];
    let void = change(&two, RecordPurpose::Spf, MERGE);
    assert_eq!(void.action, ChangeAction::Conflict);
    assert!(void.reason.unwrap().contains("2 SPF records"));
    let full = format!("v=spf1 {}-all", (0..10).map(|n| format!("include:{n}.example ")).collect::<String>());
    assert_eq!(
        change(&[standing(ExistingRecordType::Txt, DOMAIN, &full)], RecordPurpose::Spf, MERGE).action,
        ChangeAction::Conflict
    );
}

#[test]
fn an_alias_stands_alone() {
    let other = [standing(ExistingRecordType::Cname, "rp.shop.example", "elsewhere.example")];
    assert_eq!(change(&other, RecordPurpose::ReturnPath, MERGE).action, ChangeAction::Conflict);
    let same = [standing(ExistingRecordType::Cname, "rp.shop.example", "RP.post.example.")];
    assert_eq!(action(&same, RecordPurpose::ReturnPath), ChangeAction::Skip);
    for kind in [ExistingRecordType::Address, ExistingRecordType::Txt, ExistingRecordType::Mx] {
        let there = [standing(kind, "rp.shop.example", "192.0.2.1")];
        assert_eq!(change(&there, RecordPurpose::ReturnPath, MERGE).action, ChangeAction::Conflict);
    }
    let alias = [standing(ExistingRecordType::Cname, DOMAIN, "hosting.example")];
    assert_eq!(change(&alias, RecordPurpose::Spf, MERGE).action, ChangeAction::Conflict);
    assert_eq!(change(&alias, RecordPurpose::Inbound, MERGE).action, ChangeAction::Conflict);
    assert_eq!(action(&alias, RecordPurpose::Dkim), ChangeAction::Create);
}

#[test]
fn what_is_the_owners_stays() {
    let policy =
        [standing(ExistingRecordType::Txt, "_dmarc.shop.example", "v=DMARC1; p=reject; rua=mailto:a@b.example")];
    let kept = change(&policy, RecordPurpose::Dmarc, MERGE);
    assert_eq!(kept.action, ChangeAction::Skip);
    assert!(kept.reason.unwrap().contains("its own DMARC policy"));
    let noise = [standing(ExistingRecordType::Txt, "_dmarc.shop.example", "not a policy")];
    assert_eq!(action(&noise, RecordPurpose::Dmarc), ChangeAction::Create);
    let key = "pr1._domainkey.shop.example";
    let spaced = format!("{};", wanted()[1].value.replace("; ", ";").replace("kqh", "kqh "));
    assert_eq!(action(&[standing(ExistingRecordType::Txt, key, &spaced)], RecordPurpose::Dkim), ChangeAction::Skip);
    let other = format!("v=DKIM1; k=rsa; p={OTHER_KEY}");
    assert_eq!(action(&[standing(ExistingRecordType::Txt, key, &other)], RecordPurpose::Dkim), ChangeAction::Conflict);
    let claim = [standing(ExistingRecordType::Txt, "_postrider.shop.example", "postrider-verify=of-another-account")];
    assert_eq!(action(&claim, RecordPurpose::Ownership), ChangeAction::Create);
}

/// A record that the domain check accepts is left unchanged, and one that it rejects is corrected.
#[test]
fn a_key_is_judged_as_the_inspection_judges_it() {
    let name = "pr1._domainkey.shop.example";
    let ours = wanted()[1].value.clone();
    let key = ours.split_once("p=").unwrap().1.to_owned();
    for right in [format!("p={key}"), format!("k=rsa;p={key};"), format!("v=DKIM1; t=s; p={key}")] {
        assert_eq!(
            action(&[standing(ExistingRecordType::Txt, name, &right)], RecordPurpose::Dkim),
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
        let change =
            change(&[standing(ExistingRecordType::Txt, name, &wrong)], RecordPurpose::Dkim, MergePolicy::default());
        assert_eq!((change.action, change.replaces.as_ref()), (ChangeAction::Update, Some(&wrong)));
        assert!(change.reason.as_ref().unwrap().contains(why), "{change:?}");
        assert_eq!(change.record.value, ours);
    }
    let two = [standing(ExistingRecordType::Txt, name, &ours), standing(ExistingRecordType::Txt, name, "p=")];
    assert_eq!(action(&two, RecordPurpose::Dkim), ChangeAction::Conflict);
}

#[test]
fn mail_goes_on_where_it_went() {
    let there = [standing(ExistingRecordType::Mx, DOMAIN, "mx.other.example")];
    assert_eq!(action(&there, RecordPurpose::Inbound), ChangeAction::Conflict);
    let beside = change(&there, RecordPurpose::Inbound, MERGE);
    assert_eq!(beside.action, ChangeAction::Create);
    assert!(beside.reason.unwrap().contains("mx.other.example"));
    let null = [standing(ExistingRecordType::Mx, DOMAIN, ".")];
    assert_eq!(change(&null, RecordPurpose::Inbound, MERGE).action, ChangeAction::Conflict);
    let ours = [standing(ExistingRecordType::Mx, DOMAIN, "In.Post.Example.")];
    assert_eq!(action(&ours, RecordPurpose::Inbound), ChangeAction::Skip);
}
