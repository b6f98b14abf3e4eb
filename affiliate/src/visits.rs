//! Visits: clicks on partners' links, and later statements of a page about the visitor.
//!
//! ```text
//! token ─► an active partner's link? ─► the visitor's current visit ─►[ visit + visitor + click ]
//! click ─► [click_counting]
//! sign-up, identify ─► the visit ─► [identification]: a lead, or the person of the visit
//! checkout with `vis_…` ─► the ledger (`affiliate/src/ledger/attribution.rs`)
//! ```
//!
//! Except for the visitor's row, a click writes only rows of its own, so clicks do not conflict. Counters are updated
//! afterwards, in batches. Visits are recorded only while the program is live. A visit keeps its partner when the link
//! is deleted or renamed.

pub mod click_counting;
pub mod identification;

use std::net::IpAddr;

use jiff::Timestamp;
use model::affiliate::fraud_checks::{is_banned_referrer, is_paid_click};
use model::affiliate::partner::{Partner, PartnerLink, PartnerLinkToken};
use model::affiliate::periods;
use model::affiliate::program::{AffiliateProgram, ProgramStatus};
use model::affiliate::referral::FraudFlag;
use model::affiliate::visit::{self, PartnerVisit, SUB_ID_CHARS_MAX, VISITORS_MAX};
use model::cidr::client_prefix;
use model::id::{AccountId, VisitId};
use model::metric::Hour;
use store::affiliate::click::{self, LinkClick};
use store::affiliate::visit::{StoredCurrentVisit, VisitorIdentity};
use store::affiliate::{campaign, click_count, partner, partner_link, program};
use store::engine::Batch;
use store::retry_on_conflict;
use store::task::PARTITIONS;
use url::Url;

use crate::context::Context;
use crate::error::{ConflictReason, Result};
use crate::partners::link_url::parse_destination;
use crate::partners::lookup::find_active_partner;

/// Maximum clicks of a program per day, because each may store a visit; further ones are rejected.
pub const CLICKS_A_DAY_MAX: u64 = 250_000;
/// Query parameter that passes a visit to another domain.
pub const HANDED_OVER: &str = "stx_ref";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisitSource {
    /// Token of the followed link.
    Link(PartnerLinkToken),
    /// A visit passed from another domain.
    HandedOver(VisitId),
}

/// A visitor's arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitRequest {
    pub brought: VisitSource,
    /// Id that the browser script gave the visitor, if it ran.
    pub visitor: Option<String>,
    /// URL of the page.
    pub url: String,
    pub referrer: String,
    /// The partner's own tag.
    pub sub_id: Option<String>,
    /// IP address of the visitor.
    pub from: Option<IpAddr>,
}

/// The visitor's current visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedVisit {
    pub visit: PartnerVisit,
    /// `None` if the partner was deleted.
    pub partner: Option<Partner>,
}

/// The rows of an arrival to commit.
struct VisitDecision {
    batch: Batch,
    visit: PartnerVisit,
}

impl Context {
    /// Records an arrival and returns the visitor's current visit. `None` if the token or visit is unknown or the
    /// program not live; nothing is stored then.
    ///
    /// # Errors
    /// [`ConflictReason::TooManyClicks`] above [`CLICKS_A_DAY_MAX`]; the store failed.
    pub async fn capture_visit(&self, account: AccountId, arrival: &VisitRequest) -> Result<Option<CapturedVisit>> {
        retry_on_conflict(|| async {
            let Some(program) = program::get(&self.store, account).await? else { return Ok(Some(None)) };
            if program.status != ProgramStatus::Live {
                return Ok(Some(None));
            }
            let visitor = arrival.visitor.clone().map(VisitorIdentity::Visitor);
            let current = match &visitor {
                Some(visitor) => store::affiliate::visit::find_current(&self.store, account, visitor).await?,
                None => StoredCurrentVisit::default(),
            };
            let decided = match &arrival.brought {
                VisitSource::Link(token) => {
                    self.visit_by_link(&program, token, arrival, visitor.as_ref(), &current).await?
                }
                VisitSource::HandedOver(id) => {
                    self.visit_from_other_domain(&program, *id, visitor.as_ref(), &current).await?
                }
            };
            let Some(VisitDecision { batch, visit }) = decided else { return Ok(Some(None)) };
            if batch.is_empty() || self.commit(batch).await? {
                let partner = partner::get(&self.store, account, visit.partner).await?;
                return Ok(Some(Some(CapturedVisit { visit, partner })));
            }
            Ok(None)
        })
        .await
    }

