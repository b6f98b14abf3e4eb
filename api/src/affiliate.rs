//! HTTP API of the affiliate program: partners, links, campaigns, referrals, commissions and payouts
//! with a full API key; set-up and owner-only decisions with the owner's session.
//!
//! ```text
//! request ─► request.rs (does the program exist? then: is the input valid?) ─► affiliate service
//!         ─► response.rs (etag, response stored under the idempotency key)
//! ```
//!
//! The business logic is in the crate `affiliate`; this module parses requests and renders responses.

/// Lists the field names that a JSON object accepts.
macro_rules! names {
    ($($name:literal),* $(,)?) => {
        httpd::fields::FieldNames { known: &[$(($name, $name)),*], foreign: &[] }
    };
}

pub mod audit;
pub mod backfill;
pub mod calculation;
pub mod campaigns;
pub mod commissions;
mod fields;
pub mod imports;
pub mod ledger;
pub mod links;
mod list_query;
pub mod login_link;
pub mod owner_partners;
pub mod partners;
pub mod path;
pub mod payout_results;
pub mod payout_runs;
pub mod payout_view;
pub mod payouts;
pub mod postbacks;
pub mod processor;
pub mod program;
mod program_fields;
pub mod referrals;
pub(crate) mod refusal;
pub mod request;
pub mod response;
pub mod reviews;
pub mod settings;
pub mod view;
pub mod visits;

use model::idempotency::IdempotencyScope;
use model::quota::Noun as Quota;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// The owner's operations.
const OWNER: OperationTag = program_tag("affiliate_program");

/// All operations of the affiliate program.
pub fn operations() -> Vec<Operation> {
    [
        partner_operations(),
        login_link_operations(),
        campaign_operations(),
        referral_operations(),
        commission_operations(),
        processor_operations(),
        payout_operations(),
        payout_file_operations(),
        owner_operations(),
        visits::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A path of the owner's operations.
macro_rules! owner_path {
    ($path:literal) => {
        concat!("/dashboard/api/affiliate-program", $path)
    };
}

/// The tag of operations that are answered 404 if the account has no program.
const fn program_tag(name: &'static str) -> OperationTag {
    OperationTag::new(name).errors(&[ErrorCode::NOT_FOUND])
}

fn partner_operations() -> Vec<Operation> {
    let tag = program_tag("affiliates");
    vec![
        tag.get("/affiliates", "List partners, newest first")
            .full_key_or_session(("list_affiliates", "affiliates.list"), partners::list),
        tag.post("/affiliates", "Add a partner")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::PLAN_FULL])
            .moves_money()
            .mails_later()
            .full_key_or_session(("create_affiliate", "affiliates.create"), partners::create),
        tag.get("/affiliates/{id}", "Get a partner with all its links")
            .full_key_or_session(("get_affiliate", "affiliates.get"), partners::get),
        tag.patch("/affiliates/{id}", "Update a partner")
            .moves_money()
            .full_key_or_session(("update_affiliate", "affiliates.update"), partners::update),
        tag.delete("/affiliates/{id}", "Delete a partner that has never been paid")
            .moves_money()
            .full_key_or_session(("delete_affiliate", "affiliates.delete"), partners::delete),
        tag.post("/affiliates/{id}/approve", "Approve a partner")
            .moves_money()
            .mails_later()
            .full_key_or_session(("approve_affiliate", "affiliates.approve"), partners::approve),
        tag.post("/affiliates/{id}/reject", "Reject a partner")
            .mails_later()
            .full_key_or_session(("reject_affiliate", "affiliates.reject"), partners::reject),
        tag.post("/affiliates/{id}/suspend", "Suspend a partner: its links stop redirecting and its payouts stop")
            .moves_money()
            .full_key_or_session(("suspend_affiliate", "affiliates.suspend"), partners::suspend),
        tag.get("/affiliates/{id}/links", "List a partner's links, newest first")
            .full_key_or_session(("list_affiliate_links", "affiliates.links.list"), links::list),
        tag.post("/affiliates/{id}/links", "Create a link for a partner")
            .idempotent_storage_cost(IdempotencyScope::CreateLink, &[(Quota::AffiliateLinks, 1)])
            .full_key_or_session(("create_affiliate_link", "affiliates.links.create"), links::create),
        tag.delete("/affiliates/{id}/links/{link_id}", "Delete a link other than the primary one")
            .full_key_or_session(("delete_affiliate_link", "affiliates.links.delete"), links::delete),
    ]
}

