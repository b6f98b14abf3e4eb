//! Letters to partners: decided in the commit that makes true what they tell, and written after it.
//!
//! ```text
//! a partner joins, is approved, asks for a link, … ─►[ … + letter ] ─► find what is due in our partitions
//!                       ─► words (text and HTML) ─►[ the email (+ the link that it carries) - the letter ]
//! ```
//!
//! So each is mailed once, whatever crashes. Who writes, [`route`] says: the program from its `mail_from`, or the service in
//! fixed words to who asked; as an email of the program's account either way. What passes by itself is waited for, up to a
//! day. What is no more so is not written ([`Tells::holds`]), and who wants no mail gets what it asked for and what concerns
//! its money ([`Tells::is_essential`]).

mod route;
mod words;

use std::ops::RangeInclusive;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::{Address, Name};
use mail::affiliate::partner::Partner;
use mail::affiliate::partner_letter::{PartnerLetter, Tells};
use mail::affiliate::portal::{CONFIRMATION, INVITATION, LinkSecret, MAILED_LINK, PortalLink, Purpose};
use mail::affiliate::program::Program;
use mail::id::{AccountId, EventId, PartnerId};
use mail::letter::Letter;
use queue::accept::Accepted;
use queue::postman::Postman;
use queue::refusal::Refusal as Refused;
use store::affiliate::partner_letter::{self, Found};
use store::affiliate::portal_link::{self, Minting};
use store::affiliate::{partner, program};
use store::engine::{Batch, CommitError, ReadError};

use self::route::{Route, Routed};
use self::words::Facts;
use crate::office::Office;

pub use self::route::{MailWarning, Unmailable};
pub(crate) use self::words::ToldPayout;
pub use self::words::{destination_line, method_name};

/// Letters that are written one after the other before the next look.
const SLICE: usize = 50;
/// How soon is tried again what cannot be mailed at the moment …
const AGAIN: Duration = Duration::from_secs(60);
/// … and for how long.
const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// How often all partitions are looked at: other nodes put letters into them, and go.
const LOOK: Duration = Duration::from_secs(5);

/// Why a letter is not mailed.
enum Unmailed {
    /// It need not be.
    Never(String),
    /// It may not be.
    Barred(Unmailable),
    /// Not at the moment.
    NotNow(String),
}

fn not_now(error: &dyn std::fmt::Display) -> Unmailed {
    Unmailed::NotNow(error.to_string())
}

fn never(cause: &str) -> Unmailed {
    Unmailed::Never(cause.to_owned())
}

impl Office {
    /// Puts what a partner is to be told into the commit that makes it true, where it can be mailed. Says what the owner is
    /// to know of that.
    pub(crate) async fn tell_by_mail(
        &self,
        batch: &mut Batch,
        (program, partner): (&Program, &Partner),
        tells: Tells,
    ) -> Result<Option<MailWarning>, ReadError> {
        let warning = self.mail_warning(program, (&partner.email, partner.source), &tells).await?;
        if !matches!(warning, Some(MailWarning::Unmailed(_))) {
            self.write_to(batch, partner, tells);
        }
        Ok(warning)
    }

    /// Puts a letter into the commit that makes true what it tells.
    pub(crate) fn write_to(&self, batch: &mut Batch, partner: &Partner, tells: Tells) {
        let now = self.now();
        let letter = PartnerLetter {
            id: EventId::new(now, self.random()),
            account: partner.account,
            partner: partner.id,
            tells,
            since: now,
        };
        partner_letter::put(batch, &letter);
    }