    /// Decides about a click on a link.
    async fn visit_by_link(
        &self,
        program: &AffiliateProgram,
        token: &PartnerLinkToken,
        arrival: &VisitRequest,
        identity: Option<&VisitorIdentity>,
        current: &StoredCurrentVisit,
    ) -> Result<Option<VisitDecision>> {
        let account = program.account;
        let Some((link, partner)) = find_active_partner(self, account, token).await? else {
            return Ok(None);
        };
        let held = self.valid_visit(account, current).await?;
        let (now, mut batch) = (self.now(), Batch::intake());
        if let Some(held) = held.filter(|held| held.is_reload(link.id, now)) {
            return Ok(Some(VisitDecision { batch, visit: held.clone() }));
        }
        let today = click_count::program_clicks_on(&self.store, account, Hour::containing(now).day()).await?;
        if today >= CLICKS_A_DAY_MAX {
            return Err(ConflictReason::TooManyClicks.into());
        }
        let new = self.new_visit(program, &link, &partner, arrival).await?;
        let id = new.id.to_bytes();
        let click = LinkClick { account, partner: partner.id, link: link.id, sub_id: new.sub_id.clone(), at: now };
        // Spread over the partitions, so that all nodes share the counting.
        let [.., last] = id;
        click::enqueue(&mut batch, u16::from(last) % PARTITIONS, id, &click);
        let standing_visit =
            held.map_or(&new, |held| visit::attributed_visit(program.settings.attribution, held, &new));
        if standing_visit.id == new.id {
            store::affiliate::visit::create(&mut batch, &new);
            if let Some(identity) = identity {
                store::affiliate::visit::set_current(&mut batch, account, identity, current, new.id);
            }
        }
        let standing_visit = standing_visit.clone();
        Ok(Some(VisitDecision { batch, visit: standing_visit }))
    }

