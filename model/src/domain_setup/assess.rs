//! State machine of domain verification: whether mail may be sent, with which keys, and when the next check is.
//!
//! ```text
//! unverified ──all required found, keys usable──► verified ──one is missing──► degraded ──72 hours──► unverified
//!                                                    ▲──────all found again───────┘
//! ```
//!
//! Records whose name servers did not respond change nothing: a DNS outage does not revoke verification.

use std::time::Duration;

use jiff::Timestamp;

use super::{CheckedRecord, DomainRecord, DomainSetup, RecordFinding, RecordPurpose, RecordStatus};
use crate::domain::{DomainState, RetiredDkimRecords, SealedDkimKeys, SendingDomain};

/// How long a domain stays verified while a required record is missing.
const DEGRADED_MAX: Duration = Duration::from_secs(72 * 3_600);
/// How long the records of retired keys must stay published.
const RETIRED_KEY_OVERLAP: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long an unverified domain is checked automatically.
const CHECK_FOR: Duration = Duration::from_secs(72 * 3_600);
/// First checks, relative to the start; later ones are hourly.
const FIRST_CHECKS: [Duration; 4] =
    [Duration::from_secs(60), Duration::from_secs(5 * 60), Duration::from_secs(15 * 60), Duration::from_secs(60 * 60)];
const HOUR: Duration = Duration::from_secs(3_600);

/// The results of one check of a domain.
#[derive(Debug, Clone)]
pub struct DomainObservation {
    /// Result of each record.
    pub findings: Vec<(DomainRecord, RecordFinding)>,
    /// The DKIM keys can be decrypted and used.
    pub keys_open: bool,
    pub at: Timestamp,
}

impl DomainObservation {
    /// Returns whether all required records were found and the keys are usable.
    pub fn is_complete(&self) -> bool {
        self.keys_open && self.required_statuses().all(|status| status == RecordStatus::Verified)
    }

    /// Returns whether something required is definitely wrong.
    fn is_broken(&self) -> bool {
        let good_or_unknown = |status| matches!(status, RecordStatus::Verified | RecordStatus::Pending);
        !self.keys_open || !self.required_statuses().all(good_or_unknown)
    }

    fn required_statuses(&self) -> impl Iterator<Item = RecordStatus> {
        self.findings.iter().filter(|(record, _)| record.required).map(|(_, finding)| finding.status)
    }

    /// Status of the record of a DKIM key.
    fn key_status(&self, selector: &str) -> Option<RecordStatus> {
        let of_key = |record: &DomainRecord| {
            let label = record.name.strip_prefix(selector);
            record.purpose == RecordPurpose::Dkim && label.is_some_and(|rest| rest.starts_with("._domainkey."))
        };
        self.findings.iter().find(|(record, _)| of_key(record)).map(|(_, finding)| finding.status)
    }
}

/// Applies a check to a domain and its setup.
pub fn assess(
    domain: &SendingDomain,
    setup: &DomainSetup,
    observation: &DomainObservation,
) -> (SendingDomain, DomainSetup) {
    let (mut domain, mut setup) = (domain.clone(), setup.clone());
    let before = domain.clone();
    setup.checked = observation.findings.iter().map(checked_record).collect();
    setup.last_checked_at = Some(observation.at);
    setup.keys_open = observation.keys_open;
    rotate_keys(&mut domain, setup.operator_verified, observation);
    update_tracking_host(&mut domain, setup.operator_verified, observation);
    match domain.state {
        DomainState::Unverified if observation.is_complete() => {
            domain.state = DomainState::Verified;
            domain.verified_at = domain.verified_at.or(Some(observation.at));
            setup.degraded_since = None;
        }
        DomainState::Unverified => {}
        DomainState::Verified if observation.is_complete() => setup.degraded_since = None,
        DomainState::Verified if observation.is_broken() && !setup.operator_verified => {
            let since = *setup.degraded_since.get_or_insert(observation.at);
            if time_after(since, DEGRADED_MAX) <= observation.at {
                domain.state = DomainState::Unverified;
                (setup.degraded_since, setup.since) = (None, observation.at);
            }
        }
        DomainState::Verified => {}
    }
    if domain != before {
        domain.updated_at = observation.at;
    }
    (domain, setup)
}

/// Activates new keys whose record is published, and updates which keys are published.
fn rotate_keys(domain: &mut SendingDomain, operator_verified: bool, observation: &DomainObservation) {
    if domain.former_dkim.as_ref().is_some_and(|former| former.until <= observation.at) {
        domain.former_dkim = None;
    }
    let is_published = |next: &SealedDkimKeys| observation.key_status(&next.selector) == Some(RecordStatus::Verified);
    if let Some(next) = domain.next_dkim.take_if(|next| is_published(next)) {
        let former = std::mem::replace(&mut domain.dkim, next);
        let until = time_after(observation.at, RETIRED_KEY_OVERLAP);
        domain.former_dkim = Some(RetiredDkimRecords {
            selector: former.selector,
            rsa_record: former.rsa_record,
            ed25519_record: former.ed25519_published.then_some(former.ed25519_record),
            until,
        });
    }
    match observation.key_status(&domain.dkim.ed25519_selector()) {
        Some(RecordStatus::Verified) => domain.dkim.ed25519_published = true,
        None | Some(RecordStatus::Pending) => {}
        Some(_) => domain.dkim.ed25519_published &= operator_verified,
    }
}

