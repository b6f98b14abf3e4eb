//! Partner links: addresses on the program's website, and allocation of tokens.

use model::affiliate::partner::{LINKS_MAX, Partner, PartnerLink, PartnerLinkToken};
use model::affiliate::program::AffiliateProgram;
use model::event::EventKind;
use model::id::{AccountId, PartnerId, PartnerLinkId};
use store::affiliate::limit_guard::{GuardedLimit, LimitGuard};
use store::affiliate::partner_link::{self, FreeToken};
use store::engine::{Batch, Key};
use store::retry_on_conflict;

use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, ForbiddenReason, Result};
use crate::if_match::IfMatch;
use crate::partners::link_url::parse_destination;

/// Maximum numbered variants of a token that are tried when it is taken.
pub(crate) const VARIANTS_MAX: u32 = 200;

/// Fields of a link to create, or its new values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDraft {
    /// Stored exactly as given.
    pub token: PartnerLinkToken,
    /// Destination page, a path or URL on the program's website; the front page if `None`.
    pub destination_url: Option<String>,
    pub label: Option<String>,
}

impl Context {
    /// Creates a link of a partner.
    ///
    /// # Errors
    /// `TokenTaken`; too many links; a field error on `destination_url`; `NotFound`; the store failed.
    pub async fn create_link(
        &self,
        account: AccountId,
        partner: PartnerId,
        draft: &LinkDraft,
        extend_commit: ExtendCommit<'_, (PartnerLink, Partner, AffiliateProgram)>,
    ) -> Result<(PartnerLink, Partner, AffiliateProgram)> {
        retry_on_conflict(|| async {
            let program = self.require_set_up(account).await?;
            let partner = self.get_partner(account, partner).await?;
            if let Some(text) = &draft.destination_url {
                parse_destination(&program.settings.website_url, text)
                    .map_err(|reason| AffiliateError::field("destination_url", reason))?;
            }
            // Read before the links are counted, so that a link created concurrently causes a conflict.
            let latest = LimitGuard::read(&self.store, account, partner.id, GuardedLimit::Links).await?;
            if self.list_links(account, partner.id).await?.len() >= LINKS_MAX {
                return Err(AffiliateError::too_many_links());
            }
            let now = self.now();
            let Some(token) = partner_link::find_free_token(&self.store, account, &draft.token, now).await? else {
                return Err(ConflictReason::TokenTaken.into());
            };
            let link = PartnerLink {
                id: PartnerLinkId::new(now, self.random()),
                account,
                partner: partner.id,
                token: draft.token.clone(),
                destination_url: draft.destination_url.clone(),
                label: draft.label.clone(),
                created_at: now,
            };
            let mut batch = Batch::intake();
            // Conflicts if the partner is deleted concurrently.
            store::affiliate::partner::check_unchanged(&mut batch, &partner);
            partner_link::create(&mut batch, &link, token);
            latest.put(&mut batch, &link.id);
            let created = (link, partner, program);
            extend_commit(&mut batch, &created);
            Ok(self.commit_request(batch).await?.then_some(created))
        })
        .await
    }

    /// Changes a link's token, destination and label. The old token no longer refers visitors.
    ///
    /// # Errors
    /// `TokenTaken`; a field error on `destination_url`; `NotFound`; the store failed.
    pub async fn change_link(
        &self,
        account: AccountId,
        partner: PartnerId,
        id: PartnerLinkId,
        draft: &LinkDraft,
    ) -> Result<PartnerLink> {
        retry_on_conflict(|| async {
            let mut view = self.get_partner_view(account, partner).await?;
            let found = view.links.iter_mut().find(|link| link.id == id);
            let link = found.ok_or(AffiliateError::NotFound(AffiliateNoun::Link))?;
            let before = link.clone();
            // Validated only when it changes: the website may have been changed since.
            if let Some(text) = draft.destination_url.as_ref().filter(|_| draft.destination_url != link.destination_url)
            {
                parse_destination(&view.program.settings.website_url, text)
                    .map_err(|reason| AffiliateError::field("destination_url", reason))?;
            }
            let LinkDraft { token, destination_url, label } = draft.clone();
            let after = PartnerLink { token, destination_url, label, ..before.clone() };
            if after == before {
                return Ok(Some(after));
            }
            *link = after.clone();
            let free = free_token_for_rename(self, &before, &after.token).await?;
            let mut batch = Batch::progress();
            store::affiliate::partner::check_unchanged(&mut batch, &view.partner);
            partner_link::rename(&mut batch, &before, &after, free);
            view.record_event(&mut batch, EventKind::AffiliateUpdated, self);
            let refusal = |key: &Key| partner_link::is_token_conflict(key).then_some(ConflictReason::TokenTaken);
            Ok(self.commit_unless(batch, refusal).await?.then_some(after))
        })
        .await
    }

    /// Deletes a link. Referrals by its visitors stay the partner's.
    ///
    /// # Errors
    /// `PrimaryLink` for the primary link; `if_match` is stale; `NotFound`; the store failed.
    pub async fn delete_link(
        &self,
        account: AccountId,
        partner: PartnerId,
        id: PartnerLinkId,
        if_match: Option<&IfMatch>,
    ) -> Result<()> {
        retry_on_conflict(|| async {
            self.require_set_up(account).await?;
            let partner = self.get_partner(account, partner).await?;
            IfMatch::check(if_match, partner.rev, partner.updated_at)?;
            let found = partner_link::get(&self.store, account, partner.id, id).await?;
            let link = found.ok_or(AffiliateError::NotFound(AffiliateNoun::Link))?;
            if partner.primary_link == id {
                return Err(ForbiddenReason::PrimaryLink.into());
            }
            let mut batch = Batch::progress();
            store::affiliate::partner::check_unchanged(&mut batch, &partner);
            partner_link::delete(&mut batch, &link, None);
            Ok(self.commit(batch).await?.then_some(()))
        })
        .await
    }
}

/// Returns the new token of a link if it is free. `None` if it is the old one: tokens that differ only in case are equal.
pub(crate) async fn free_token_for_rename(
    context: &Context,
    link: &PartnerLink,
    token: &PartnerLinkToken,
) -> Result<Option<FreeToken>> {
    if link.token.as_str().eq_ignore_ascii_case(token.as_str()) {
        return Ok(None);
    }
    Ok(Some(choose_free_token(context, link.account, Some(token), || token.clone()).await?.1))
}

/// Returns a free token: the requested one, or the first free variant of a generated one.
pub(crate) async fn choose_free_token(
    context: &Context,
    account: AccountId,
    requested: Option<&PartnerLinkToken>,
    generate: impl FnOnce() -> PartnerLinkToken,
) -> Result<(PartnerLinkToken, FreeToken)> {
    let now = context.now();
    if let Some(token) = requested {
        let free = partner_link::find_free_token(&context.store, account, token, now).await?;
        return free.map(|free| (token.clone(), free)).ok_or_else(|| ConflictReason::TokenTaken.into());
    }
    let first = generate();
    for number in 1..=VARIANTS_MAX {
        let token = if number == 1 { first.clone() } else { first.variant(number) };
        if let Some(free) = partner_link::find_free_token(&context.store, account, &token, now).await? {
            return Ok((token, free));
        }
    }
    // All numbered variants are taken: use a random suffix.
    let token = first.variant(u32::try_from(context.random() % 1_000_000_000).unwrap_or(u32::MAX));
    let free = partner_link::find_free_token(&context.store, account, &token, now).await?;
    free.map(|free| (token, free)).ok_or_else(|| ConflictReason::Changed.into())
}
