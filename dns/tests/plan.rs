//! Planning: what stands and what is wanted, and what is done about it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use dns::plan::{Action, Change, Kind, Merge, Standing, plan};
use mail::setup::{Purpose, RecordType};

use self::domain::{DOMAIN, wanted};

#[path = "../../tests/world/domain.rs"]
mod domain;

/// Somebody else's key, whole.
const OTHER_KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

fn standing(kind: Kind, name: &str, value: &str) -> Standing {
    Standing { name: name.to_owned(), kind, value: value.to_owned() }
}

/// The change of the one record with this purpose.
fn change(there: &[Standing], purpose: Purpose, merge: Merge) -> Change {
    let changes = plan(there, &wanted(), merge);
    changes.into_iter().find(|change| change.record.purpose == purpose).unwrap()
}

fn action(there: &[Standing], purpose: Purpose) -> Action {
    change(there, purpose, Merge::default()).action
}

const MERGE: Merge = Merge { spf: true, mx: true };

#[test]
fn an_empty_zone_gets_all_and_a_full_one_nothing() {
    let made = plan(&[], &wanted(), MERGE);
    assert!(made.iter().all(|change| change.action == Action::Create));
    assert_eq!(made.iter().map(|change| change.record.clone()).collect::<Vec<_>>(), wanted());
    let there: Vec<Standing> = wanted()
        .iter()
        .map(|record| {
            let kind = match record.record_type {
                RecordType::Txt => Kind::Txt,
                RecordType::Cname => Kind::Cname,
                RecordType::Mx => Kind::Mx,
            };
            standing(kind, &record.name.to_uppercase(), &record.value)
        })
        .collect();
    assert!(plan(&there, &wanted(), MERGE).iter().all(|change| change.action == Action::Skip));
}

#[test]
fn other_texts_at_the_apex_stay() {
    let there = [
        standing(Kind::Txt, DOMAIN, "google-site-verification=xyz"),
        standing(Kind::Txt, DOMAIN, "v=spf1 mx -all"),
        standing(Kind::Txt, DOMAIN, "MS=ms123"),
    ];
    let merged = change(&there, Purpose::Spf, MERGE);
    assert_eq!(merged.action, Action::Update);
    assert_eq!(merged.record.value, "v=spf1 mx include:spf.post.example -all");
    assert_eq!(merged.replaces.as_deref(), Some("v=spf1 mx -all"));
    assert_eq!(action(&there[..1], Purpose::Spf), Action::Create);
}

#[test]
fn an_spf_record_is_merged_only_when_that_is_allowed() {
    let there = [standing(Kind::Txt, DOMAIN, "v=spf1 mx -all")];
    let kept = change(&there, Purpose::Spf, Merge::default());
    assert_eq!(kept.action, Action::Conflict);
    assert_eq!(kept.record.value, "v=spf1 mx include:spf.post.example -all");
    assert!(kept.reason.unwrap().contains("allow merging"));
    let two = [standing(Kind::Txt, DOMAIN, "v=spf1 mx -all"), standing(Kind::Txt, DOMAIN, "v=spf1 a -all")];
    let void = change(&two, Purpose::Spf, MERGE);
    assert_eq!(void.action, Action::Conflict);
    assert!(void.reason.unwrap().contains("2 SPF records"));
    let full = format!("v=spf1 {}-all", (0..10).map(|n| format!("include:{n}.example ")).collect::<String>());
    assert_eq!(change(&[standing(Kind::Txt, DOMAIN, &full)], Purpose::Spf, MERGE).action, Action::Conflict);
}

#[test]
fn an_alias_stands_alone() {
    let other = [standing(Kind::Cname, "rp.shop.example", "elsewhere.example")];
    assert_eq!(change(&other, Purpose::ReturnPath, MERGE).action, Action::Conflict);
    let same = [standing(Kind::Cname, "rp.shop.example", "RP.post.example.")];
    assert_eq!(action(&same, Purpose::ReturnPath), Action::Skip);
    for kind in [Kind::Address, Kind::Txt, Kind::Mx] {
        let there = [standing(kind, "rp.shop.example", "192.0.2.1")];
        assert_eq!(change(&there, Purpose::ReturnPath, MERGE).action, Action::Conflict);
    }
    let alias = [standing(Kind::Cname, DOMAIN, "hosting.example")];
    assert_eq!(change(&alias, Purpose::Spf, MERGE).action, Action::Conflict);
    assert_eq!(change(&alias, Purpose::Inbound, MERGE).action, Action::Conflict);
    assert_eq!(action(&alias, Purpose::Dkim), Action::Create);
}

