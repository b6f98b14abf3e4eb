//! Advice about bounce and complaint rates: their limits, and what to do when they are too high.

use super::counts::{Counts, Rate};
use crate::dashboard::kit::chart::Unit;
use crate::dashboard::prelude::*;

/// The highest rates that large mailbox providers tolerate for long, in percent.
pub(super) const BOUNCES_MAX: f64 = 2.0;
pub(super) const COMPLAINTS_MAX: f64 = 0.1;

/// Notices about rates that are too high.
pub(super) fn advice(total: &Counts, range: DateRange) -> impl Renderable {
    let is_provider = total.sent == 0;
    let above = |rate: Rate, max: f64| total.rate(rate, is_provider).filter(|rate| *rate > max);
    let (bounces, complaints) = (above(Rate::Bounce, BOUNCES_MAX), above(Rate::Complaint, COMPLAINTS_MAX));
    let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
    let last = range.to.checked_sub(jiff::SignedDuration::from_secs(1)).unwrap_or(range.to);
    let (after, before) = (day(range.from), day(last));
    maud! {
        @if let Some(rate) = complaints {
            div.notice.bad role="status" {
                p {
                    strong { "Complaints are above 0.1 %: " (Unit::Percent.exact(rate)) }
                    " (" (grouped(total.complained)) " of " (grouped(total.delivered)) " delivered). Gmail and \
                     Yahoo require less than 0.1 %, and refuse mail from senders above 0.3 %."
                }
                p {
                    "What to do: find out below which tag or template is being reported; send it only to people \
                     who asked for it; put the unsubscribe link at the top; stop mailing people who have not \
                     opened anything for months. Addresses that complain are suppressed: "
                    a href="/dashboard/suppressions?reason=complaint" { "see who complained" } "."
                }
            }
        }
        @if let Some(rate) = bounces {
            div.notice.warning role="status" {
                p {
                    strong { "Bounces are above 2 %: " (Unit::Percent.exact(rate)) }
                    " (" (grouped(total.bounced)) @if total.bounced == 1 { " recipient" } @else { " recipients" }
                    "). To providers, many unknown addresses are a sign \
                     of a bought or old list, so they slow down or refuse all your mail."
                }
                p {
                    "What to do: look at the reasons; check addresses when people enter them, and confirm them by \
                     email; do not import old lists. Addresses that bounce are suppressed and get no more mail: "
                    a href={ "/dashboard/emails?status=bounced&after=" (after) "&before=" (before) } { "see the bounced emails" } "."
                }
            }
        }
    }
}
