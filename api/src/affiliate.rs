//! The affiliate program over HTTP (affiliate-api.md): its partners, links, campaigns, referrals and commissions for
//! programs with a full key; for the owner its set-up and what only an owner decides (affiliate-admin.md).
//!
//! ```text
//! call ─► asked (is there a program? then: what is wrong?) ─► affiliate::office ─► answer (etag, kept under its key)
//! ```
//!
//! What is done stands in the room `affiliate`; here it is read, described and answered.

/// The names that an object may have.
macro_rules! names {
    ($($name:literal),* $(,)?) => {
        crate::fields::Names { known: &[$(($name, $name)),*], foreign: &[] }
    };
}

pub mod answer;
pub mod asked;
pub mod audit;
pub mod backfill;
pub mod campaigns;
pub mod commissions;
mod fields;
pub mod imports;
pub mod links;
pub mod login_link;
pub mod owned;
pub mod partners;
pub mod payout_results;
pub mod payout_runs;
pub mod payout_view;
pub mod payouts;
pub mod postbacks;
pub mod processor;
pub mod program;
pub mod referrals;
pub mod reviews;
pub mod settings;
pub mod view;
pub mod visits;

use ::affiliate::ledger::Fault;
use ::affiliate::refusal::Refusal;
use http::Method;
use mail::credential::Scope;
use mail::id::{
    BackfillId, CampaignId, CommissionId, PartnerId, PartnerLinkId, PayoutId, PayoutRunId, ReferralId,
};
use mail::idempotency::Operation as Keyed;
use mail::quota::Noun as Quota;
use queue::quota::QuotaError;
use serde_json::{Value, json};

use crate::call::{Call, Input, Takes};
use crate::operations::{Entry, Operation, operation};
use crate::page::{self, Page};
use crate::problem::{Code, FieldErrors, Problem, RETRY_AFTER_OUTAGE_S};
use crate::room::Room;
use crate::schema::{self, Schemas};
use store::affiliate::listing::Wanted;

/// The owner's paths begin so.
const OWNED: &str = "affiliate_program";

/// The operations of the program.
#[must_use]
pub fn operations() -> Vec<Operation> {
    [
        partner_operations(),
        entrance_operations(),
        campaign_operations(),
        referral_operations(),
        commission_operations(),
        processor_operations(),
        payout_operations(),
        owner_operations(),
        visits::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An operation of a noun that is not there without a program.
fn of(method: Method, path: &'static str, id: &'static str) -> Entry {
    operation(method, path, id).fails(&[Code::NOT_FOUND])
}

fn partner_operations() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "affiliates");
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        of(get.clone(), "/affiliates", "list_affiliates")
            .about(noun, "List partners, newest first")
            .either(full, partners::list),
        of(post.clone(), "/affiliates", "create_affiliate")
            .about(noun, "Add a partner")
            .fails(&[Code::NOT_FOUND, Code::PLAN_FULL])
            .either(full, partners::create),
        of(get.clone(), "/affiliates/{id}", "get_affiliate")
            .about(noun, "Get a partner with all its links")
            .either(full, partners::get),
        of(Method::PATCH, "/affiliates/{id}", "update_affiliate")
            .about(noun, "Change what is known of a partner")
            .either(full, partners::change),
        of(delete.clone(), "/affiliates/{id}", "delete_affiliate")
            .about(noun, "Delete a partner who was never paid")
            .either(full, partners::delete),
        of(post.clone(), "/affiliates/{id}/approve", "approve_affiliate")
            .about(noun, "Make a partner active")
            .either(full, partners::approve),
        of(post.clone(), "/affiliates/{id}/reject", "reject_affiliate")
            .about(noun, "Refuse a partner")
            .either(full, partners::reject),
        of(post.clone(), "/affiliates/{id}/suspend", "suspend_affiliate")
            .about(noun, "Suspend a partner: its links lead nobody any more, and it is not paid")
            .either(full, partners::suspend),
        of(get, "/affiliates/{id}/links", "list_affiliate_links")
            .about(noun, "List a partner's links, newest first")
            .either(full, links::list),
        of(post, "/affiliates/{id}/links", "create_affiliate_link")
            .about(noun, "Give a partner a link")
            .stores_once(Keyed::CreateLink, &[(Quota::AffiliateLinks, 1)])
            .either(full, links::create),
        of(delete, "/affiliates/{id}/links/{link_id}", "delete_affiliate_link")
            .about(noun, "Delete a link that is not the primary one")
            .either(full, links::delete),
    ]
}

