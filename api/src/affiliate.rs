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

use crate::operation::{Operation, OperationBuilder, operation};
use crate::prelude::*;

/// OpenAPI tag of the owner's operations.
const OWNER_NOUN: &str = "affiliate_program";

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

/// Starts an operation that is answered 404 if the account has no program.
fn affiliate_operation(method: Method, path: &'static str, id: &'static str) -> OperationBuilder {
    operation(method, path, id).errors(&[ErrorCode::NOT_FOUND])
}

fn partner_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "affiliates");
    vec![
        affiliate_operation(Method::GET, "/affiliates", "list_affiliates")
            .about(tag, "List partners, newest first")
            .sdk("affiliates.list")
            .api_key_or_session(full, partners::list),
        affiliate_operation(Method::POST, "/affiliates", "create_affiliate")
            .about(tag, "Add a partner")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::PLAN_FULL])
            .sdk("affiliates.create")
            .moves_money()
            .mails_later()
            .api_key_or_session(full, partners::create),
        affiliate_operation(Method::GET, "/affiliates/{id}", "get_affiliate")
            .about(tag, "Get a partner with all its links")
            .sdk("affiliates.get")
            .api_key_or_session(full, partners::get),
        affiliate_operation(Method::PATCH, "/affiliates/{id}", "update_affiliate")
            .about(tag, "Update a partner")
            .sdk("affiliates.update")
            .moves_money()
            .api_key_or_session(full, partners::update),
        affiliate_operation(Method::DELETE, "/affiliates/{id}", "delete_affiliate")
            .about(tag, "Delete a partner that has never been paid")
            .sdk("affiliates.delete")
            .moves_money()
            .api_key_or_session(full, partners::delete),
        affiliate_operation(Method::POST, "/affiliates/{id}/approve", "approve_affiliate")
            .about(tag, "Approve a partner")
            .sdk("affiliates.approve")
            .moves_money()
            .mails_later()
            .api_key_or_session(full, partners::approve),
        affiliate_operation(Method::POST, "/affiliates/{id}/reject", "reject_affiliate")
            .about(tag, "Reject a partner")
            .sdk("affiliates.reject")
            .mails_later()
            .api_key_or_session(full, partners::reject),
        affiliate_operation(Method::POST, "/affiliates/{id}/suspend", "suspend_affiliate")
            .about(tag, "Suspend a partner: its links stop redirecting and its payouts stop")
            .sdk("affiliates.suspend")
            .moves_money()
            .api_key_or_session(full, partners::suspend),
        affiliate_operation(Method::GET, "/affiliates/{id}/links", "list_affiliate_links")
            .about(tag, "List a partner's links, newest first")
            .sdk("affiliates.links.list")
            .api_key_or_session(full, links::list),
        affiliate_operation(Method::POST, "/affiliates/{id}/links", "create_affiliate_link")
            .about(tag, "Create a link for a partner")
            .idempotent_storage_cost(IdempotencyScope::CreateLink, &[(Quota::AffiliateLinks, 1)])
            .sdk("affiliates.links.create")
            .api_key_or_session(full, links::create),
        affiliate_operation(Method::DELETE, "/affiliates/{id}/links/{link_id}", "delete_affiliate_link")
            .about(tag, "Delete a link other than the primary one")
            .sdk("affiliates.links.delete")
            .api_key_or_session(full, links::delete),
    ]
}

fn login_link_operations() -> Vec<Operation> {
    vec![
        affiliate_operation(Method::POST, "/affiliates/{id}/login-link", "create_affiliate_login_link")
            .about(
                "affiliates",
                "Create a one-time link that signs a partner in to the portal; it expires after a minute",
            )
            .sdk("affiliates.createLoginLink")
            .risk(Risk::Secret)
            .api_key_or_session(ApiKeyScope::Full, login_link::create),
    ]
}

