//! Rows of the affiliate program: one file per noun, and the secondary indexes that list them.

pub mod adjustment;
pub mod backfill;
pub mod balance;
pub mod campaign;
pub mod click;
pub mod click_count;
pub mod commission;
pub mod customer_counts;
pub mod limit_guard;
pub mod listing;
pub mod partner;
pub mod partner_email;
pub mod partner_link;
pub mod payout;
pub mod payout_job;
pub mod payout_run;
pub mod portal_link;
pub mod portal_session;
pub mod processor_event;
pub mod processor_state;
pub mod program;
pub mod referral;
pub mod referral_counts;
pub mod self_referral_guard;
pub mod sums;
pub mod visit;

/// A field number and the field's value, under which a row is listed in a secondary index.
type IndexValue = (u8, Vec<u8>);
