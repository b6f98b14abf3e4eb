//! Campaigns: creates, changes and lists them; one of them is the program's default.

use model::affiliate::campaign::{Campaign, CommissionTerms, Visibility};
use model::affiliate::program::AffiliateProgram;
use model::id::{AccountId, CampaignId};
use store::affiliate::campaign::{self, CAMPAIGNS_MAX};
use store::affiliate::partner;
use store::engine::{Batch, Key};
use store::retry_on_conflict;

use crate::context::{Context, ExtendCommit, no_extension};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, Result};
use crate::if_match::IfMatch;

/// Fields of a campaign to create, or its new values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignDraft {
    pub name: String,
    pub visibility: Visibility,
    /// True if partners who apply become active without review.
    pub auto_approve: bool,
    pub terms: CommissionTerms,
    pub archived_at: Option<jiff::Timestamp>,
    /// True to make the campaign the program's default.
    pub make_default: bool,
}

impl CampaignDraft {
    /// Returns the current fields of a campaign, as the base of a partial change.
    pub fn from_campaign(campaign: &Campaign) -> Self {
        Self {
            name: campaign.name.clone(),
            visibility: campaign.visibility,
            auto_approve: campaign.auto_approve,
            terms: campaign.terms.clone(),
            archived_at: campaign.archived_at,
            make_default: false,
        }
    }
}

/// Builds a new campaign; returns field errors if it is invalid.
pub type NewCampaign<'a> = dyn Fn() -> Result<CampaignDraft> + Send + Sync + 'a;

/// Upper bound of [`Context::count_partners`].
pub const COUNTED_MAX: usize = 100_000;

/// Computes the new fields of a campaign from its current ones.
pub type CampaignChange<'a> = &'a (dyn Fn(&Campaign) -> Result<CampaignDraft> + Send + Sync);

