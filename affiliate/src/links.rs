//! Partner links: addresses on the program's website, and allocation of tokens.

use mail::affiliate::partner::{LINKS_MAX, Partner, PartnerLink, PartnerLinkToken};
use mail::affiliate::program::AffiliateProgram;
use mail::event::EventKind;
use mail::id::{AccountId, PartnerId, PartnerLinkId};
use store::affiliate::limit_guard::LimitGuard;
use store::affiliate::partner_link::{self, FreeToken};
use store::engine::Batch;
use url::{Url, form_urlencoded};

use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, ForbiddenReason};
use crate::service::{AffiliateService, CommitResult, ExtendCommit, IfMatch, TRIES_MAX};

/// Query parameter that carries the token.
const VIA: &str = "via";
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

/// Returns a link's address: its destination on the website, with its token. A destination that is invalid since the
/// website was changed falls back to the front page.
#[must_use]
pub fn link_url(website_url: &str, link: &PartnerLink) -> String {
    let found = parse_destination(website_url, link.destination_url.as_deref().unwrap_or_default());
    let mut url = match found.or_else(|_| parse_destination(website_url, "")) {
        Ok(url) => url,
        // Cannot happen: the website's URL was validated when it was set.
        Err(_) => return website_url.to_owned(),
    };
    // The destination may have been copied with another partner's token.
    let is_other_parameter =
        |pair: &&str| form_urlencoded::parse(pair.as_bytes()).next().is_none_or(|(name, _)| name != VIA);
    let other_parameters: Vec<&str> =
        url.query().into_iter().flat_map(|query| query.split('&')).filter(is_other_parameter).collect();
    let other_parameters = Some(other_parameters.join("&")).filter(|other_parameters| !other_parameters.is_empty());
    url.set_query(other_parameters.as_deref());
    url.query_pairs_mut().append_pair(VIA, link.token.as_str());
    url.into()
}

/// Resolves a destination: a path, or a URL on the same site.
///
/// # Errors
/// The reason why it is invalid, worded to follow the field's name.
pub(crate) fn parse_destination(website_url: &str, text: &str) -> Result<Url, String> {
    let website = Url::parse(website_url).map_err(|_| "belongs to a website with an invalid URL".to_owned())?;
    let destination = website.join(text).map_err(|error| format!("is not a path or URL: {error}"))?;
    let site = |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    let on_site = match (site(&website), site(&destination)) {
        (Some(own_host), Some(requested)) => requested == own_host || requested.ends_with(&format!(".{own_host}")),
        _ => false,
    };
    let is_web = matches!(destination.scheme(), "https" | "http");
    if !on_site || !is_web || !destination.username().is_empty() || destination.password().is_some() {
        return Err(format!("must be a path or an address on {website_url}"));
    }
    Ok(destination)
}

