//! Whom a send does not reach: recipients that are suppressed, or that opted out of its category.
//!
//! One of them keeps the whole email back, unless the sender wishes it to go to the others; what is kept
//! back leaves an email that says so, and uses up nothing of the plan.

use jiff::Timestamp;
use mail::address::Address;
use mail::draft::OnSuppressed;
use mail::email::Category;
use mail::event::EventKind;
use mail::id::AccountId;
use mail::suppression::{BlockReason, BlockedRecipient};
use serde_json::{Value, json};
use store::access::Tenant;

use super::Intake;
use crate::refusal::SubmitError;
use crate::staged::{Disposition, EnvelopeRecipient};

impl Intake {
    /// Whether an address is suppressed for an account: asked at RCPT. The category is not known yet; it
    /// counts at the end.
    ///
    /// # Errors
    /// [`Refusal::Blocked`].
    pub async fn check_recipient(&self, tenant: &Tenant, address: &Address) -> Result<(), SubmitError> {
        let (account, now) = (tenant.account().id, self.clock().now());
        let category = Category::Transactional;
        let blocked = store::suppression::find_blocked(self.store(), account, category, &[address], now).await?;
        if blocked.is_empty() { Ok(()) } else { Err(SubmitError::Suppressed { id: None, category, blocked }) }
    }

    /// Marks the addressees that are not to be reached, and says why.
    pub(super) async fn mark_suppressed(
        &self,
        (account, category): (AccountId, Category),
        addressees: &mut [EnvelopeRecipient],
        now: Timestamp,
    ) -> Result<Vec<BlockedRecipient>, SubmitError> {
        let addresses: Vec<&Address> = addressees.iter().map(|to| &to.address).collect();
        let blocked = store::suppression::find_blocked(self.store(), account, category, &addresses, now).await?;
        if !blocked.is_empty() {
            for to in addressees {
                to.suppressed |= blocked.iter().any(|one| one.address == to.address);
            }
        }
        Ok(blocked)
    }
}

/// What becomes of an email some of whose recipients are not to be reached: nothing, if `None`.
pub(super) fn suppressed_disposition(
    blocked: &[BlockedRecipient],
    wish: OnSuppressed,
    addressees: &[EnvelopeRecipient],
) -> Option<Disposition> {
    let somebody_is_left = addressees.iter().any(|to| !to.suppressed);
    if blocked.is_empty() || wish == OnSuppressed::Skip && somebody_is_left {
        return None;
    }
    Some(Disposition::Reject(EventKind::Suppressed, suppression_details(blocked)))
}

/// The particulars of `email.suppressed` (completions-email.md 2.10).
fn suppression_details(blocked: &[BlockedRecipient]) -> Value {
    let one = |BlockedRecipient { address, reason }: &BlockedRecipient| match reason {
        BlockReason::Suppressed { id, reason } => json!({
            "email": address, "reason": reason.word(), "suppression_id": id,
            "category": null, "category_opt_out_id": null,
        }),
        BlockReason::OptedOut { id, category } => json!({
            "email": address, "reason": "unsubscribe", "suppression_id": null,
            "category": category, "category_opt_out_id": id,
        }),
    };
    json!({"suppressed": blocked.iter().map(one).collect::<Vec<_>>()})
}
