//! What a partner changes about its postbacks: a new secret.

use mail::affiliate::partner::Partner;
use mail::event::EventKind;
use mail::id::{AccountId, PartnerId};
use store::affiliate::partner;
use store::engine::Batch;

use crate::office::{Committed, Office, TRIES_MAX};
use crate::partners::Shown;
use crate::refusal::{Obstacle, Refusal};

impl Office {
    /// Gives a partner's postbacks a new secret, which is shown now and to the partner never again.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn rotate_postback_secret(
        &self,
        (account, id): (AccountId, PartnerId),
    ) -> Result<String, Refusal> {
        for _ in 0..TRIES_MAX {
            let Shown { partner: before, links, program, .. } = self.show_partner(account, id).await?;
            let secret = mail::webhook::secret_text(&self.hall.entropy().secret());
            let after = Partner {
                postback_secret: self.seal(&id.to_bytes(), &secret)?,
                rev: before.rev.saturating_add(1),
                updated_at: self.now(),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            partner::update(&mut batch, &before, &after);
            let shown = Shown::of(after, links, program);
            self.tell_of_partner(&mut batch, EventKind::AffiliateUpdated, &shown);
            if matches!(self.commit(batch).await?, Committed::Done) {
                return Ok(secret);
            }
        }
        Err(Obstacle::Changed.into())
    }
}