fn login_link_operations() -> Vec<Operation> {
    let tag = program_tag("affiliates");
    vec![
        tag.post(
            "/affiliates/{id}/login-link",
            "Create a one-time link that signs a partner in to the portal; it expires after a minute",
        )
        .risk(Risk::Secret)
        .full_key_or_session(("create_affiliate_login_link", "affiliates.createLoginLink"), login_link::create),
    ]
}

fn campaign_operations() -> Vec<Operation> {
    let tag = program_tag("affiliate_campaigns");
    vec![
        tag.get("/affiliate-campaigns", "List all campaigns, newest first")
            .full_key_or_session(("list_affiliate_campaigns", "affiliateCampaigns.list"), campaigns::list),
        tag.post("/affiliate-campaigns", "Create a campaign")
            .idempotent_storage_cost(IdempotencyScope::CreateCampaign, &[(Quota::AffiliateCampaigns, 1)])
            .moves_money()
            .full_key_or_session(("create_affiliate_campaign", "affiliateCampaigns.create"), campaigns::create),
        tag.get("/affiliate-campaigns/{id}", "Get a campaign")
            .full_key_or_session(("get_affiliate_campaign", "affiliateCampaigns.get"), campaigns::get),
        tag.patch("/affiliate-campaigns/{id}", "Update a campaign; new rates apply to new commissions")
            .moves_money()
            .full_key_or_session(("update_affiliate_campaign", "affiliateCampaigns.update"), campaigns::update),
    ]
}

fn referral_operations() -> Vec<Operation> {
    let tag = program_tag("affiliate_referrals");
    vec![
        tag.get("/affiliate-referrals", "List referrals, newest first")
            .full_key_or_session(("list_affiliate_referrals", "affiliateReferrals.list"), referrals::list),
        tag.post("/affiliate-referrals", "Create a referral")
            .idempotent_storage_cost(IdempotencyScope::CreateReferral, &[(Quota::AffiliateReferrals, 1)])
            .moves_money()
            .full_key_or_session(("create_affiliate_referral", "affiliateReferrals.create"), referrals::create),
        tag.get("/affiliate-referrals/{id}", "Get a referral")
            .full_key_or_session(("get_affiliate_referral", "affiliateReferrals.get"), referrals::get),
    ]
}