    /// Returns the current visit, unless it has lapsed or its partner was deleted.
    async fn valid_visit<'v>(
        &self,
        account: AccountId,
        current: &'v StoredCurrentVisit,
    ) -> Result<Option<&'v PartnerVisit>> {
        let now = self.now();
        let Some(held) = current.visit.as_ref().filter(|held| !held.has_lapsed(now)) else {
            return Ok(None);
        };
        let partner = partner::get(&self.store, account, held.partner).await?;
        Ok(partner.map(|_| held))
    }

    async fn new_visit(
        &self,
        program: &AffiliateProgram,
        link: &PartnerLink,
        partner: &Partner,
        arrival: &VisitRequest,
    ) -> Result<PartnerVisit> {
        let now = self.now();
        let found = campaign::get(&self.store, program.account, partner.campaign).await?;
        let days = found.map_or(1, |campaign| campaign.terms.cookie_days);
        let flags = [
            (FraudFlag::PaidClick, is_paid_click(&arrival.url)),
            (FraudFlag::BannedReferrer, is_banned_referrer(&arrival.referrer, &program.settings.banned_referrers)),
        ];
        let cut = |text: &String| text.chars().take(SUB_ID_CHARS_MAX).collect::<String>();
        Ok(PartnerVisit {
            id: VisitId::new(now, self.random()),
            account: program.account,
            partner: partner.id,
            link: link.id,
            visitors: arrival.visitor.iter().cloned().collect(),
            sub_id: arrival.sub_id.as_ref().map(cut).filter(|text| !text.is_empty()),
            from: arrival.from.map(client_prefix),
            flags: flags.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag).collect(),
            people: Vec::new(),
            referrals: Vec::new(),
            clicked_at: now,
            expires_at: periods::binds_until(now, days).unwrap_or(Timestamp::MAX),
        })
    }

    /// Decides about a visit passed from another domain: it becomes the visitor's current visit here if the attribution
    /// model prefers it. Does not count as a click.
    async fn visit_from_other_domain(
        &self,
        program: &AffiliateProgram,
        id: VisitId,
        identity: Option<&VisitorIdentity>,
        current: &StoredCurrentVisit,
    ) -> Result<Option<VisitDecision>> {
        let (account, now) = (program.account, self.now());
        let found = store::affiliate::visit::get(&self.store, account, id).await?;
        let Some(carried) = found.filter(|carried| !carried.has_lapsed(now)) else { return Ok(None) };
        if partner::get(&self.store, account, carried.partner).await?.is_none() {
            return Ok(None);
        }
        let held = self.valid_visit(account, current).await?;
        let standing_visit =
            held.map_or(&carried, |held| visit::attributed_visit(program.settings.attribution, held, &carried));
        let mut batch = Batch::intake();
        let is_new = held.is_none_or(|held| held.id != carried.id) && standing_visit.id == carried.id;
        if let Some(identity @ VisitorIdentity::Visitor(visitor)) = identity.filter(|_| is_new)
            && (carried.visitors.contains(visitor) || carried.visitors.len() < VISITORS_MAX)
        {
            let mut after = carried.clone();
            if !after.visitors.contains(visitor) {
                after.visitors.push(visitor.clone());
            }
            store::affiliate::visit::update(&mut batch, &carried, &after);
            store::affiliate::visit::set_current(&mut batch, account, identity, current, carried.id);
        }
        let standing_visit = standing_visit.clone();
        Ok(Some(VisitDecision { batch, visit: standing_visit }))
    }

    /// Returns the redirect of a link and records the visit, if `arrival` is given (bots have none). An unknown token
    /// redirects to the website, and nothing is stored.
    ///
    /// # Errors
    /// The store cannot be read. A visit that cannot be recorded is logged, and the visitor is still redirected.
    pub async fn follow_link(
        &self,
        program: &AffiliateProgram,
        token: Option<&PartnerLinkToken>,
        arrival: Option<&VisitRequest>,
    ) -> Result<LinkTarget> {
        let website = || LinkTarget { location: program.settings.website_url.clone(), visit: None };
        let Some(token) = token else { return Ok(website()) };
        let link = partner_link::find_by_token(&self.store, program.account, token).await?;
        let Some(link) = link else { return Ok(website()) };
        let captured = match arrival {
            // Visitors above the daily limit are redirected, too.
            Some(arrival) => self.capture_visit(program.account, arrival).await.unwrap_or_else(|refusal| {
                store::warn_unless_away!(self.store, %refusal, "click not recorded");
                None
            }),
            None => None,
        };
        let visit = captured.map(|captured| captured.visit.id);
        Ok(LinkTarget { location: landing_url(&program.settings.website_url, &link, visit), visit })
    }
}

/// Redirect of a link that works without the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTarget {
    pub location: String,
    /// The visit, if one was recorded.
    pub visit: Option<VisitId>,
}

/// Returns the link's destination with the visit's id.
fn landing_url(website_url: &str, link: &PartnerLink, visit: Option<VisitId>) -> String {
    let found = parse_destination(website_url, link.destination_url.as_deref().unwrap_or_default());
    let found = found.or_else(|_| Url::parse(website_url));
    let Ok(mut url) = found else { return website_url.to_owned() };
    if let Some(id) = visit {
        url.query_pairs_mut().append_pair(HANDED_OVER, &id.to_string());
    }
    url.into()
}