    /// Writes letters as long as it is polled: those of this node's partitions.
    pub fn keep_writing_letters(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let next = self.now().checked_add(LOOK).unwrap_or(Timestamp::MAX);
                for partitions in self.hall.partitions() {
                    self.write_letters(partitions).await;
                }
                self.hall.until_letters(next).await;
            }
        })
    }

    /// Writes what of these partitions is due. Says how many letters are mailed now.
    pub async fn write_letters(&self, partitions: RangeInclusive<u16>) -> usize {
        let mut mailed = 0;
        loop {
            let due = partner_letter::due(self.store(), partitions.clone(), self.now(), SLICE).await;
            let due = match due {
                Ok(due) => due,
                Err(error) => {
                    store::warn_unless_away!(self.store(), %error, "letters to partners cannot be read at the moment");
                    return mailed;
                }
            };
            let is_full = due.len() == SLICE;
            for found in due {
                match self.write_letter(&found).await {
                    Ok(is_mailed) => mailed += usize::from(is_mailed),
                    // A store in need is not asked for the same again at once.
                    Err(Stuck) => return mailed,
                }
            }
            if !is_full {
                return mailed;
            }
        }
    }

    /// Mails one, or puts it off. Says whether it is mailed.
    async fn write_letter(&self, found: &Found) -> Result<bool, Stuck> {
        let (letter, now) = (&found.letter, self.now());
        let why = match self.mail_letter(found).await {
            Ok(()) => return Ok(true),
            Err(why) => why,
        };
        let mut batch = Batch::progress();
        let end = letter.since.checked_add(TRIED_FOR).unwrap_or(Timestamp::MAX);
        match why {
            Unmailed::NotNow(cause) if now < end => {
                tracing::debug!(%cause, affiliate.id = %letter.partner, "a partner is mailed later");
                found.put_off(&mut batch, now.checked_add(AGAIN).unwrap_or(Timestamp::MAX));
            }
            Unmailed::Never(cause) => {
                tracing::info!(%cause, account.id = %letter.account, affiliate.id = %letter.partner, "a partner is not mailed");
                found.take(&mut batch);
            }
            Unmailed::NotNow(cause) => {
                tracing::warn!(%cause, account.id = %letter.account, affiliate.id = %letter.partner, "a partner could not be mailed");
                found.take(&mut batch);
            }
            Unmailed::Barred(cause) => {
                warn_unmailed(letter.account, letter.partner, cause);
                found.take(&mut batch);
            }
        }
        match self.store().commit(batch).await {
            // Somebody else did it.
            Ok(()) | Err(CommitError::Conflict { .. }) => Ok(false),
            Err(_) => Err(Stuck),
        }
    }

    /// Accepts the email, and takes the letter away in the same commit.
    async fn mail_letter(&self, found: &Found) -> Result<(), Unmailed> {
        let letter = &found.letter;
        let store = self.store();
        let program = program::get(store, letter.account).await.map_err(|error| not_now(&error))?;
        let program = program.ok_or_else(|| never("the program is gone"))?;
        let partner =
            partner::get(store, letter.account, letter.partner).await.map_err(|error| not_now(&error))?;
        let partner = partner.ok_or_else(|| never("the partner is gone"))?;
        if !letter.tells.holds(partner.status) {
            return Err(never("it is so no more"));
        }
        if partner.email_opt_out && !letter.tells.is_essential() {
            return Err(never("the partner wants no mail"));
        }
        let routed =
            Routed { to: Some(&partner.email), is_asked_for: letter.tells.is_asked_for(partner.source) };
        let route = self.route(&program, routed).await.map_err(|error| not_now(&error))?;
        let route = route.map_err(Unmailed::Barred)?;
        let minting = self.mint_for(&partner, &letter.tells).await?;
        let link = minting.as_ref().map(|(secret, _)| secret);
        let facts = self.facts(&program, &partner, &letter.tells, link).await?;
        let sheets = match &route {
            Route::Program(_) => {
                let own = words::write(&letter.tells, false, &facts).letter(partner.email.clone());
                let former = former_destination(&partner, &letter.tells);
                let former = former.map(|to| words::write(&letter.tells, true, &facts).letter(to));
                std::iter::once(own).chain(former).collect()
            }
            Route::Service(_) => {
                let host = self.verified_host(&program).await.map_err(|error| not_now(&error))?;
                let Some(written) = words::write_fixed(&letter.tells, host.as_ref(), &facts) else {
                    return Err(Unmailed::Barred(Unmailable::NoSender));
                };
                vec![written.letter(partner.email.clone())]
            }
        };
        self.send((&program, route), sheets, (found, minting.map(|(_, minting)| minting))).await
    }

    /// A host that the account has verified, by which people may know the program: that of its sender, or of its portal.
    async fn verified_host(&self, program: &Program) -> Result<Option<Name>, ReadError> {
        if let Some(from) = &program.settings.mail_from
            && self.is_verified_for(program.account, from.domain()).await?
        {
            return Ok(Some(from.domain().clone()));
        }
        self.portal_host(program).await
    }

    /// The link that a letter carries, if it is one of those.
    async fn mint_for(
        &self,
        partner: &Partner,
        tells: &Tells,
    ) -> Result<Option<(LinkSecret, Minting)>, Unmailed> {
        let (purpose, works_for) = match tells {
            Tells::SignIn => (Purpose::Mailed, MAILED_LINK),
            Tells::Invited => (Purpose::Mailed, INVITATION),
            Tells::ConfirmPayout { method, destination } => {
                (Purpose::Payout { method: *method, destination: destination.clone() }, CONFIRMATION)
            }
            _ => return Ok(None),
        };
        let now = self.now();
        let expires_at = now.checked_add(works_for).map_err(|error| not_now(&error))?;
        let link = PortalLink { account: partner.account, partner: partner.id, purpose, expires_at };
        let secret = LinkSecret::new(self.hall.entropy().secret());
        let minting = portal_link::prepare(self.store(), link, &secret, now).await;
        Ok(Some((secret, minting.map_err(|error| not_now(&error))?)))
    }

    async fn facts(
        &self,
        program: &Program,
        partner: &Partner,
        tells: &Tells,
        link: Option<&LinkSecret>,
    ) -> Result<Facts, Unmailed> {
        let origin = self.portal_origin(program).await.map_err(|error| not_now(&error))?;
        let origin = origin.ok_or_else(|| {
            // The door opens after the store does.
            Unmailed::NotNow("it is not known yet where the portal is".to_owned())
        })?;
        let place = if matches!(tells, Tells::ConfirmPayout { .. }) { "payout" } else { "link" };
        let payout = match tells {
            Tells::PayoutPaid { payout } | Tells::PayoutFailed { payout } => {
                self.told_payout(partner, *payout).await.map_err(|error| not_now(&error))?
            }
            _ => None,
        };
        Ok(Facts {
            site: site(program),
            website_url: program.settings.website_url.clone(),
            portal: format!("{origin}/portal/sign-in?key={}", program.publishable_key),
            link: link.map(|secret| format!("{origin}/portal/{place}/{}", secret.text())),
            goes_to: partner.payout.as_ref().map(|payout| (payout.method, payout.destination.clone())),
            payout,
        })
    }

    /// Sends the sheets of a letter, the first of which is the partner's own; and takes the letter away and makes its
    /// link, in the same commit.
    async fn send(
        &self,
        (program, route): (&Program, Route),
        sheets: Vec<Letter>,
        (found, minting): (&Found, Option<Minting>),
    ) -> Result<(), Unmailed> {
        let also = |outcomes: &[Result<Accepted, Refused>], batch: &mut Batch| {
            // A partner who is suppressed is not written to: then that is over, too.
            if matches!(outcomes.first(), Some(Ok(_) | Err(Refused::Blocked { .. }))) {
                found.take(batch);
                if let Some(minting) = &minting {
                    minting.write(batch);
                }
            }
        };
        let postman = self.postman(program, route).await?;
        let outcomes = match postman.send_all_with(&self.hall, sheets, &also).await {
            Ok(outcomes) => outcomes,
            Err(Refused::DoneMeanwhile) => return Ok(()),
            Err(refusal) => return Err(not_now(&refusal)),
        };
        match outcomes.into_iter().next() {
            None | Some(Ok(_) | Err(Refused::Blocked { .. })) => Ok(()),
            Some(Err(refusal @ (Refused::Message(_) | Refused::Invalid { .. }))) => {
                Err(Unmailed::Never(refusal.to_string()))
            }
            // Whatever else is in the way, the owner or the operator can clear away.
            Some(Err(refusal)) => Err(not_now(&refusal)),
        }
    }

    /// Who writes for a program. Its name is the sender's domain, which the account has verified; the service has none.
    async fn postman(&self, program: &Program, route: Route) -> Result<Postman, Unmailed> {
        let hall = &self.hall;
        let found = match route {
            Route::Program(from) => {
                let name = from.domain().to_unicode();
                Postman::of_account(hall, program.account, from).await.map(|postman| postman.named(name))
            }
            Route::Service(from) => Postman::for_account(hall, program.account, from).await,
        };
        found.map_err(|error| not_now(&error))
    }
}

