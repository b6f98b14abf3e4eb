//! The screens: each file has the pages of one subject, as rows of the page table.

pub mod affiliate;
pub mod approvals;
pub mod assets;
pub mod audit_log;
pub mod automations;
pub mod billing;
mod client_policy;
pub mod connected_apps;
pub mod consent;
pub mod conversions;
pub mod credentials;
pub mod device;
pub mod domains;
pub mod emails;
pub mod events;
pub mod funnels;
pub mod logs;
pub mod metrics;
pub mod people;
pub mod received;
pub mod security;
pub mod sign_in;
pub mod start;
pub mod suppressions;
pub mod team;
pub mod templates;
pub mod visits;
pub mod webhooks;

pub use mcp::arguments::encode;

use super::table::PageRow;

/// The rows of all screens.
pub const ALL: &[&[PageRow]] = &[
    start::PAGES,
    sign_in::PAGES,
    emails::PAGES,
    received::PAGES,
    metrics::PAGES,
    templates::PAGES,
    automations::PAGES,
    suppressions::PAGES,
    suppressions::OPT_OUT_PAGES,
    events::PAGES,
    people::PAGES,
    funnels::PAGES,
    visits::PAGES,
    conversions::PAGES,
    affiliate::overview::PAGES,
    affiliate::settings::PAGES,
    affiliate::processor::PAGES,
    affiliate::backfill::PAGES,
    affiliate::audit::PAGES,
    affiliate::partners::PAGES,
    affiliate::ledger::PAGES,
    affiliate::partner::PAGES,
    affiliate::partner_pages::PAGES,
    affiliate::partner_import::PAGES,
    affiliate::campaigns::PAGES,
    affiliate::referrals::PAGES,
    affiliate::commissions::PAGES,
    affiliate::reviews::PAGES,
    affiliate::payout_runs::PAGES,
    affiliate::run_page::PAGES,
    affiliate::run_approval::PAGES,
    affiliate::payouts::PAGES,
    affiliate::payout_results::PAGES,
    domains::PAGES,
    credentials::API_KEY_PAGES,
    credentials::SMTP_PAGES,
    webhooks::PAGES,
    logs::PAGES,
    approvals::PAGES,
    audit_log::PAGES,
    team::PAGES,
    billing::PAGES,
    connected_apps::PAGES,
    consent::PAGES,
    device::PAGES,
    security::PAGES,
];
