//! Golden rows: rows that earlier releases wrote, in `tests/golden/rows`, one file for each noun.
//!
//! Later releases must decode a row. A row as the current code writes it must re-encode byte for byte, because
//! commits compare rows with what was read. When a shape gains a field, add rows with it; never change existing ones.

use std::path::Path;

use crate::codec::{self, RowCodec, SerdeRow};

/// Decodes each row of a file and encodes it again.
fn read_and_write<T: RowCodec>(rows: &str) -> Result<(), String> {
    for line in rows.lines() {
        let noun: T = codec::decode(line.as_bytes()).map_err(|error| format!("{error}: {line}"))?;
        let again = codec::encode(&noun);
        if again != line.as_bytes() {
            return Err(format!("was {line}\nis  {}", String::from_utf8_lossy(&again)));
        }
    }
    Ok(())
}

type DecodeCheck = fn(&str) -> Result<(), String>;

/// Every noun, by the name of its file.
const NOUNS: &[(&str, DecodeCheck)] = &[
    ("account.account", read_and_write::<model::account::Account>),
    ("affiliate.backfill.backfill", read_and_write::<model::affiliate::backfill::Backfill>),
    ("affiliate.campaign.campaign", read_and_write::<model::affiliate::campaign::Campaign>),
    ("affiliate.commission.commission", read_and_write::<model::affiliate::commission::Commission>),
    ("affiliate.partner.partner", read_and_write::<model::affiliate::partner::Partner>),
    ("affiliate.partner.partner_link", read_and_write::<model::affiliate::partner::PartnerLink>),
    ("affiliate.partner_letter.partner_letter", read_and_write::<model::affiliate::partner_email::PartnerEmail>),
    ("affiliate.payout.adjustment", read_and_write::<model::affiliate::payout::Adjustment>),
    ("affiliate.payout.payout", read_and_write::<model::affiliate::payout::Payout>),
    ("affiliate.payout.payout_run", read_and_write::<model::affiliate::payout::PayoutRun>),
    ("affiliate.payout.skipped", read_and_write::<model::affiliate::payout::SkippedPartner>),
    ("affiliate.portal.portal_link", read_and_write::<model::affiliate::portal::PortalLink>),
    ("affiliate.portal.portal_session", read_and_write::<model::affiliate::portal::PortalSession>),
    ("affiliate.program.program", read_and_write::<model::affiliate::program::AffiliateProgram>),
    ("affiliate.referral.referral", read_and_write::<model::affiliate::referral::Referral>),
    ("affiliate.visit.visit", read_and_write::<model::affiliate::visit::PartnerVisit>),
    ("approval.approval", read_and_write::<model::approval::Approval>),
    ("attempt.attempt", read_and_write::<model::attempt::Attempt>),
    ("automation.automation", read_and_write::<model::automation::Automation>),
    ("automation.counts", read_and_write::<model::automation::RunCounts>),
    ("automation.job.job", read_and_write::<model::automation::job::AutomationJob>),
    ("automation.run.run", read_and_write::<model::automation::run::AutomationRun>),
    ("billing.payer", read_and_write::<model::billing::Payer>),
    ("claim.claim", read_and_write::<model::domain_claim::DomainClaim>),
    ("credential.api_key", read_and_write::<model::credential::ApiKey>),
    ("credential.last_used", read_and_write::<model::credential::LastUse>),
    ("credential.smtp_credential", read_and_write::<model::credential::SmtpCredential>),
    ("delivery.delivery", read_and_write::<model::webhook_delivery::WebhookDelivery>),
    ("delivery.delivery_attempt", read_and_write::<model::webhook_delivery::WebhookDeliveryAttempt>),
    ("destination.standing", read_and_write::<model::destination::DestinationOverrides>),
    ("dmarc.report", read_and_write::<message::dmarc::DmarcReport>),
    ("dmarc.source", read_and_write::<message::dmarc::DmarcSource>),
    ("domain.domain", read_and_write::<model::domain::SendingDomain>),
    ("email.email", read_and_write::<model::email::Email>),
    ("event.event", read_and_write::<model::event::Event>),
    ("idempotency.used", read_and_write::<model::idempotency::IdempotencyRecord>),
    ("import.import", read_and_write::<model::import::SuppressionImport>),
    ("metric.counts", read_and_write::<model::metric::MetricCounts>),
    ("mta_sts.kept_policy", read_and_write::<message::mta_sts::CachedMtaStsPolicy>),
    ("notice.notice", read_and_write::<message::pending_dsn::PendingDsn>),
    ("owner_notice.owner_notice", read_and_write::<model::owner_alert::OwnerAlert>),
    ("oauth.client", read_and_write::<model::oauth::OAuthClient>),
    ("oauth.code", read_and_write::<model::oauth::AuthorizationCode>),
    ("oauth.device", read_and_write::<model::oauth::DeviceAuthorization>),
    ("oauth.grant", read_and_write::<model::oauth::OAuthGrant>),
    ("oauth.token", read_and_write::<model::oauth::OAuthToken>),
    ("product_event.conversion.conversion", read_and_write::<model::product_event::conversion::Conversion>),
    ("product_event.person.person", read_and_write::<model::product_event::person::AnalyticsPerson>),
    ("received.received", read_and_write::<model::received::ReceivedEmail>),
    ("recipient.recipient", read_and_write::<model::recipient::Recipient>),
    ("request_log.logged_request", read_and_write::<model::request_log::LoggedRequest>),
    ("schedule.schedule", read_and_write::<model::schedule::Schedule>),
    ("setup.setup", read_and_write::<model::domain_setup::DomainSetup>),
    ("suppression.opt_out", read_and_write::<model::suppression::OptOut>),
    ("suppression.suppression", read_and_write::<model::suppression::Suppression>),
    ("task.task", read_and_write::<model::task::Task>),
    ("template.bodies", read_and_write::<model::template::TemplateBodies>),
    ("template.template", read_and_write::<model::template::Template>),
    ("template.template_version", read_and_write::<model::template::TemplateVersion>),
    ("tls_report.domain_day", read_and_write::<model::tls_report_delivery::DomainTlsDay>),
    ("tls_report.heard.heard", read_and_write::<message::tls_report::ReceivedTlsReport>),
    ("tracking.tally.tally", read_and_write::<model::tracking::counters::TrackingCounters>),
    ("user.session", read_and_write::<model::user::UserSession>),
    ("user.sign_in_link", read_and_write::<model::user::SignInLink>),
    ("user.user", read_and_write::<model::user::User>),
    ("webhook.webhook", read_and_write::<model::webhook::Webhook>),
    ("affiliate.click.click", read_and_write::<crate::affiliate::click::LinkClick>),
    ("affiliate.partner_link.holder", read_and_write::<crate::affiliate::partner_link::TokenHolder>),
    ("affiliate.portal_link.links", read_and_write::<crate::affiliate::portal_link::IssuedPortalLinks>),
    ("affiliate.processor_event.processor_event", read_and_write::<crate::affiliate::processor_event::ProcessorEvent>),
    ("automation.version_row", read_and_write::<crate::automation::AutomationVersionRow>),
    ("billing.payers", read_and_write::<crate::billing::Payers>),
    ("conversion_export.export", read_and_write::<crate::conversion_export::ConversionExport>),
    ("dns_credential.saved", read_and_write::<crate::dns_credential::SealedDnsCredential>),
    ("lease.node", read_and_write::<crate::lease::Node>),
    ("lease.tenure", read_and_write::<crate::lease::PartitionLease>),
    ("pool.assigned", read_and_write::<crate::pool::AccountPool>),
    ("pool.warming", read_and_write::<crate::pool::PoolWarmUp>),
    ("product_event.kept", read_and_write::<crate::product_event::StoredProductEvent>),
    ("product_event_count.counts", read_and_write::<crate::product_event_count::ProductEventCounts>),
    ("queue_hold.hold", read_and_write::<crate::queue_hold::Hold>),
    ("queue_order.queue_order", read_and_write::<crate::queue_command::BulkQueueCommand>),
    ("approval.count", read_and_write::<SerdeRow<crate::approval::HeldCount>>),
    ("client_sends.sends", read_and_write::<SerdeRow<crate::client_sends::ClientSends>>),
    ("affiliate.balance.balances", read_and_write::<SerdeRow<crate::affiliate::balance::Balances>>),
    ("affiliate.balance.change", read_and_write::<SerdeRow<crate::affiliate::balance::BalanceChange>>),
    ("affiliate.brought.by_link", read_and_write::<SerdeRow<crate::affiliate::referral_counts::ReferralCountsByLink>>),
    ("affiliate.brought.change", read_and_write::<SerdeRow<crate::affiliate::referral_counts::ReferralCountChange>>),
    ("run.by.answer", read_and_write::<crate::automation_run::run_indexes::RunAnswer>),
    ("stream.run", read_and_write::<crate::event_log::EventLogChunk>),
    ("uncounted.entry", read_and_write::<crate::pending_analytics::AnalyticsEntry>),
];

#[test]
fn rows_of_earlier_releases_round_trip() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rows");
    let mut faults = Vec::new();
    for (name, check) in NOUNS {
        let rows = std::fs::read_to_string(directory.join(format!("{name}.jsonl"))).unwrap();
        assert!(!rows.trim().is_empty(), "{name}: no rows");
        faults.extend(check(&rows).err().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), NOUNS.len(), "a file is missing in NOUNS");
}

/// Every noun of `stored!` and `account_rows!` needs a line above and a file.
#[test]
fn every_noun_has_rows() {
    fn count(directory: &Path) -> usize {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let of_file = |path: &Path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().filter(|line| line.starts_with("stored!(") || line.starts_with("account_rows!(")).count()
        };
        entries.map(|path| if path.is_dir() { count(&path) } else { of_file(&path) }).sum()
    }
    let plain = NOUNS.iter().filter(|(name, _)| {
        ["affiliate.balance.", "affiliate.brought.", "client_sends.", "approval.count"]
            .iter()
            .any(|one| name.starts_with(one))
    });
    assert_eq!(count(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) + plain.count(), NOUNS.len());
}