fn commission_operations() -> Vec<Operation> {
    let (tag, own) = (program_tag("affiliate_commissions"), OWNER);
    vec![
        tag.get("/affiliate-commissions", "List commissions, newest first")
            .full_key_or_session(("list_affiliate_commissions", "affiliateCommissions.list"), commissions::list),
        tag.get("/affiliate-commissions/{id}", "Get a commission")
            .full_key_or_session(("get_affiliate_commission", "affiliateCommissions.get"), commissions::get),
        tag.patch("/affiliate-commissions/{id}", "Reverse a commission that is neither paid nor in a payout")
            .risk(Risk::Money)
            .full_key_or_session(
                ("reverse_affiliate_commission", "affiliateCommissions.reverse"),
                commissions::reverse,
            ),
        own.post(owner_path!("/commissions/{id}/reinstate"), "Reinstate a reversed commission")
            .risk(Risk::Money)
            .owner_idempotent("reinstate_affiliate_commission", commissions::reinstate),
        own.get(owner_path!("/reviews"), "List referrals held for review, newest first")
            .owner("list_affiliate_reviews", reviews::list),
        own.get(owner_path!("/reviews/{id}"), "Get the review of a referral")
            .owner("get_affiliate_review", reviews::get),
        own.post(owner_path!("/reviews/{id}/allow"), "Allow a referral that is held for review")
            .risk(Risk::Money)
            .owner("allow_affiliate_referral", reviews::allow),
        own.post(owner_path!("/reviews/{id}/reject"), "Reject a referral and reverse its commissions")
            .risk(Risk::Money)
            .owner("reject_affiliate_referral", reviews::reject),
        own.post(owner_path!("/backfill"), "Start a backfill of past invoices from the payment processor")
            .risk(Risk::Money)
            .owner_idempotent("begin_affiliate_backfill", backfill::start),
        own.get(owner_path!("/backfill"), "List backfills, newest first")
            .owner("list_affiliate_backfills", backfill::list),
        own.get(owner_path!("/backfill/{id}"), "Get the progress of a backfill")
            .owner("get_affiliate_backfill", backfill::get),
        own.post(owner_path!("/imports"), "Import a list of partners, or preview the import")
            .risk(Risk::Money)
            .owner("import_affiliates", imports::import),
        own.get(owner_path!("/audit"), "Check the invariants of the ledger")
            .owner("audit_affiliate_program", audit::get),
    ]
}

fn payout_operations() -> Vec<Operation> {
    let (tag, own) = (program_tag("affiliate_payouts"), OWNER);
    vec![
        tag.get("/affiliate-payouts", "List payouts, newest first")
            .full_key_or_session(("list_affiliate_payouts", "affiliatePayouts.list"), payouts::list),
        tag.get("/affiliate-payouts/{id}", "Get a payout")
            .full_key_or_session(("get_affiliate_payout", "affiliatePayouts.get"), payouts::get),
        tag.post("/affiliate-payouts/{id}/mark-paid", "Mark a manual payout as paid, with its proof")
            .risk(Risk::Money)
            .full_key_or_session(("mark_affiliate_payout_paid", "affiliatePayouts.markPaid"), payouts::mark_paid),
        own.post(owner_path!("/payouts/{id}/fail"), "Mark a payout as failed: its commissions return to the next run")
            .risk(Risk::Money)
            .owner_idempotent("fail_affiliate_payout", payouts::fail),
        own.post(owner_path!("/payout-runs"), "Draft a payout run of all payable commissions")
            .risk(Risk::Money)
            .owner_idempotent("draft_affiliate_payout_run", payout_runs::draft),
        own.get(owner_path!("/payout-runs"), "List payout runs, newest first")
            .owner("list_affiliate_payout_runs", payout_runs::list),
        own.get(owner_path!("/payout-runs/{id}"), "Get a payout run with its payouts and skipped partners")
            .owner("get_affiliate_payout_run", payout_runs::get),
        own.post(owner_path!("/payout-runs/{id}/approve"), "Approve a payout run in the version that was reviewed")
            .risk(Risk::Payout)
            .owner_idempotent("approve_affiliate_payout_run", payout_runs::approve),
        own.post(owner_path!("/payout-runs/{id}/cancel"), "Cancel a payout run that is not yet approved")
            .risk(Risk::Money)
            .owner_idempotent("cancel_affiliate_payout_run", payout_runs::cancel),
    ]
}

/// Files that owners exchange with the payment provider.
fn payout_file_operations() -> Vec<Operation> {
    let own = OWNER;
    vec![
        own.post(
            owner_path!("/payout-runs/{id}/results"),
            "Import the results of a run's payouts from the payment provider's file",
        )
        .risk(Risk::Money)
        .owner("mark_affiliate_payouts", payout_results::mark_payouts),
        own.get(owner_path!("/payout-runs/{id}/csv"), "Get the payment file of a run for one payout method")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::CONFLICT])
            .risk(Risk::Money)
            .owner("get_affiliate_payout_file", payout_runs::get_file),
        own.get(owner_path!("/payout-runs/{id}/files"), "Get all payment files of a run")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::CONFLICT])
            .risk(Risk::Money)
            .owner("list_affiliate_payout_files", payout_runs::list_files),
    ]
}