impl Context {
    /// Fetches a campaign.
    pub async fn get_campaign(&self, account: AccountId, id: CampaignId) -> Result<Campaign> {
        campaign::get(&self.store, account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Campaign))
    }

    /// Finds the campaign that new partners join, by id or name; the program's default for `None`.
    ///
    /// # Errors
    /// A field error on `campaign_id` if the campaign does not exist or is archived; `NotSetUp` without a default; the
    /// store cannot be read.
    pub(crate) async fn find_campaign_for_partners(
        &self,
        program: &AffiliateProgram,
        named: Option<&str>,
    ) -> Result<Campaign> {
        let account = program.account;
        let found = match named {
            None => match program.default_campaign {
                Some(id) => campaign::get(&self.store, account, id).await?,
                None => return Err(AffiliateError::NotSetUp),
            },
            Some(text) => self.find_campaign(account, text).await?,
        };
        let Some(found) = found else {
            return Err(AffiliateError::field("campaign_id", "is neither the id nor the name of a campaign"));
        };
        if found.archived_at.is_some() {
            return Err(AffiliateError::field(
                "campaign_id",
                "is an archived campaign, which does not accept new partners",
            ));
        }
        Ok(found)
    }

    /// Finds a campaign by id or name.
    pub(crate) async fn find_campaign(&self, account: AccountId, text: &str) -> Result<Option<Campaign>> {
        Ok(match text.parse() {
            Ok(id) => campaign::get(&self.store, account, id).await?,
            Err(_) => campaign::find_by_name(&self.store, account, text).await?,
        })
    }

    /// Counts the partners of a campaign, up to [`COUNTED_MAX`].
    pub async fn count_partners(&self, campaign: &Campaign) -> Result<usize> {
        let counted = partner::count_of_campaign(&self.store, campaign.account, campaign.id, COUNTED_MAX);
        Ok(counted.await?)
    }

    /// Creates the program's default campaign, or changes the existing one.
    pub async fn set_default_campaign(
        &self,
        account: AccountId,
        if_match: Option<&IfMatch>,
        new: &NewCampaign<'_>,
        change: CampaignChange<'_>,
    ) -> Result<(Campaign, AffiliateProgram)> {
        match self.get_program(account).await?.default_campaign {
            Some(id) => self.change_campaign(account, id, if_match, change).await,
            None => {
                let draft = CampaignDraft { make_default: true, ..new()? };
                self.create_campaign(account, draft, &no_extension).await
            }
        }
    }

    /// Lists all campaigns, newest first.
    pub async fn list_campaigns(&self, account: AccountId) -> Result<Vec<Campaign>> {
        Ok(campaign::list(&self.store, account).await?)
    }

    /// Creates a campaign. The program may still be incomplete.
    ///
    /// # Errors
    /// `NameTaken` or `TooManyCampaigns`; `NotSetUp` without a program; the store failed.
    pub async fn create_campaign(
        &self,
        account: AccountId,
        draft: CampaignDraft,
        extend_commit: ExtendCommit<'_, (Campaign, AffiliateProgram)>,
    ) -> Result<(Campaign, AffiliateProgram)> {
        retry_on_conflict(|| async {
            let program = self.get_program(account).await?;
            if self.list_campaigns(account).await?.len() >= CAMPAIGNS_MAX {
                return Err(ConflictReason::TooManyCampaigns.into());
            }
            let now = self.now();
            let campaign = Campaign {
                id: CampaignId::new(now, self.random()),
                account,
                name: draft.name.clone(),
                visibility: draft.visibility,
                auto_approve: draft.auto_approve,
                terms: draft.terms.clone(),
                archived_at: draft.archived_at,
                rev: 1,
                created_at: now,
                updated_at: now,
            };
            let mut batch = Batch::intake();
            campaign::create(&mut batch, &campaign);
            let program = self.apply_default(&mut batch, program, &campaign, draft.make_default)?;
            let created = (campaign, program);
            extend_commit(&mut batch, &created);
            let refusal = |key: &Key| campaign::is_name_conflict(key).then_some(ConflictReason::NameTaken);
            Ok(self.commit_unless(batch, refusal).await?.then_some(created))
        })
        .await
    }

    /// Changes a campaign. Does nothing if the change has no effect.
    ///
    /// # Errors
    /// `Changed` if `if_match` is stale; `NameTaken`; `DefaultStays` if the default would be archived; the store
    /// failed.
    pub async fn change_campaign(
        &self,
        account: AccountId,
        id: CampaignId,
        if_match: Option<&IfMatch>,
        change: CampaignChange<'_>,
    ) -> Result<(Campaign, AffiliateProgram)> {
        retry_on_conflict(|| async {
            let program = self.get_program(account).await?;
            let before = self.get_campaign(account, id).await?;
            IfMatch::check(if_match, before.rev, before.updated_at)?;
            let draft = change(&before)?;
            let mut after = Campaign {
                name: draft.name,
                visibility: draft.visibility,
                auto_approve: draft.auto_approve,
                terms: draft.terms,
                archived_at: draft.archived_at,
                ..before.clone()
            };
            let turns_default = draft.make_default && program.default_campaign != Some(id);
            if after == before && !turns_default {
                return Ok(Some((before, program)));
            }
            after.rev = before.rev.saturating_add(1);
            after.updated_at = self.now();
            let mut batch = Batch::progress();
            campaign::update(&mut batch, &before, &after);
            let program = self.apply_default(&mut batch, program, &after, draft.make_default)?;
            let refusal = |key: &Key| campaign::is_name_conflict(key).then_some(ConflictReason::NameTaken);
            Ok(self.commit_unless(batch, refusal).await?.then_some((after, program)))
        })
        .await
    }

    /// Makes the campaign the default, in the same commit, if requested. Otherwise the commit requires that the program
    /// is unchanged, so that no campaign is archived while another request makes it the default.
    fn apply_default(
        &self,
        batch: &mut Batch,
        before: AffiliateProgram,
        campaign: &Campaign,
        make_default: bool,
    ) -> Result<AffiliateProgram> {
        let is_default = make_default || before.default_campaign == Some(campaign.id);
        if is_default && campaign.archived_at.is_some() {
            return Err(ConflictReason::DefaultStays.into());
        }
        if before.default_campaign == Some(campaign.id) || !make_default {
            store::affiliate::program::check_unchanged(batch, &before);
            return Ok(before);
        }
        let after = AffiliateProgram {
            default_campaign: Some(campaign.id),
            rev: before.rev.saturating_add(1),
            updated_at: self.now(),
            ..before.clone()
        };
        store::affiliate::program::update(batch, &before, &after);
        Ok(after)
    }
}