/// Tracking links use the tracking host while its record is published or the operator vouches for it.
fn update_tracking_host(domain: &mut SendingDomain, operator_verified: bool, observation: &DomainObservation) {
    let mut findings = observation.findings.iter();
    let tracking = findings.find(|(record, _)| record.purpose == RecordPurpose::Tracking);
    match tracking.map(|(_, finding)| finding.status) {
        Some(RecordStatus::Verified) => {
            domain.delivery.tracking_seen.clone_from(&domain.delivery.tracking_host);
        }
        // The name servers did not respond.
        Some(RecordStatus::Pending) => {}
        _ if operator_verified => {}
        _ => domain.delivery.tracking_seen = None,
    }
}

fn checked_record((record, finding): &(DomainRecord, RecordFinding)) -> CheckedRecord {
    CheckedRecord { name: record.name.clone(), purpose: record.purpose, finding: finding.clone() }
}

/// Time of the next automatic check after `now`; `None` if there is none. `chance` spreads the checks over the hour, so
/// that domains added together are not always checked together.
pub fn next_check(domain: &SendingDomain, setup: &DomainSetup, now: Timestamp, chance: u64) -> Option<Timestamp> {
    if setup.operator_verified {
        return None;
    }
    let hour = HOUR - HOUR / 1_000 * u32::try_from(chance % 100).unwrap_or_default();
    let awaits_links = domain.delivery.tracking_link_host() != domain.delivery.tracking_host.as_ref();
    if domain.state == DomainState::Verified && domain.next_dkim.is_none() && !awaits_links {
        return Some(time_after(now, hour));
    }
    let first = FIRST_CHECKS.into_iter().map(|wait| time_after(setup.since, wait)).find(|at| *at > now);
    let next = first.unwrap_or_else(|| time_after(now, hour));
    (next <= time_after(setup.since, CHECK_FOR) || domain.state == DomainState::Verified).then_some(next)
}