fn processor_operations() -> Vec<Operation> {
    let own = OWNER;
    vec![
        own.post("/processor/stripe/{id}", "Receive a Stripe event")
            .errors(processor::RECEIVE_ERRORS)
            .public("hear_affiliate_processor", processor::receive_event),
        own.get(owner_path!("/processor/events"), "List events received from the payment processor, newest first")
            .owner("list_affiliate_processor_events", processor::list),
        own.post(owner_path!("/processor/events/{id}/replay"), "Retry a failed event")
            .owner("replay_affiliate_processor_event", processor::replay),
    ]
}

fn owner_operations() -> Vec<Operation> {
    let own = OWNER;
    vec![
        own.post(owner_path!(""), "Enable the account's affiliate program")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::PLAN_FULL])
            .risk(Risk::Money)
            .owner("enable_affiliate_program", program::enable),
        own.get(owner_path!(""), "Get the program, its payment processor and missing setup steps")
            .owner("get_affiliate_program", program::get),
        own.patch(owner_path!(""), "Change settings (all or nothing)")
            .risk(Risk::Money)
            .owner("update_affiliate_program", program::update),
        own.put(owner_path!("/campaigns/default"), "Create or update the default campaign")
            .risk(Risk::Money)
            .owner("set_default_affiliate_campaign", campaigns::set_default),
        own.put(owner_path!("/processor"), "Connect a payment processor, replacing the previous one")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::UPSTREAM_ERROR])
            .risk(Risk::Money)
            .owner("connect_affiliate_processor", program::connect),
        own.post(owner_path!("/processor/test"), "Test the payment processor's key")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::UPSTREAM_ERROR])
            .owner("test_affiliate_processor", program::test_processor),
        own.post(owner_path!("/go-live"), "Start the program")
            .risk(Risk::Money)
            .owner("start_affiliate_program", program::go_live),
        own.post(owner_path!("/pause"), "Pause the program: visits and new referrals are no longer recorded")
            .risk(Risk::Money)
            .owner("pause_affiliate_program", program::pause),
        own.get(owner_path!("/partners/{id}"), "Get a partner including its postback secret")
            .risk(Risk::Secret)
            .owner("get_affiliate_inside", owner_partners::get),
        own.get(
            owner_path!("/partners/{id}/ledger"),
            "List a partner's commissions with their formulas and the balance after each, newest first",
        )
        .owner("list_affiliate_ledger", ledger::list),
        own.get(
            owner_path!("/partners/{id}/postbacks"),
            "List a partner's postbacks of the last 30 days, newest first",
        )
        .owner("list_affiliate_postbacks", postbacks::list),
        own.post(owner_path!("/partners/{id}/reactivate"), "Reactivate a suspended partner")
            .owner_idempotent("reactivate_affiliate", owner_partners::reactivate),
        own.put(owner_path!("/partners/{id}/payout-method"), "Set a partner's payout method")
            .risk(Risk::Money)
            .owner("set_affiliate_payout_method", owner_partners::set_payout_method),
    ]
}

#[cfg(test)]
mod tests {
    use http::Method;

    use crate::operations::operation_table;

    /// Invariant I12 of the ledger: no API key changes a payout run, or a commission except by reversing it.
    #[test]
    fn no_api_key_changes_a_run() {
        let changes = operation_table().into_iter().filter(|operation| operation.method != Method::GET);
        let by_key: Vec<_> = changes.filter(|operation| operation.scope().is_some()).collect();
        assert!(by_key.iter().all(|operation| !operation.path.contains("payout-runs")));
        let of_commissions = by_key.iter().filter(|operation| operation.path.contains("commission"));
        assert_eq!(of_commissions.map(|operation| operation.id).collect::<Vec<_>>(), ["reverse_affiliate_commission"]);
    }
}