fn entrance_operations() -> Vec<Operation> {
    vec![
        of(Method::POST, "/affiliates/{id}/login-link", "create_affiliate_login_link")
            .about("affiliates", "Make a link that signs a partner in to the portal: once, within a minute")
            .either(Scope::Full, login_link::create),
    ]
}

fn campaign_operations() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "affiliate_campaigns");
    vec![
        of(Method::GET, "/affiliate-campaigns", "list_affiliate_campaigns")
            .about(noun, "List campaigns, newest first, all of them")
            .either(full, campaigns::list),
        of(Method::POST, "/affiliate-campaigns", "create_affiliate_campaign")
            .about(noun, "Make a campaign")
            .stores_once(Keyed::CreateCampaign, &[(Quota::AffiliateCampaigns, 1)])
            .either(full, campaigns::create),
        of(Method::GET, "/affiliate-campaigns/{id}", "get_affiliate_campaign")
            .about(noun, "Get a campaign")
            .either(full, campaigns::get),
        of(Method::PATCH, "/affiliate-campaigns/{id}", "update_affiliate_campaign")
            .about(noun, "Change a campaign; new rates hold for new commissions")
            .either(full, campaigns::change),
    ]
}

fn referral_operations() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "affiliate_referrals");
    vec![
        of(Method::GET, "/affiliate-referrals", "list_affiliate_referrals")
            .about(noun, "List referrals, newest first")
            .either(full, referrals::list),
        of(Method::POST, "/affiliate-referrals", "create_affiliate_referral")
            .about(noun, "Record a person whom a partner brought")
            .stores_once(Keyed::CreateReferral, &[(Quota::AffiliateReferrals, 1)])
            .either(full, referrals::create),
        of(Method::GET, "/affiliate-referrals/{id}", "get_affiliate_referral")
            .about(noun, "Get a referral")
            .either(full, referrals::get),
    ]
}

fn commission_operations() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "affiliate_commissions");
    vec![
        of(Method::GET, "/affiliate-commissions", "list_affiliate_commissions")
            .about(noun, "List commissions, newest first")
            .either(full, commissions::list),
        of(Method::GET, "/affiliate-commissions/{id}", "get_affiliate_commission")
            .about(noun, "Get a commission")
            .either(full, commissions::get),
        of(Method::PATCH, "/affiliate-commissions/{id}", "reverse_affiliate_commission")
            .about(noun, "Take a commission back, while it is neither paid nor in a payout")
            .either(full, commissions::reverse),
        of(
            Method::POST,
            "/dashboard/api/affiliate-program/commissions/{id}/reinstate",
            "reinstate_affiliate_commission",
        )
        .about(OWNED, "Bring a commission back that was taken back")
        .owner_keeps(commissions::reinstate),
        of(Method::GET, "/dashboard/api/affiliate-program/reviews", "list_affiliate_reviews")
            .about(OWNED, "List referrals that stand out, newest first")
            .owner(reviews::list),
        of(Method::POST, "/dashboard/api/affiliate-program/reviews/{id}/allow", "allow_affiliate_referral")
            .about(OWNED, "Say that a referral is fine")
            .owner(reviews::allow),
        of(Method::POST, "/dashboard/api/affiliate-program/reviews/{id}/reject", "reject_affiliate_referral")
            .about(OWNED, "Say that a referral is none, and take back what it earned")
            .owner(reviews::reject),
        of(Method::POST, "/dashboard/api/affiliate-program/backfill", "begin_affiliate_backfill")
            .about(OWNED, "Read what the payment processor knows of the past into the ledger")
            .owner_keeps(backfill::begin),
        of(Method::GET, "/dashboard/api/affiliate-program/backfill/{id}", "get_affiliate_backfill")
            .about(OWNED, "Get how far a back-fill is")
            .owner(backfill::get),
        of(Method::POST, "/dashboard/api/affiliate-program/imports", "import_affiliates")
            .about(OWNED, "Import a list of partners, or say what would become of it")
            .owner(imports::import),
        of(Method::GET, "/dashboard/api/affiliate-program/audit", "audit_affiliate_program")
            .about(OWNED, "Look whether the books are as they must be")
            .owner(audit::get),
    ]
}