impl AffiliateService {
    /// Lists a partner's links, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_links(&self, account: AccountId, partner: PartnerId) -> Result<Vec<PartnerLink>, AffiliateError> {
        Ok(partner_link::list(self.store(), account, partner).await?)
    }

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
    ) -> Result<(PartnerLink, Partner, AffiliateProgram), AffiliateError> {
        for _ in 0..TRIES_MAX {
            let program = self.require_set_up(account).await?;
            let partner = self.get_partner(account, partner).await?;
            if let Some(text) = &draft.destination_url {
                parse_destination(&program.settings.website_url, text)
                    .map_err(|reason| AffiliateError::field("destination_url", reason))?;
            }
            // Read before the links are counted, so that a link created concurrently causes a conflict.
            let latest = LimitGuard::for_links(self.store(), account, partner.id).await?;
            if self.list_links(account, partner.id).await?.len() >= LINKS_MAX {
                return Err(AffiliateError::too_many_links());
            }
            let now = self.now();
            let Some(token) = partner_link::find_free_token(self.store(), account, &draft.token, now).await? else {
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
            latest.put_link(&mut batch, link.id);
            let created = (link, partner, program);
            extend_commit(&mut batch, &created);
            match self.commit(batch).await? {
                CommitResult::Committed => return Ok(created),
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
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
    ) -> Result<PartnerLink, AffiliateError> {
        for _ in 0..TRIES_MAX {
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
                return Ok(after);
            }
            *link = after.clone();
            // A token that differs only in case is the same token.
            let is_same_token = before.token.as_str().eq_ignore_ascii_case(after.token.as_str());
            let free = if is_same_token {
                None
            } else {
                let free = self.choose_free_token(account, Some(&after.token), || after.token.clone()).await?;
                Some(free.1)
            };
            let mut batch = Batch::progress();
            store::affiliate::partner::check_unchanged(&mut batch, &view.partner);
            partner_link::rename(&mut batch, &before, &after, free);
            self.record_partner_event(&mut batch, EventKind::AffiliateUpdated, &view);
            match self.commit(batch).await? {
                CommitResult::Committed => return Ok(after),
                CommitResult::Conflict(key) if partner_link::is_token_conflict(&key) => {
                    return Err(ConflictReason::TokenTaken.into());
                }
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
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
    ) -> Result<(), AffiliateError> {
        for _ in 0..TRIES_MAX {
            self.require_set_up(account).await?;
            let partner = self.get_partner(account, partner).await?;
            IfMatch::check(if_match, partner.rev, partner.updated_at)?;
            let found = partner_link::get(self.store(), account, partner.id, id).await?;
            let link = found.ok_or(AffiliateError::NotFound(AffiliateNoun::Link))?;
            if partner.primary_link == id {
                return Err(ForbiddenReason::PrimaryLink.into());
            }
            let mut batch = Batch::progress();
            store::affiliate::partner::check_unchanged(&mut batch, &partner);
            partner_link::delete(&mut batch, &link, None);
            if matches!(self.commit(batch).await?, CommitResult::Committed) {
                return Ok(());
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Returns a free token: the requested one, or the first free variant of a generated one.
    pub(crate) async fn choose_free_token(
        &self,
        account: AccountId,
        requested: Option<&PartnerLinkToken>,
        generate: impl FnOnce() -> PartnerLinkToken,
    ) -> Result<(PartnerLinkToken, FreeToken), AffiliateError> {
        let now = self.now();
        if let Some(token) = requested {
            let free = partner_link::find_free_token(self.store(), account, token, now).await?;
            return free.map(|free| (token.clone(), free)).ok_or_else(|| ConflictReason::TokenTaken.into());
        }
        let first = generate();
        for number in 1..=VARIANTS_MAX {
            let token = if number == 1 { first.clone() } else { first.variant(number) };
            if let Some(free) = partner_link::find_free_token(self.store(), account, &token, now).await? {
                return Ok((token, free));
            }
        }
        // All numbered variants are taken: use a random suffix.
        let token = first.variant(u32::try_from(self.random() % 1_000_000_000).unwrap_or(u32::MAX));
        let free = partner_link::find_free_token(self.store(), account, &token, now).await?;
        free.map(|free| (token, free)).ok_or_else(|| ConflictReason::Changed.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn link(destination: Option<&str>) -> PartnerLink {
        PartnerLink {
            id: PartnerLinkId::new(Timestamp::UNIX_EPOCH, 1),
            account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            partner: PartnerId::new(Timestamp::UNIX_EPOCH, 1),
            token: PartnerLinkToken::parse("ada").unwrap(),
            destination_url: destination.map(str::to_owned),
            label: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn links_carry_their_token_to_the_website() {
        let url_to = |to| link_url("https://shop.example", &link(to));
        assert_eq!(url_to(None), "https://shop.example/?via=ada");
        assert_eq!(url_to(Some("/pricing?plan=pro#top")), "https://shop.example/pricing?plan=pro&via=ada#top");
        assert_eq!(url_to(Some("https://www.shop.example/x")), "https://www.shop.example/x?via=ada");
        assert_eq!(
            url_to(Some("/x?via=bob&a=%20b&%76ia=eve#top")),
            "https://shop.example/x?a=%20b&via=ada#top",
            "a destination with another partner's token"
        );
        assert_eq!(url_to(Some("/x?via=bob")), "https://shop.example/x?via=ada");
        assert_eq!(url_to(Some("https://evil.example/x")), "https://shop.example/?via=ada", "the website was changed");
    }

    #[test]
    fn links_to_other_sites_are_rejected() {
        for destination in [
            "https://evil.example/",
            "//evil.example/x",
            "javascript:alert(1)",
            "https://shop.example@evil.example/",
            "https://ada:x@shop.example/",
            "https://notshop.example/",
            "\\\\evil.example\\x",
        ] {
            assert!(parse_destination("https://shop.example", destination).is_err(), "{destination}");
        }
        for allowed in ["", "/a/b", "a", "?q=1", "https://blog.shop.example/x", "http://shop.example/"] {
            assert!(parse_destination("https://shop.example", allowed).is_ok(), "{allowed}");
        }
    }
}
