//! Suppression check: finds recipients that are suppressed, or that opted out of the email's category.
//!
//! One such recipient rejects the whole email, unless the sender asked to skip them (`on_suppressed`). A rejected email
//! is stored with an `email.suppressed` event and uses nothing of the plan.

use jiff::Timestamp;
use message::address::Address;
use model::draft::{Draft, OnSuppressed};
use model::email::Category;
use model::event::EventKind;
use model::id::AccountId;
use model::suppression::{BlockReason, BlockedRecipient};
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::{ReadError, Store};
use store::suppression::find_blocked;

use super::Intake;
use crate::intake::prepared_message::{Disposition, EnvelopeRecipient};
use crate::intake::submit_error::SubmitError;

impl Intake {
    /// Checks at RCPT that an address is not suppressed. The category is not known yet; opt-outs are checked at the end
    /// of the message.
    ///
    /// # Errors
    /// [`SubmitError::Suppressed`] if the address is suppressed; other variants if the store cannot be read.
    pub async fn check_recipient(&self, tenant: &Tenant, address: &Address) -> Result<(), SubmitError> {
        let (account, now) = (tenant.account().id, self.services.clock.now());
        let category = Category::Transactional;
        let blocked = find_blocked(&self.services.store, account, category, &[address], now).await?;
        if blocked.is_empty() { Ok(()) } else { Err(SubmitError::Suppressed { id: None, category, blocked }) }
    }
}

/// Returns whether an email would be rejected because of suppressed recipients or opt-outs. Nothing is stored.
pub async fn would_be_suppressed(
    store: &Store,
    account: AccountId,
    draft: &Draft,
    now: Timestamp,
) -> Result<bool, ReadError> {
    let addresses: Vec<&Address> = draft.recipients.iter().map(|to| &to.address).collect();
    let blocked = find_blocked(store, account, draft.category, &addresses, now).await?;
    let is_blocked = |address: &Address| blocked.iter().any(|recipient| recipient.address == *address);
    let has_unsuppressed = addresses.iter().any(|address| !is_blocked(address));
    Ok(is_rejected(&blocked, draft.options.on_suppressed, has_unsuppressed))
}

/// Marks the suppressed recipients and returns them with their reasons.
pub(super) async fn mark_suppressed(
    store: &Store,
    account: AccountId,
    category: Category,
    addressees: &mut [EnvelopeRecipient],
    now: Timestamp,
) -> Result<Vec<BlockedRecipient>, SubmitError> {
    let addresses: Vec<&Address> = addressees.iter().map(|to| &to.address).collect();
    let blocked = find_blocked(store, account, category, &addresses, now).await?;
    if !blocked.is_empty() {
        for to in addressees {
            to.suppressed |= blocked.iter().any(|recipient| recipient.address == to.address);
        }
    }
    Ok(blocked)
}

/// Disposition of an email with suppressed recipients; `None` if it is sent to the others.
pub(super) fn suppressed_disposition(
    blocked: &[BlockedRecipient],
    on_suppressed: OnSuppressed,
    addressees: &[EnvelopeRecipient],
) -> Option<Disposition> {
    let has_unsuppressed = addressees.iter().any(|to| !to.suppressed);
    is_rejected(blocked, on_suppressed, has_unsuppressed)
        .then(|| Disposition::Reject(EventKind::Suppressed, suppression_details(blocked)))
}

fn is_rejected(blocked: &[BlockedRecipient], on_suppressed: OnSuppressed, has_unsuppressed: bool) -> bool {
    !(blocked.is_empty() || on_suppressed == OnSuppressed::Skip && has_unsuppressed)
}

/// Detail of the event `email.suppressed`.
fn suppression_details(blocked: &[BlockedRecipient]) -> Value {
    let describe = |BlockedRecipient { address, reason }: &BlockedRecipient| match reason {
        BlockReason::Suppressed { id, reason } => json!({
            "email": address, "reason": reason.word(), "suppression_id": id,
            "category": null, "category_opt_out_id": null,
        }),
        BlockReason::OptedOut { id, category } => json!({
            "email": address, "reason": "unsubscribe", "suppression_id": null,
            "category": category, "category_opt_out_id": id,
        }),
    };
    json!({"suppressed": blocked.iter().map(describe).collect::<Vec<_>>()})
}