#[test]
fn what_is_the_owners_stays() {
    let policy = [standing(Kind::Txt, "_dmarc.shop.example", "v=DMARC1; p=reject; rua=mailto:a@b.example")];
    let kept = change(&policy, Purpose::Dmarc, MERGE);
    assert_eq!(kept.action, Action::Skip);
    assert!(kept.reason.unwrap().contains("of its own"));
    let noise = [standing(Kind::Txt, "_dmarc.shop.example", "not a policy")];
    assert_eq!(action(&noise, Purpose::Dmarc), Action::Create);
    let key = "pr1._domainkey.shop.example";
    let spaced = format!("{};", wanted()[1].value.replace("; ", ";").replace("kqh", "kqh "));
    assert_eq!(action(&[standing(Kind::Txt, key, &spaced)], Purpose::Dkim), Action::Skip);
    let other = format!("v=DKIM1; k=rsa; p={OTHER_KEY}");
    assert_eq!(action(&[standing(Kind::Txt, key, &other)], Purpose::Dkim), Action::Conflict);
    let claim = [standing(Kind::Txt, "_postrider.shop.example", "postrider-verify=of-another-account")];
    assert_eq!(action(&claim, Purpose::Ownership), Action::Create);
}

/// What the inspection calls right is left alone, and what it calls wrong is mended.
#[test]
fn a_key_is_judged_as_the_inspection_judges_it() {
    let name = "pr1._domainkey.shop.example";
    let ours = wanted()[1].value.clone();
    let key = ours.split_once("p=").unwrap().1.to_owned();
    for right in [format!("p={key}"), format!("k=rsa;p={key};"), format!("v=DKIM1; t=s; p={key}")] {
        assert_eq!(action(&[standing(Kind::Txt, name, &right)], Purpose::Dkim), Action::Skip, "{right}");
    }
    for (wrong, why) in [
        (format!("v=DKIM1; k=rsa; t=y; p={key}"), "testing flag"),
        ("v=DKIM1; k=rsa; p=".to_owned(), "is revoked"),
        (format!("v=DKIM1; k=rsa; p={}", &key[..key.len() / 2]), "was cut off"),
        (format!("\"v=DKIM1; k=rsa; p={key}\""), "quoted twice"),
        (format!("v=DKIM1; k=ed25519; p={key}"), "of another kind"),
        ("not a key".to_owned(), "is no DKIM key"),
    ] {
        let change = change(&[standing(Kind::Txt, name, &wrong)], Purpose::Dkim, Merge::default());
        assert_eq!((change.action, change.replaces.as_ref()), (Action::Update, Some(&wrong)));
        assert!(change.reason.as_ref().unwrap().contains(why), "{change:?}");
        assert_eq!(change.record.value, ours);
    }
    let two = [standing(Kind::Txt, name, &ours), standing(Kind::Txt, name, "p=")];
    assert_eq!(action(&two, Purpose::Dkim), Action::Conflict);
}

#[test]
fn mail_goes_on_where_it_went() {
    let there = [standing(Kind::Mx, DOMAIN, "mx.other.example")];
    assert_eq!(action(&there, Purpose::Inbound), Action::Conflict);
    let beside = change(&there, Purpose::Inbound, MERGE);
    assert_eq!(beside.action, Action::Create);
    assert!(beside.reason.unwrap().contains("mx.other.example"));
    let null = [standing(Kind::Mx, DOMAIN, ".")];
    assert_eq!(change(&null, Purpose::Inbound, MERGE).action, Action::Conflict);
    let ours = [standing(Kind::Mx, DOMAIN, "In.Post.Example.")];
    assert_eq!(action(&ours, Purpose::Inbound), Action::Skip);
}