fn payout_operations() -> Vec<Operation> {
    let (full, noun) = (Scope::Full, "affiliate_payouts");
    let (get, post) = (Method::GET, Method::POST);
    vec![
        of(get.clone(), "/affiliate-payouts", "list_affiliate_payouts")
            .about(noun, "List payouts, newest first")
            .either(full, payouts::list),
        of(get.clone(), "/affiliate-payouts/{id}", "get_affiliate_payout")
            .about(noun, "Get a payout")
            .either(full, payouts::get),
        of(post.clone(), "/affiliate-payouts/{id}/mark-paid", "mark_affiliate_payout_paid")
            .about(noun, "Say that a payout was paid by hand, and what proves it")
            .either(full, payouts::mark_paid),
        of(post.clone(), "/dashboard/api/affiliate-program/payouts/{id}/fail", "fail_affiliate_payout")
            .about(OWNED, "Say that a payout failed: its commissions return to the next run")
            .owner_keeps(payouts::fail),
        of(post.clone(), "/dashboard/api/affiliate-program/payout-runs", "draft_affiliate_payout_run")
            .about(OWNED, "Draft a payout run: all that was earned and can be paid")
            .owner_keeps(payout_runs::draft),
        of(get.clone(), "/dashboard/api/affiliate-program/payout-runs", "list_affiliate_payout_runs")
            .about(OWNED, "List payout runs, newest first")
            .owner(payout_runs::list),
        of(get.clone(), "/dashboard/api/affiliate-program/payout-runs/{id}", "get_affiliate_payout_run")
            .about(OWNED, "Get a payout run with its payouts, and with who is not in it")
            .owner(payout_runs::get),
        of(
            post.clone(),
            "/dashboard/api/affiliate-program/payout-runs/{id}/approve",
            "approve_affiliate_payout_run",
        )
        .about(OWNED, "Approve a payout run as it was seen")
        .fails(&[Code::NOT_FOUND, Code::REAUTHENTICATION_REQUIRED])
        .owner_keeps(payout_runs::approve),
        of(post, "/dashboard/api/affiliate-program/payout-runs/{id}/cancel", "cancel_affiliate_payout_run")
            .about(OWNED, "Cancel a payout run that is not approved")
            .owner_keeps(payout_runs::cancel),
        of(
            Method::POST,
            "/dashboard/api/affiliate-program/payout-runs/{id}/results",
            "mark_affiliate_payouts",
        )
        .about(OWNED, "Say what became of a run's payouts, by the file of who paid them")
        .owner(payout_results::mark),
        of(get.clone(), "/dashboard/api/affiliate-program/payout-runs/{id}/csv", "get_affiliate_payout_file")
            .about(OWNED, "Get a file of a run's payouts, for the way by which they are paid")
            .fails(&[Code::NOT_FOUND, Code::CONFLICT])
            .owner(payout_runs::csv),
        of(get, "/dashboard/api/affiliate-program/payout-runs/{id}/files", "list_affiliate_payout_files")
            .about(OWNED, "Get all files of a run's payouts")
            .fails(&[Code::NOT_FOUND, Code::CONFLICT])
            .owner(payout_runs::files),
    ]
}

fn processor_operations() -> Vec<Operation> {
    vec![
        of(Method::POST, "/processor/stripe/{id}", "hear_affiliate_processor")
            .about(OWNED, "Take an event of the payment processor's; it sends them")
            .fails(processor::HEARS)
            .public(processor::hear),
        of(
            Method::GET,
            "/dashboard/api/affiliate-program/processor/events",
            "list_affiliate_processor_events",
        )
        .about(OWNED, "List the payment processor's events that came in, newest first")
        .owner(processor::events),
        of(
            Method::POST,
            "/dashboard/api/affiliate-program/processor/events/{id}/replay",
            "replay_affiliate_processor_event",
        )
        .about(OWNED, "Try an event again that failed")
        .owner(processor::replay),
    ]
}

