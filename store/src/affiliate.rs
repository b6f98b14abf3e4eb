//! The affiliate program's rows: a file for each noun, and how they are listed.

pub mod adjustment;
pub mod backfill;
pub mod balance;
pub mod brought;
pub mod campaign;
pub mod click;
pub mod click_count;
pub mod commission;
pub mod heard;
pub mod latest;
pub mod listing;
pub mod own_visitor;
pub mod partner;
pub mod partner_letter;
pub mod partner_link;
pub mod payout;
pub mod payout_run;
pub mod payout_work;
pub mod portal_link;
pub mod portal_session;
pub mod processor_event;
pub mod program;
pub mod referral;
pub mod sums;
pub mod tally;
pub mod visit;

/// Where a row is found by a field of it: a byte for the field, the field's value, and then the row's id.
type IndexValue = (u8, Vec<u8>);
