//! Telling the owner by mail: an endpoint begins to fail, or was disabled.
//!
//! Mailed as the service's other mail is, from the domain of the sandbox sender, as the account that has it. Where
//! there is none, or it cannot send, the operator's log says so; the endpoint's own fields tell it anyway.

use std::sync::PoisonError;

use mail::address::Address;
use mail::id::{AccountId, WebhookId};
use mail::letter::Letter;
use mail::webhook::DisabledReason;

use crate::accept::Hall;
use crate::postman::{self, Postman};

/// Who writes; or the other one, when the first is the sandbox sender itself, which reaches nobody but owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "webhooks"];

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Nothing arrives.
    Failing,
    /// Nothing is sent any more.
    Disabled(DisabledReason),
}

/// To whom, about what.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) account: AccountId,
    pub(super) webhook: WebhookId,
    pub(super) url: String,
    pub(super) what: What,
}

impl Hall {
    /// Mails what is to be told until the worker stops.
    pub(crate) async fn keep_noticing(&self) {
        let taken = self.worker.webhooks.noticed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut noticed) = taken else { return };
        loop {
            let told = tokio::select! {
                told = noticed.recv() => told,
                () = self.worker.stop.cancelled() => None,
            };
            let Some(told) = told else { return };
            if let Err(cause) = self.mail_owner(&told).await {
                tracing::warn!(%cause, webhook.id = %told.webhook, "an owner could not be mailed about an endpoint");
            }
        }
    }

    async fn mail_owner(&self, told: &Told) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let sandbox = self.senders.sandbox().ok_or("`sandbox_sender` in [service] is not set")?;
        let from =
            postman::beside(sandbox, LOCAL_PARTS).ok_or("`sandbox_sender` is no address to write from")?;
        let postman = Postman::find(self, from).await.map_err(|error| text(&error))?;
        let owner = store::account::get(self.store(), told.account).await.map_err(|error| text(&error))?;
        let Some(owner) = owner else { return Ok(()) };
        postman.send(self, letter(owner.email, told)).await.map_err(|refusal| text(&refusal))
    }
}

fn letter(to: Address, told: &Told) -> Letter {
    let Told { webhook, url, what, .. } = told;
    let (subject, text) = match what {
        What::Failing => (
            "A webhook endpoint does not take deliveries",
            format!(
                "Deliveries to {url} ({webhook}) fail: the first one was given up.\n\nThey are kept and can be \
                 sent again (POST /webhooks/{webhook}/replay). When nothing arrives for five days, the endpoint is \
                 disabled.\n"
            ),
        ),
        What::Disabled(DisabledReason::Gone) => (
            "A webhook endpoint was disabled",
            format!(
                "{url} ({webhook}) answered 410 (gone), so nothing is sent to it any more.\n\nTo enable it again: \
                 PATCH /webhooks/{webhook} with {{\"enabled\": true}}.\n"
            ),
        ),
        What::Disabled(_) => (
            "A webhook endpoint was disabled",
            format!(
                "Nothing arrived at {url} ({webhook}) for five days, so nothing is sent to it any more.\n\nTo \
                 enable it again: PATCH /webhooks/{webhook} with {{\"enabled\": true}}. What was given up can be \
                 sent again (POST /webhooks/{webhook}/replay).\n"
            ),
        ),
    };
    Letter::new(to, subject, text)
}