/// Says that a partner is not mailed because its account may not write to it.
fn warn_unmailed(account: AccountId, partner: PartnerId, cause: Unmailable) {
    tracing::warn!(%cause, account.id = %account, affiliate.id = %partner, "a partner is not mailed");
}

/// Says so of a partner who was just added or moved, if it is so.
pub(crate) fn log_warning(partner: &Partner, warning: Option<MailWarning>) {
    if let Some(MailWarning::Unmailed(cause)) = warning {
        warn_unmailed(partner.account, partner.id, cause);
    }
}

/// A letter lies where it lay: the store takes nothing at the moment.
struct Stuck;

/// Where money went so far: it is told as well, where mail reaches it.
fn former_destination(partner: &Partner, tells: &Tells) -> Option<Address> {
    let Tells::PayoutChanged { before: Some((_, destination)) } = tells else { return None };
    let address: Address = destination.parse().ok()?;
    let is_same = address.to_string().eq_ignore_ascii_case(&partner.email.to_string());
    (!is_same).then_some(address)
}

/// What people know the program by on its own pages and in its own mail: the host of its website. Nobody has verified it.
#[must_use]
pub fn site(program: &Program) -> String {
    let url = url::Url::parse(&program.settings.website_url).ok();
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or(&program.settings.website_url);
    host.strip_prefix("www.").unwrap_or(host).to_owned()
}