fn owner_operations() -> Vec<Operation> {
    let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
    vec![
        of(post.clone(), "/dashboard/api/affiliate-program", "enable_affiliate_program")
            .about(OWNED, "Enable the account's affiliate program")
            .fails(&[Code::NOT_FOUND, Code::PLAN_FULL])
            .owner(program::enable),
        of(get.clone(), "/dashboard/api/affiliate-program", "get_affiliate_program")
            .about(OWNED, "Get the program, its processor and what is missing")
            .owner(program::get),
        of(Method::PATCH, "/dashboard/api/affiliate-program", "update_affiliate_program")
            .about(OWNED, "Change settings, all that are given or none")
            .owner(program::set),
        of(
            put.clone(),
            "/dashboard/api/affiliate-program/campaigns/default",
            "set_default_affiliate_campaign",
        )
        .about(OWNED, "Make the default campaign, or change it")
        .owner(campaigns::set_default),
        of(put.clone(), "/dashboard/api/affiliate-program/processor", "connect_affiliate_processor")
            .about(OWNED, "Connect the payment processor, in place of the one before")
            .fails(&[Code::NOT_FOUND, Code::UPSTREAM_ERROR])
            .owner(program::connect),
        of(post.clone(), "/dashboard/api/affiliate-program/processor/test", "test_affiliate_processor")
            .about(OWNED, "Ask the payment processor whether the key is good")
            .fails(&[Code::NOT_FOUND, Code::UPSTREAM_ERROR])
            .owner(program::test),
        of(post.clone(), "/dashboard/api/affiliate-program/go-live", "start_affiliate_program")
            .about(OWNED, "Let the program go live")
            .owner(program::go_live),
        of(post.clone(), "/dashboard/api/affiliate-program/pause", "pause_affiliate_program")
            .about(OWNED, "Pause the program: no visits, no new referrals")
            .owner(program::pause),
        of(get, "/dashboard/api/affiliate-program/partners/{id}", "get_affiliate_inside")
            .about(OWNED, "Get a partner with what the API writes and never shows")
            .owner(owned::show),
        of(
            Method::GET,
            "/dashboard/api/affiliate-program/partners/{id}/postbacks",
            "list_affiliate_postbacks",
        )
        .about(OWNED, "List what was posted to a partner's own address in the last thirty days, newest first")
        .owner(postbacks::list),
        of(post, "/dashboard/api/affiliate-program/partners/{id}/reactivate", "reactivate_affiliate")
            .about(OWNED, "Make a suspended partner active again")
            .owner_keeps(owned::reactivate),
        of(
            put,
            "/dashboard/api/affiliate-program/partners/{id}/payout-method",
            "set_affiliate_payout_method",
        )
        .about(OWNED, "Set where a partner's money goes")
        .owner(owned::set_payout),
    ]
}

/// What a refusal is to an HTTP client.
pub(crate) fn refused(room: &Room, refusal: Refusal) -> Problem {
    let text = refusal.to_string();
    match refusal {
        Refusal::NotSetUp => Problem::new(Code::NOT_FOUND, "The affiliate program is not set up"),
        Refusal::Unknown(noun) => Problem::not_found(noun.as_str()),
        Refusal::Fields(fields) => {
            let mut errors = FieldErrors::default();
            fields.iter().for_each(|(name, why)| errors.add(name, why));
            errors.into()
        }
        Refusal::WrongMove(wrong) => Problem::field("status", text)
            .detail("status", json!(wrong.status))
            .detail("action", json!(wrong.action)),
        Refusal::Obstacle(_) => Problem::new(Code::CONFLICT, sentence(&text)),
        Refusal::Steps(missing) => {
            Problem::new(Code::CONFLICT, sentence(&text)).details(json!({"missing": missing}))
        }
        Refusal::Ban(_) => Problem::new(Code::FORBIDDEN, sentence(&text)),
        Refusal::Quota(full) => Problem::full(full, room.upgrade_url()),
        Refusal::Counting(noun) => Problem::of_quota(QuotaError::Counting(noun), room.upgrade_url()),
        Refusal::Upstream(_) => Problem::new(Code::UPSTREAM_ERROR, sentence(&text)),
        Refusal::Line(refused) => {
            let code = if refused.is_forbidden() { Code::FORBIDDEN } else { Code::CONFLICT };
            Problem::new(code, sentence(&text))
        }
        // Sums that would not fit are the program's own figures, and no fault of the server.
        Refusal::Books(Fault::Arithmetic(_)) => Problem::new(Code::CONFLICT, sentence(&text)),
        Refusal::Books(Fault::Budget(_)) => Problem::unavailable(sentence(&text), RETRY_AFTER_OUTAGE_S),
        Refusal::Seal | Refusal::Books(_) => Problem::internal(text),
        Refusal::Read(error) => error.into(),
        Refusal::Commit(error) => Problem::of_refusal(error.into(), room.upgrade_url()),
    }
}