fn time_after(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DeliverySettings, SealedSecret};
    use crate::domain_setup::ServiceHosts;
    use crate::id::{AccountId, DomainId};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn dkim(selector: &str) -> SealedDkimKeys {
        SealedDkimKeys {
            selector: selector.to_owned(),
            rsa_record: format!("v=DKIM1; k=rsa; p={selector}"),
            rsa: SealedSecret(String::new()),
            ed25519_record: format!("v=DKIM1; k=ed25519; p={selector}"),
            ed25519: SealedSecret(String::new()),
            ed25519_published: false,
            rsa_bits: 2_048,
        }
    }

    fn domain() -> SendingDomain {
        SendingDomain {
            id: DomainId::new(at(0), 1),
            account: AccountId::new(at(0), 1),
            name: "example.com".parse().unwrap(),
            state: DomainState::Unverified,
            dkim: dkim("one"),
            next_dkim: None,
            former_dkim: None,
            delivery: DeliverySettings::default(),
            inbound_enabled: false,
            inbound_addresses: Vec::new(),
            created_at: at(0),
            verified_at: None,
            updated_at: at(0),
        }
    }

    fn facts() -> ServiceHosts {
        ServiceHosts {
            return_path_host: "rp.example.net".parse().unwrap(),
            spf_include_host: "spf.example.net".parse().unwrap(),
            ownership_label: "_service".to_owned(),
            mail_host: "mx.example.net".parse().unwrap(),
            pages_host: None,
        }
    }

    /// A check in which all records are found, except those with the given name prefixes.
    fn observe(domain: &SendingDomain, at: Timestamp, overrides: &[(&str, RecordStatus)]) -> DomainObservation {
        let finding = |record: DomainRecord| {
            let other = overrides.iter().find(|(name, _)| record.name.starts_with(name));
            let status = other.map_or(RecordStatus::Verified, |(_, status)| *status);
            (record, RecordFinding { status, found: Vec::new(), error: None, merged: None, checked_at: at })
        };
        DomainObservation {
            findings: facts().required_records(domain).into_iter().map(finding).collect(),
            keys_open: true,
            at,
        }
    }

    #[test]
    fn a_domain_is_verified_once_all_required_records_are() {
        let (new, setup) = (domain(), DomainSetup::new(at(0)));
        for missing in ["_service.", "one.", "rp.", "example.com"] {
            let observation = observe(&new, at(60), &[(missing, RecordStatus::Missing)]);
            assert_eq!(assess(&new, &setup, &observation).0.state, DomainState::Unverified, "{missing}");
        }
        let closed = DomainObservation { keys_open: false, ..observe(&new, at(60), &[]) };
        assert_eq!(assess(&new, &setup, &closed).0.state, DomainState::Unverified);
        let overrides = [("_dmarc.", RecordStatus::Missing), ("onee.", RecordStatus::Missing)];
        let (verified, _) = assess(&new, &setup, &observe(&new, at(60), &overrides));
        assert_eq!((verified.state, verified.verified_at), (DomainState::Verified, Some(at(60))));
        assert!(!verified.dkim.ed25519_published);
        assert!(assess(&verified, &setup, &observe(&verified, at(61), &[])).0.dkim.ed25519_published);
    }

    #[test]
    fn a_missing_record_is_tolerated_for_three_days_and_a_dns_outage_always() {
        let (verified, setup) = assess(&domain(), &DomainSetup::new(at(0)), &observe(&domain(), at(0), &[]));
        let missing = |at| observe(&verified, at, &[("rp.", RecordStatus::Missing)]);
        let (tolerated, degraded) = assess(&verified, &setup, &missing(at(10)));
        assert_eq!((tolerated.state, degraded.degraded_since), (DomainState::Verified, Some(at(10))));
        let (restored, recovered) = assess(&tolerated, &degraded, &observe(&tolerated, at(20), &[]));
        assert_eq!((restored.state, recovered.degraded_since), (DomainState::Verified, None));
        let hours_72 = 72 * 3_600;
        assert_eq!(assess(&tolerated, &degraded, &missing(at(9 + hours_72))).0.state, DomainState::Verified);
        let (unverified, since) = assess(&tolerated, &degraded, &missing(at(10 + hours_72)));
        assert_eq!((unverified.state, since.since), (DomainState::Unverified, at(10 + hours_72)));
        let unanswered = observe(&verified, at(20), &[("", RecordStatus::Pending)]);
        assert_eq!(assess(&verified, &setup, &unanswered).1.degraded_since, None);
        assert_eq!(
            assess(&tolerated, &degraded, &unanswered).1.degraded_since,
            Some(at(10)),
            "an outage mends nothing"
        );
    }

    #[test]
    fn new_keys_are_used_once_their_record_is_published() {
        let turning = SendingDomain { next_dkim: Some(dkim("two")), ..domain() };
        let setup = DomainSetup::new(at(0));
        let (waiting, _) = assess(&turning, &setup, &observe(&turning, at(5), &[("two", RecordStatus::Missing)]));
        assert_eq!((waiting.dkim.selector.as_str(), waiting.next_dkim.is_some()), ("one", true));
        let overrides = [("twoe.", RecordStatus::Missing)];
        let (turned, setup) = assess(&waiting, &setup, &observe(&waiting, at(6), &overrides));
        assert_eq!((turned.dkim.selector.as_str(), &turned.next_dkim), ("two", &None));
        assert!(!turned.dkim.ed25519_published);
        let former = turned.former_dkim.clone().unwrap();
        assert_eq!((former.selector.as_str(), former.until), ("one", at(6 + 7 * 24 * 3_600)));
        let names: Vec<String> = facts().required_records(&turned).into_iter().map(|record| record.name).collect();
        assert!(names.contains(&"one._domainkey.example.com".to_owned()), "{names:?}");
        assert_eq!(assess(&turned, &setup, &observe(&turned, former.until, &[])).0.former_dkim, None);
    }

    #[test]
    fn checks_become_hourly_and_end_after_three_days() {
        let (new, setup) = (domain(), DomainSetup::new(at(0)));
        let mut delays = Vec::new();
        let mut now = at(0);
        while let Some(next) = next_check(&new, &setup, now, 0) {
            delays.push(next.duration_since(now).as_secs());
            now = next;
        }
        assert_eq!(delays[..5], [60, 240, 600, 2_700, 3_600]);
        assert_eq!((delays.len(), now), (4 + 71, at(72 * 3_600)));
        let verified = SendingDomain { state: DomainState::Verified, ..new };
        assert_eq!(next_check(&verified, &setup, at(1 << 30), 0), Some(at((1 << 30) + 3_600)));
        let spread = next_check(&verified, &setup, at(0), 99).unwrap();
        assert!(spread > at(3_200) && spread < at(3_300), "{spread}");
        // A new tracking host is checked at once.
        let mut naming = verified;
        naming.delivery.tracking_host = Some("links.example.com".parse().unwrap());
        assert_eq!(next_check(&naming, &setup, at(0), 0), Some(at(60)));
        naming.delivery.tracking_seen.clone_from(&naming.delivery.tracking_host);
        assert_eq!(next_check(&naming, &setup, at(0), 0), Some(at(3_600)));
    }
}