fn campaign_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "affiliate_campaigns");
    vec![
        affiliate_operation(Method::GET, "/affiliate-campaigns", "list_affiliate_campaigns")
            .about(tag, "List all campaigns, newest first")
            .sdk("affiliateCampaigns.list")
            .api_key_or_session(full, campaigns::list),
        affiliate_operation(Method::POST, "/affiliate-campaigns", "create_affiliate_campaign")
            .about(tag, "Create a campaign")
            .idempotent_storage_cost(IdempotencyScope::CreateCampaign, &[(Quota::AffiliateCampaigns, 1)])
            .sdk("affiliateCampaigns.create")
            .moves_money()
            .api_key_or_session(full, campaigns::create),
        affiliate_operation(Method::GET, "/affiliate-campaigns/{id}", "get_affiliate_campaign")
            .about(tag, "Get a campaign")
            .sdk("affiliateCampaigns.get")
            .api_key_or_session(full, campaigns::get),
        affiliate_operation(Method::PATCH, "/affiliate-campaigns/{id}", "update_affiliate_campaign")
            .about(tag, "Update a campaign; new rates apply to new commissions")
            .sdk("affiliateCampaigns.update")
            .moves_money()
            .api_key_or_session(full, campaigns::update),
    ]
}

fn referral_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "affiliate_referrals");
    vec![
        affiliate_operation(Method::GET, "/affiliate-referrals", "list_affiliate_referrals")
            .about(tag, "List referrals, newest first")
            .sdk("affiliateReferrals.list")
            .api_key_or_session(full, referrals::list),
        affiliate_operation(Method::POST, "/affiliate-referrals", "create_affiliate_referral")
            .about(tag, "Create a referral")
            .idempotent_storage_cost(IdempotencyScope::CreateReferral, &[(Quota::AffiliateReferrals, 1)])
            .sdk("affiliateReferrals.create")
            .moves_money()
            .api_key_or_session(full, referrals::create),
        affiliate_operation(Method::GET, "/affiliate-referrals/{id}", "get_affiliate_referral")
            .about(tag, "Get a referral")
            .sdk("affiliateReferrals.get")
            .api_key_or_session(full, referrals::get),
    ]
}

fn commission_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "affiliate_commissions");
    vec![
        affiliate_operation(Method::GET, "/affiliate-commissions", "list_affiliate_commissions")
            .about(tag, "List commissions, newest first")
            .sdk("affiliateCommissions.list")
            .api_key_or_session(full, commissions::list),
        affiliate_operation(Method::GET, "/affiliate-commissions/{id}", "get_affiliate_commission")
            .about(tag, "Get a commission")
            .sdk("affiliateCommissions.get")
            .api_key_or_session(full, commissions::get),
        affiliate_operation(Method::PATCH, "/affiliate-commissions/{id}", "reverse_affiliate_commission")
            .about(tag, "Reverse a commission that is neither paid nor in a payout")
            .sdk("affiliateCommissions.reverse")
            .risk(Risk::Money)
            .api_key_or_session(full, commissions::reverse),
        affiliate_operation(Method::POST, owner_path!("/commissions/{id}/reinstate"), "reinstate_affiliate_commission")
            .about(OWNER_NOUN, "Reinstate a reversed commission")
            .risk(Risk::Money)
            .owner_idempotent(commissions::reinstate),
        affiliate_operation(Method::GET, owner_path!("/reviews"), "list_affiliate_reviews")
            .about(OWNER_NOUN, "List referrals held for review, newest first")
            .owner(reviews::list),
        affiliate_operation(Method::GET, owner_path!("/reviews/{id}"), "get_affiliate_review")
            .about(OWNER_NOUN, "Get the review of a referral")
            .owner(reviews::get),
        affiliate_operation(Method::POST, owner_path!("/reviews/{id}/allow"), "allow_affiliate_referral")
            .about(OWNER_NOUN, "Allow a referral that is held for review")
            .risk(Risk::Money)
            .owner(reviews::allow),
        affiliate_operation(Method::POST, owner_path!("/reviews/{id}/reject"), "reject_affiliate_referral")
            .about(OWNER_NOUN, "Reject a referral and reverse its commissions")
            .risk(Risk::Money)
            .owner(reviews::reject),
        affiliate_operation(Method::POST, owner_path!("/backfill"), "begin_affiliate_backfill")
            .about(OWNER_NOUN, "Start a backfill of past invoices from the payment processor")
            .risk(Risk::Money)
            .owner_idempotent(backfill::start),
        affiliate_operation(Method::GET, owner_path!("/backfill"), "list_affiliate_backfills")
            .about(OWNER_NOUN, "List backfills, newest first")
            .owner(backfill::list),
        affiliate_operation(Method::GET, owner_path!("/backfill/{id}"), "get_affiliate_backfill")
            .about(OWNER_NOUN, "Get the progress of a backfill")
            .owner(backfill::get),
        affiliate_operation(Method::POST, owner_path!("/imports"), "import_affiliates")
            .about(OWNER_NOUN, "Import a list of partners, or preview the import")
            .risk(Risk::Money)
            .owner(imports::import),
        affiliate_operation(Method::GET, owner_path!("/audit"), "audit_affiliate_program")
            .about(OWNER_NOUN, "Check the invariants of the ledger")
            .owner(audit::get),
    ]
}

