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
use mail::suppression::{BlockReason, Blocked};
use serde_json::{Value, json};
use store::access::Tenant;

use super::Hall;
use crate::refusal::Refusal;
use crate::staged::{Addressee, Fate};

impl Hall {
    /// Whether an address is suppressed for an account: asked at RCPT. The category is not known yet; it
    /// counts at the end.
    ///
    /// # Errors
    /// [`Refusal::Blocked`].
    pub async fn may_receive(&self, tenant: &Tenant, address: &Address) -> Result<(), Refusal> {
        let (account, now) = (tenant.account().id, self.clock().now());
        let category = Category::Transactional;
        let blocked = store::suppression::blocked(self.store(), account, category, &[address], now).await?;
        if blocked.is_empty() { Ok(()) } else { Err(Refusal::Blocked { id: None, category, blocked }) }
    }

    /// Marks the addressees that are not to be reached, and says why.
    pub(super) async fn mark_blocked(
        &self,
        (account, category): (AccountId, Category),
        addressees: &mut [Addressee],
        now: Timestamp,
    ) -> Result<Vec<Blocked>, Refusal> {
        let addresses: Vec<&Address> = addressees.iter().map(|to| &to.address).collect();
        let blocked = store::suppression::blocked(self.store(), account, category, &addresses, now).await?;
        if !blocked.is_empty() {
            for to in addressees {
                to.suppressed |= blocked.iter().any(|one| one.address == to.address);
            }
        }
        Ok(blocked)
    }
}

/// What becomes of an email some of whose recipients are not to be reached: nothing, if `None`.
pub(super) fn fate_of(blocked: &[Blocked], wish: OnSuppressed, addressees: &[Addressee]) -> Option<Fate> {
    let somebody_is_left = addressees.iter().any(|to| !to.suppressed);
    if blocked.is_empty() || wish == OnSuppressed::Skip && somebody_is_left {
        return None;
    }
    Some(Fate::Refuse(EventKind::Suppressed, detail(blocked)))
}

/// The particulars of `email.suppressed` (completions-email.md 2.10).
fn detail(blocked: &[Blocked]) -> Value {
    let one = |Blocked { address, reason }: &Blocked| match reason {
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