/// With a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

/// Makes the type of an id in a path. What cannot be an id is the id of nothing.
macro_rules! in_path {
    ($(#[$doc:meta])* $name:ident($id:ty) $about:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name(Option<$id>);

        impl $name {
            fn parameter() -> Value {
                schema::path_parameter("id", $about)
            }

            fn of(call: &Call) -> Self {
                Self(call.path_parameter("id").parse().ok())
            }

            fn id(self, noun: ::affiliate::refusal::Noun) -> Result<$id, Problem> {
                self.0.ok_or_else(|| Problem::not_found(noun.as_str()))
            }
        }

        impl Input for $name {
            fn describe(_: &mut Schemas) -> Takes {
                Takes { parameters: vec![Self::parameter()], ..Takes::default() }
            }

            fn read(call: &Call) -> Result<Self, Problem> {
                Ok(Self::of(call))
            }
        }
    };
}

in_path! {
    /// A partner, named in the path.
    OfPartner(PartnerId) "The partner's id (`aff_…`)"
}
in_path! {
    /// A campaign, named in the path.
    OfCampaign(CampaignId) "The campaign's id (`cmp_…`)"
}
in_path! {
    /// A back-fill, named in the path.
    OfBackfill(BackfillId) "The back-fill's id (`bkf_…`)"
}
in_path! {
    /// A commission, named in the path.
    OfCommission(CommissionId) "The commission's id (`com_…`)"
}
in_path! {
    /// A payout, named in the path.
    OfPayout(PayoutId) "The payout's id (`pay_…`)"
}
in_path! {
    /// A payout run, named in the path.
    OfRun(PayoutRunId) "The payout run's id (`prn_…`)"
}
in_path! {
    /// A referral, named in the path.
    OfReferral(ReferralId) "The referral's id (`ref_…`)"
}

/// A link of a partner, both named in the path.
#[derive(Debug, Clone, Copy)]
pub struct OfLink(OfPartner, Option<PartnerLinkId>);

impl Input for OfLink {
    fn describe(_: &mut Schemas) -> Takes {
        let link = schema::path_parameter("link_id", "The link's id (`afl_…`)");
        Takes { parameters: vec![OfPartner::parameter(), link], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(OfPartner::of(call), call.path_parameter("link_id").parse().ok()))
    }
}

/// The page of a list that is asked for.
fn wanted(page: &Page, kind: u8) -> Result<Wanted, Problem> {
    Ok(Wanted { before: page.before_id(kind)?, limit: page.limit, from: None })
}

/// The parameter of a filter by a closed set of words.
fn several(name: &str, words: &[&str], description: &str) -> Value {
    let items = json!({"type": "array", "items": {"type": "string", "enum": words}});
    let mut parameter = schema::query_parameter(name, description, items);
    (parameter["style"], parameter["explode"]) = (json!("form"), json!(false));
    parameter
}

/// A filter by one value.
fn filter<T: std::str::FromStr>(
    given: &[(String, String)],
    name: &str,
    what: &str,
) -> Result<Option<T>, Problem> {
    let text = page::one(given, name)?;
    let refused = || Problem::field(name, format!("must be {what}"));
    text.map(|text| text.trim().parse().map_err(|_| refused())).transpose()
}