fn payout_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "affiliate_payouts");
    vec![
        affiliate_operation(Method::GET, "/affiliate-payouts", "list_affiliate_payouts")
            .about(tag, "List payouts, newest first")
            .sdk("affiliatePayouts.list")
            .api_key_or_session(full, payouts::list),
        affiliate_operation(Method::GET, "/affiliate-payouts/{id}", "get_affiliate_payout")
            .about(tag, "Get a payout")
            .sdk("affiliatePayouts.get")
            .api_key_or_session(full, payouts::get),
        affiliate_operation(Method::POST, "/affiliate-payouts/{id}/mark-paid", "mark_affiliate_payout_paid")
            .about(tag, "Mark a manual payout as paid, with its proof")
            .sdk("affiliatePayouts.markPaid")
            .risk(Risk::Money)
            .api_key_or_session(full, payouts::mark_paid),
        affiliate_operation(Method::POST, owner_path!("/payouts/{id}/fail"), "fail_affiliate_payout")
            .about(OWNER_NOUN, "Mark a payout as failed: its commissions return to the next run")
            .risk(Risk::Money)
            .owner_idempotent(payouts::fail),
        affiliate_operation(Method::POST, owner_path!("/payout-runs"), "draft_affiliate_payout_run")
            .about(OWNER_NOUN, "Draft a payout run of all payable commissions")
            .risk(Risk::Money)
            .owner_idempotent(payout_runs::draft),
        affiliate_operation(Method::GET, owner_path!("/payout-runs"), "list_affiliate_payout_runs")
            .about(OWNER_NOUN, "List payout runs, newest first")
            .owner(payout_runs::list),
        affiliate_operation(Method::GET, owner_path!("/payout-runs/{id}"), "get_affiliate_payout_run")
            .about(OWNER_NOUN, "Get a payout run with its payouts and skipped partners")
            .owner(payout_runs::get),
        affiliate_operation(Method::POST, owner_path!("/payout-runs/{id}/approve"), "approve_affiliate_payout_run")
            .about(OWNER_NOUN, "Approve a payout run in the version that was reviewed")
            .risk(Risk::Payout)
            .owner_idempotent(payout_runs::approve),
        affiliate_operation(Method::POST, owner_path!("/payout-runs/{id}/cancel"), "cancel_affiliate_payout_run")
            .about(OWNER_NOUN, "Cancel a payout run that is not yet approved")
            .risk(Risk::Money)
            .owner_idempotent(payout_runs::cancel),
    ]
}

/// Files that owners exchange with the payment provider.
fn payout_file_operations() -> Vec<Operation> {
    vec![
        affiliate_operation(Method::POST, owner_path!("/payout-runs/{id}/results"), "mark_affiliate_payouts")
            .about(OWNER_NOUN, "Import the results of a run's payouts from the payment provider's file")
            .risk(Risk::Money)
            .owner(payout_results::mark_payouts),
        affiliate_operation(Method::GET, owner_path!("/payout-runs/{id}/csv"), "get_affiliate_payout_file")
            .about(OWNER_NOUN, "Get the payment file of a run for one payout method")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::CONFLICT])
            .risk(Risk::Money)
            .owner(payout_runs::get_file),
        affiliate_operation(Method::GET, owner_path!("/payout-runs/{id}/files"), "list_affiliate_payout_files")
            .about(OWNER_NOUN, "Get all payment files of a run")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::CONFLICT])
            .risk(Risk::Money)
            .owner(payout_runs::list_files),
    ]
}

