//! Visits: who comes by a partner's link, and what a page says of them afterwards.
//!
//! ```text
//! token ─► an active partner's link? ─► whose is the visitor? ─►[ visit + visitor + click ]       click ─► [count]
//! sign-up, identify ─► the visit ─► [people]: a lead, or whose visit it is
//! checkout with `vis_…` ─► the ledger (`affiliate/src/ledger/attribution.rs`)
//! ```
//!
//! A click writes rows that nobody else writes, but for that of its visitor; what is counted is counted afterwards, many
//! at a time. While the program is not live there are no visits. A visit keeps its partner, whatever becomes of the link.

pub mod count;
pub mod people;

use std::net::IpAddr;

use jiff::Timestamp;
use mail::affiliate::partner::{Partner, PartnerLink, PartnerLinkToken, PartnerStatus};
use mail::affiliate::program::{AffiliateProgram, ProgramStatus};
use mail::affiliate::referral::FraudFlag;
use mail::affiliate::suspicion::{is_banned_referrer, is_paid_click};
use mail::affiliate::visit::{self, PartnerVisit, SUB_ID_CHARS_MAX, VISITORS_MAX};
use mail::affiliate::window;
use mail::id::{AccountId, VisitId};
use mail::metric::Hour;
use mail::network::client_prefix;
use store::affiliate::click::{self, LinkClick};
use store::affiliate::visit::{StoredCurrentVisit, VisitorIdentity};
use store::affiliate::{campaign, click_count, partner, partner_link, program};
use store::engine::Batch;
use store::task::PARTITIONS;
use url::Url;

use crate::ledger::Ledger;
use crate::links;
use crate::office::{AffiliateService, TRIES_MAX};
use crate::refusal::{AffiliateError, ConflictReason};

/// Clicks of a program on a day, of which each may be a visit that is kept; further ones are turned away.
pub const CLICKS_A_DAY_MAX: u64 = 250_000;
/// The query parameter in which a visit is handed over to another domain.
pub const HANDED_OVER: &str = "stx_ref";

/// By what somebody came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisitSource {
    /// By a link.
    Link(PartnerLinkToken),
    /// With a visit that another domain handed over.
    HandedOver(VisitId),
}

/// Somebody who came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitRequest {
    /// By what.
    pub brought: VisitSource,
    /// The visitor's number, where a script ran.
    pub visitor: Option<String>,
    /// The page's address.
    pub url: String,
    /// The page before.
    pub referrer: String,
    /// The partner's own tag.
    pub sub_id: Option<String>,
    /// From where.
    pub from: Option<IpAddr>,
}

/// The visit that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedVisit {
    /// The visit.
    pub visit: PartnerVisit,
    /// Whose it is; none when the partner is deleted.
    pub partner: Option<Partner>,
}

/// What is to be written of an arrival.
struct VisitDecision {
    batch: Batch,
    stands: PartnerVisit,
}