fn processor_operations() -> Vec<Operation> {
    vec![
        affiliate_operation(Method::POST, "/processor/stripe/{id}", "hear_affiliate_processor")
            .about(OWNER_NOUN, "Receive a Stripe event")
            .errors(processor::RECEIVE_ERRORS)
            .public(processor::receive_event),
        affiliate_operation(Method::GET, owner_path!("/processor/events"), "list_affiliate_processor_events")
            .about(OWNER_NOUN, "List events received from the payment processor, newest first")
            .owner(processor::list),
        affiliate_operation(
            Method::POST,
            owner_path!("/processor/events/{id}/replay"),
            "replay_affiliate_processor_event",
        )
        .about(OWNER_NOUN, "Retry a failed event")
        .owner(processor::replay),
    ]
}

fn owner_operations() -> Vec<Operation> {
    vec![
        affiliate_operation(Method::POST, owner_path!(""), "enable_affiliate_program")
            .about(OWNER_NOUN, "Enable the account's affiliate program")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::PLAN_FULL])
            .risk(Risk::Money)
            .owner(program::enable),
        affiliate_operation(Method::GET, owner_path!(""), "get_affiliate_program")
            .about(OWNER_NOUN, "Get the program, its payment processor and missing setup steps")
            .owner(program::get),
        affiliate_operation(Method::PATCH, owner_path!(""), "update_affiliate_program")
            .about(OWNER_NOUN, "Change settings (all or nothing)")
            .risk(Risk::Money)
            .owner(program::update),
        affiliate_operation(Method::PUT, owner_path!("/campaigns/default"), "set_default_affiliate_campaign")
            .about(OWNER_NOUN, "Create or update the default campaign")
            .risk(Risk::Money)
            .owner(campaigns::set_default),
        affiliate_operation(Method::PUT, owner_path!("/processor"), "connect_affiliate_processor")
            .about(OWNER_NOUN, "Connect a payment processor, replacing the previous one")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::UPSTREAM_ERROR])
            .risk(Risk::Money)
            .owner(program::connect),
        affiliate_operation(Method::POST, owner_path!("/processor/test"), "test_affiliate_processor")
            .about(OWNER_NOUN, "Test the payment processor's key")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::UPSTREAM_ERROR])
            .owner(program::test_processor),
        affiliate_operation(Method::POST, owner_path!("/go-live"), "start_affiliate_program")
            .about(OWNER_NOUN, "Start the program")
            .risk(Risk::Money)
            .owner(program::go_live),
        affiliate_operation(Method::POST, owner_path!("/pause"), "pause_affiliate_program")
            .about(OWNER_NOUN, "Pause the program: visits and new referrals are no longer recorded")
            .risk(Risk::Money)
            .owner(program::pause),
        affiliate_operation(Method::GET, owner_path!("/partners/{id}"), "get_affiliate_inside")
            .about(OWNER_NOUN, "Get a partner including its postback secret")
            .risk(Risk::Secret)
            .owner(owner_partners::get),
        affiliate_operation(Method::GET, owner_path!("/partners/{id}/ledger"), "list_affiliate_ledger")
            .about(
                OWNER_NOUN,
                "List a partner's commissions with their formulas and the balance after each, newest first",
            )
            .owner(ledger::list),
        affiliate_operation(Method::GET, owner_path!("/partners/{id}/postbacks"), "list_affiliate_postbacks")
            .about(OWNER_NOUN, "List a partner's postbacks of the last 30 days, newest first")
            .owner(postbacks::list),
        affiliate_operation(Method::POST, owner_path!("/partners/{id}/reactivate"), "reactivate_affiliate")
            .about(OWNER_NOUN, "Reactivate a suspended partner")
            .owner_idempotent(owner_partners::reactivate),
        affiliate_operation(Method::PUT, owner_path!("/partners/{id}/payout-method"), "set_affiliate_payout_method")
            .about(OWNER_NOUN, "Set a partner's payout method")
            .risk(Risk::Money)
            .owner(owner_partners::set_payout_method),
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