impl Ledger {
    /// Takes in who came; says which of the visitor's visits stands. `None`: nobody has the token, or not now, and nothing
    /// is kept of it.
    ///
    /// # Errors
    /// [`Obstacle::Crowded`]: there were too many today; [`Refusal`].
    pub async fn capture(
        &self,
        account: AccountId,
        arrival: &VisitRequest,
    ) -> Result<Option<CapturedVisit>, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let Some(program) = program::get(self.store(), account).await? else { return Ok(None) };
            if program.status != ProgramStatus::Live {
                return Ok(None);
            }
            let of = arrival.visitor.clone().map(VisitorIdentity::Visitor);
            let standing = match &of {
                Some(of) => store::affiliate::visit::find_current(self.store(), account, of).await?,
                None => StoredCurrentVisit::default(),
            };
            let known = (of.as_ref(), &standing);
            let decided = match &arrival.brought {
                VisitSource::Link(token) => self.visit_by_link(&program, (token, arrival), known).await?,
                VisitSource::HandedOver(id) => self.visit_from_other_domain(&program, *id, known).await?,
            };
            let Some(VisitDecision { batch, stands }) = decided else { return Ok(None) };
            if batch.is_empty() || self.commit(batch).await? {
                let partner = partner::get(self.store(), account, stands.partner).await?;
                return Ok(Some(CapturedVisit { visit: stands, partner }));
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// A link was followed.
    async fn visit_by_link(
        &self,
        program: &AffiliateProgram,
        (token, arrival): (&PartnerLinkToken, &VisitRequest),
        (of, standing): (Option<&VisitorIdentity>, &StoredCurrentVisit),
    ) -> Result<Option<VisitDecision>, AffiliateError> {
        let account = program.account;
        let Some((link, partner)) = self.find_link_and_partner(account, token).await? else {
            return Ok(None);
        };
        let held = self.valid_visit(account, standing).await?;
        let (now, mut batch) = (self.now(), Batch::intake());
        if let Some(held) = held.filter(|held| held.is_reload(link.id, now)) {
            return Ok(Some(VisitDecision { batch, stands: held.clone() }));
        }
        let today = click_count::program_clicks_on(self.store(), account, Hour::containing(now).day()).await?;
        if today >= CLICKS_A_DAY_MAX {
            return Err(ConflictReason::TooManyClicks.into());
        }
        let new = self.new_visit(program, (&link, &partner), arrival).await?;
        let id = new.id.to_bytes();
        let click = LinkClick { account, partner: partner.id, link: link.id, sub_id: new.sub_id.clone(), at: now };
        // Spread, so that not one node counts all.
        let [.., last] = id;
        click::enqueue(&mut batch, u16::from(last) % PARTITIONS, id, &click);
        let stands = held.map_or(&new, |held| visit::attributed_visit(program.settings.attribution, held, &new));
        if stands.id == new.id {
            store::affiliate::visit::create(&mut batch, &new);
            if let Some(of) = of {
                store::affiliate::visit::set_current(&mut batch, (account, of), standing, new.id);
            }
        }
        let stands = stands.clone();
        Ok(Some(VisitDecision { batch, stands }))
    }

    /// The link of a token, and its partner, who is active.
    async fn find_link_and_partner(
        &self,
        account: AccountId,
        token: &PartnerLinkToken,
    ) -> Result<Option<(PartnerLink, Partner)>, AffiliateError> {
        let Some(link) = partner_link::find_by_token(self.store(), account, token).await? else {
            return Ok(None);
        };
        let found = partner::get(self.store(), account, link.partner).await?;
        let active = found.filter(|partner| partner.status == PartnerStatus::Active);
        Ok(active.map(|partner| (link, partner)))
    }

    /// The visit that stands, as long as it binds and its partner is there.
    async fn valid_visit<'v>(
        &self,
        account: AccountId,
        standing: &'v StoredCurrentVisit,
    ) -> Result<Option<&'v PartnerVisit>, AffiliateError> {
        let now = self.now();
        let Some(held) = standing.visit.as_ref().filter(|held| !held.has_lapsed(now)) else {
            return Ok(None);
        };
        let partner = partner::get(self.store(), account, held.partner).await?;
        Ok(partner.map(|_| held))
    }

    async fn new_visit(
        &self,
        program: &AffiliateProgram,
        (link, partner): (&PartnerLink, &Partner),
        arrival: &VisitRequest,
    ) -> Result<PartnerVisit, AffiliateError> {
        let now = self.now();
        let found = campaign::get(self.store(), program.account, partner.campaign).await?;
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
            expires_at: window::binds_until(now, days).unwrap_or(Timestamp::MAX),
        })
    }

    /// A visit of another domain: the visitor's here from now on, if it is the one that stands. No click.
    async fn visit_from_other_domain(
        &self,
        program: &AffiliateProgram,
        id: VisitId,
        (of, standing): (Option<&VisitorIdentity>, &StoredCurrentVisit),
    ) -> Result<Option<VisitDecision>, AffiliateError> {
        let (account, now) = (program.account, self.now());
        let found = store::affiliate::visit::get(self.store(), account, id).await?;
        let Some(given) = found.filter(|given| !given.has_lapsed(now)) else { return Ok(None) };
        if partner::get(self.store(), account, given.partner).await?.is_none() {
            return Ok(None);
        }
        let held = self.valid_visit(account, standing).await?;
        let stands = held.map_or(&given, |held| visit::attributed_visit(program.settings.attribution, held, &given));
        let mut batch = Batch::intake();
        let is_new = held.is_none_or(|held| held.id != given.id) && stands.id == given.id;
        if let Some(of @ VisitorIdentity::Visitor(visitor)) = of.filter(|_| is_new)
            && (given.visitors.contains(visitor) || given.visitors.len() < VISITORS_MAX)
        {
            let mut after = given.clone();
            if !after.visitors.contains(visitor) {
                after.visitors.push(visitor.clone());
            }
            store::affiliate::visit::update(&mut batch, &given, &after);
            store::affiliate::visit::set_current(&mut batch, (account, of), standing, given.id);
        }
        let stands = stands.clone();
        Ok(Some(VisitDecision { batch, stands }))
    }
}

/// Where a link leads that is followed without a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTarget {
    /// The address.
    pub location: String,
    /// The visit, if one was made.
    pub visit: Option<VisitId>,
}

impl AffiliateService {
    /// The program of a page's publishable key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_program_by_key(&self, key: &str) -> Result<Option<AffiliateProgram>, AffiliateError> {
        let found = program::find_by_id_or_key(self.store(), key).await?;
        // Programs are found by other names too, which are no keys.
        Ok(found.filter(|program| program.publishable_key == key))
    }

    /// [`Ledger::capture`].
    ///
    /// # Errors
    /// As there.
    pub async fn capture(
        &self,
        account: AccountId,
        arrival: &VisitRequest,
    ) -> Result<Option<CapturedVisit>, AffiliateError> {
        self.ledger().capture(account, arrival).await
    }

    /// Where a link leads, and, unless a machine asks, the visit of who follows it. A token that leads nowhere leads to
    /// the website, and nothing is kept of it.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn follow_link(
        &self,
        program: &AffiliateProgram,
        token: Option<&PartnerLinkToken>,
        arrival: Option<&VisitRequest>,
    ) -> Result<LinkTarget, AffiliateError> {
        let website = || LinkTarget { location: program.settings.website_url.clone(), visit: None };
        let Some(token) = token else { return Ok(website()) };
        let link = partner_link::find_by_token(self.store(), program.account, token).await?;
        let Some(link) = link else { return Ok(website()) };
        let captured = match arrival {
            // A crowd is led on, too.
            Some(arrival) => self.capture(program.account, arrival).await.unwrap_or_else(|refusal| {
                store::warn_unless_away!(self.store(), %refusal, "a click cannot be kept");
                None
            }),
            None => None,
        };
        let visit = captured.map(|captured| captured.visit.id);
        Ok(LinkTarget { location: landing_url(&program.settings.website_url, &link, visit), visit })
    }
}

/// Where a link leads, with the visit.
fn landing_url(website_url: &str, link: &PartnerLink, visit: Option<VisitId>) -> String {
    let found = links::parse_destination(website_url, link.destination_url.as_deref().unwrap_or_default());
    let found = found.or_else(|_| Url::parse(website_url));
    let Ok(mut url) = found else { return website_url.to_owned() };
    if let Some(id) = visit {
        url.query_pairs_mut().append_pair(HANDED_OVER, &id.to_string());
    }
    url.into()
}
