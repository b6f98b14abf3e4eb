//! Time per page of each list, with each filter, through the functions that the API's handlers call, including the JSON
//! objects. Pages have the maximum size and start at random positions.

use affiliate::api_objects::{CommissionObject, LinkObject, PayoutObject, PayoutRunObject, ReferralObject};
use affiliate::partners::changes::PartnerQuery;
use affiliate::partners::lookup::PartnerView;
use affiliate::payouts::settle::PayoutQuery;
use jiff::{SignedDuration, Timestamp};
use model::affiliate::partner::PartnerStatus;
use model::affiliate::payout::PayoutStatus;
use model::affiliate::referral::{ReferralSource, ReferralStatus, ReviewStatus};
use model::id::{CampaignId, PayoutId};
use serde::Serialize;
use store::affiliate::commission::{self, CommissionStatus};
use store::affiliate::listing::ListPageRequest;
use store::affiliate::processor_event::EventStatus;
use store::affiliate::referral;

use super::fixture::Fixture;
use super::gauge::{spread_of, start};
use super::number;
use super::partners::{email, has_all_links};
use super::payouts::Drafted;
use super::scale::{PAID_RUNS, Scale, days, spread};

/// Page size, the API's maximum.
const LIMIT: usize = 100;

/// Number of rows, and whether there is another page.
type PageSize = (usize, bool);

/// Serializes the objects, as a response would.
fn page_size<T: Serialize>(objects: &[T], has_next: bool) -> PageSize {
    std::hint::black_box(serde_json::to_vec(objects).unwrap());
    (objects.len(), has_next)
}

/// Returns a pseudo-random time within a range.
fn between((from, to): (Timestamp, Timestamp), number: u64) -> Timestamp {
    let ms = u64::try_from(to.duration_since(from).as_millis()).unwrap().max(1);
    from + SignedDuration::from_millis((spread(number * 7) % ms).try_into().unwrap())
}

/// Returns a page that starts at a pseudo-random time.
fn page(times: (Timestamp, Timestamp), number: u64) -> ListPageRequest {
    let before = Some(PayoutId::new(between(times, number), 0).to_bytes());
    ListPageRequest { before, limit: LIMIT, from: None }
}

/// Number of pages measured per list.
fn pages() -> u64 {
    number("PAGES", 500)
}

async fn time(name: &str, page: impl AsyncFn(u64) -> PageSize) {
    let (mut times, mut rows, mut short) = (Vec::new(), 0, 0);
    for number in 0..pages() {
        let started = start();
        let (count, has_next) = page(number).await;
        times.push(started.elapsed());
        rows += count;
        short += u64::from(count < LIMIT && has_next);
    }
    let [middle, p99, maximum] = spread_of(times);
    println!("{name:<46} {middle:>8.3} {p99:>8.3} {maximum:>8.3} {:>6.1} {short:>6}", rows as f64 / pages() as f64);
}

pub(crate) async fn measure(fixture: &Fixture, scale: &Scale, campaigns: &[CampaignId], drafted: &Drafted) {
    println!(
        "\n{:<46} {:>8} {:>8} {:>8} {:>6} {:>6}",
        format!("ms per page of {LIMIT}"),
        "p50",
        "p99",
        "most",
        "rows",
        "short"
    );
    let lists = Lists { fixture, scale, all: (scale.begin, scale.end) };
    lists.partners(campaigns).await;
    lists.referrals().await;
    lists.commissions().await;
    lists.payouts(drafted).await;
    lists.owner(drafted).await;
}

struct Lists<'a> {
    fixture: &'a Fixture,
    scale: &'a Scale,
    /// Period in which the rows were created.
    all: (Timestamp, Timestamp),
}

impl Lists<'_> {
    async fn partners(&self, campaigns: &[CampaignId]) {
        use PartnerStatus::{Active, Pending, Suspended};
        let none = PartnerQuery::default;
        let (id, name) = (campaigns[1].to_string(), "plan 1".to_owned());
        let queries = [
            ("affiliates", none()),
            ("affiliates, active", PartnerQuery { statuses: vec![Active], ..none() }),
            ("affiliates, pending", PartnerQuery { statuses: vec![Pending], ..none() }),
            ("affiliates, pending or suspended", PartnerQuery { statuses: vec![Pending, Suspended], ..none() }),
            ("affiliates of a campaign", PartnerQuery { campaign: Some(id.clone()), ..none() }),
            ("affiliates of a campaign, by its name", PartnerQuery { campaign: Some(name), ..none() }),
            (
                "affiliates of a campaign, suspended",
                PartnerQuery { campaign: Some(id), statuses: vec![Suspended], ..none() },
            ),
        ];
        let times = (self.scale.joined_at(0), self.scale.begin);
        for (name, query) in queries {
            time(name, async |number| self.partner_page(&query, page(times, number)).await).await;
        }
        let first = ListPageRequest { before: None, limit: LIMIT, from: None };
        time("affiliates, by address", async |number| {
            let address = email(spread(number) % self.scale.partners).parse().unwrap();
            self.partner_page(&PartnerQuery { email: Some(address), ..none() }, first).await
        })
        .await;
        time("links of an affiliate who has all", async |number| {
            let partner = spread(number) % self.scale.partners / 50 * 50 + 10;
            assert!(has_all_links(partner));
            let partner_key = (self.fixture.account, self.scale.partner_id(partner));
            self.fixture.service.context.require_set_up(partner_key.0).await.unwrap();
            let PartnerView { partner, links, program, .. } =
                self.fixture.service.context.get_partner_view(partner_key.0, partner_key.1).await.unwrap();
            let objects: Vec<_> = links.iter().map(|link| LinkObject::of(link, &partner, &program)).collect();
            page_size(&objects, false)
        })
        .await;
    }

    async fn partner_page(&self, query: &PartnerQuery, wanted: ListPageRequest) -> PageSize {
        let program = self.fixture.service.context.require_set_up(self.fixture.account).await.unwrap();
        let page = self.fixture.service.partners.list_partners(&program, query, wanted).await.unwrap();
        let objects: Vec<_> = page.rows.iter().map(PartnerView::object).collect();
        page_size(&objects, page.next.is_some())
    }

    async fn referrals(&self) {
        use ReferralSource::{Checkout, Metadata};
        use ReferralStatus::{Active, Lead, Refunded, Trialing};
        use referral::ReferralFilter;
        let none = ReferralFilter::default;
        let statuses = |statuses: &[ReferralStatus]| ReferralFilter { statuses: statuses.to_vec(), ..none() };
        let filters = [
            ("referrals", none()),
            ("referrals, active", statuses(&[Active])),
            ("referrals, refunded", statuses(&[Refunded])),
            ("referrals, lead or trialing", statuses(&[Lead, Trialing])),
            ("referrals of all statuses", statuses(&ReferralStatus::ALL)),
            ("referrals by checkout", ReferralFilter { sources: vec![Checkout], ..none() }),
            ("referrals by metadata, very few", ReferralFilter { sources: vec![Metadata], ..none() }),
            (
                "referrals by metadata, of all statuses",
                ReferralFilter { sources: vec![Metadata], ..statuses(&ReferralStatus::ALL) },
            ),
        ];
        for (name, filter) in filters {
            time(name, async |number| self.referral_page(&filter, page(self.all, number)).await).await;
        }
        let partner_at = |number: u64| Some(self.scale.partner_id(self.scale.partner_of(spread(number))));
        time("referrals of an affiliate", async |number| {
            self.referral_page(&ReferralFilter { partner: partner_at(number), ..none() }, page(self.all, number)).await
        })
        .await;
        time("referrals of an affiliate, refunded", async |number| {
            let filter = ReferralFilter { partner: partner_at(number), ..statuses(&[Refunded]) };
            self.referral_page(&filter, page(self.all, number)).await
        })
        .await;
        let first = ListPageRequest { before: None, limit: LIMIT, from: None };
        time("referrals, by address", async |number| {
            let address = format!("person{}@buyers.example", spread(number) % self.scale.referrals);
            self.referral_page(&ReferralFilter { email: address.parse().ok(), ..none() }, first).await
        })
        .await;
        time("referrals, created between, lead", async |number| {
            let (start, end) = (between(self.all, number), between(self.all, number + (1 << 20)));
            let created = (Some(start.min(end)), Some(start.max(end)));
            let filter = ReferralFilter { created_after: created.0, created_before: created.1, ..statuses(&[Lead]) };
            self.referral_page(&filter, first).await
        })
        .await;
    }

    async fn referral_page(&self, filter: &referral::ReferralFilter, wanted: ListPageRequest) -> PageSize {
        self.fixture.service.context.require_set_up(self.fixture.account).await.unwrap();
        let page = self.fixture.service.ledger.list_referrals(self.fixture.account, filter, wanted).await.unwrap();
        let objects: Vec<_> = page.rows.iter().map(ReferralObject::from).collect();
        page_size(&objects, page.next.is_some())
    }

    async fn commissions(&self) {
        use CommissionStatus::{Earned, Paid, Pending, Reversed};
        use commission::CommissionFilter;
        let none = CommissionFilter::default;
        let recent = (self.scale.end - days(60), self.scale.end);
        let statuses = |statuses: &[CommissionStatus]| CommissionFilter { statuses: statuses.to_vec(), ..none() };
        let currency = |text: &str| vec![text.parse().unwrap()];
        let filters = [
            ("commissions", none()),
            ("commissions, pending", statuses(&[Pending])),
            ("commissions, earned", statuses(&[Earned])),
            ("commissions, paid", statuses(&[Paid])),
            ("commissions, paid or reversed", statuses(&[Paid, Reversed])),
            ("commissions of all statuses", statuses(&CommissionStatus::ALL)),
            ("commissions in usd", CommissionFilter { currencies: currency("usd"), ..none() }),
            ("commissions in eur, one in fifteen", CommissionFilter { currencies: currency("eur"), ..none() }),
            ("commissions in gbp, none", CommissionFilter { currencies: currency("gbp"), ..none() }),
            (
                "commissions in gbp, none, of all statuses",
                CommissionFilter { currencies: currency("gbp"), ..statuses(&CommissionStatus::ALL) },
            ),
        ];
        for (name, filter) in filters {
            // Unpaid lines are recent.
            let is_recent = matches!(filter.statuses[..], [Pending | Earned]);
            let times = if is_recent { recent } else { self.all };
            time(name, async |number| self.commission_page(&filter, page(times, number)).await).await;
        }
        let partner_at = |number: u64| Some(self.scale.partner_id(self.scale.partner_of(spread(number))));
        time("commissions of an affiliate", async |number| {
            self.commission_page(&CommissionFilter { partner: partner_at(number), ..none() }, page(self.all, number))
                .await
        })
        .await;
        time("commissions of an affiliate, reversed", async |number| {
            let filter = CommissionFilter { partner: partner_at(number), ..statuses(&[Reversed]) };
            self.commission_page(&filter, page(self.all, number)).await
        })
        .await;
        let first = ListPageRequest { before: None, limit: LIMIT, from: None };
        time("commissions of a referral", async |number| {
            let referral = self.scale.referral_id(spread(number) % self.scale.referrals);
            self.commission_page(&CommissionFilter { referral: Some(referral), ..none() }, first).await
        })
        .await;
        time("commissions, created between, reversed", async |number| {
            let (start, end) = (between(self.all, number), between(self.all, number + (1 << 20)));
            let created = (Some(start.min(end)), Some(start.max(end)));
            let filter =
                CommissionFilter { created_after: created.0, created_before: created.1, ..statuses(&[Reversed]) };
            self.commission_page(&filter, first).await
        })
        .await;
    }

    async fn commission_page(&self, filter: &commission::CommissionFilter, wanted: ListPageRequest) -> PageSize {
        self.fixture.service.context.require_set_up(self.fixture.account).await.unwrap();
        let page = commission::list(self.fixture.store(), self.fixture.account, filter, wanted).await.unwrap();
        let objects: Vec<_> = page.rows.iter().map(CommissionObject::from).collect();
        page_size(&objects, page.next.is_some())
    }

    async fn payouts(&self, drafted: &Drafted) {
        use PayoutStatus::{Draft, Failed, Paid, Processing};
        let none = PayoutQuery::default;
        let statuses = |statuses: &[PayoutStatus]| PayoutQuery { statuses: statuses.to_vec(), ..none() };
        let (all, draft) = ((self.scale.begin, drafted.until), (drafted.run.created_at, drafted.until));
        let runs = (self.scale.run_at(0), self.scale.run_at(PAID_RUNS) + SignedDuration::from_secs(1));
        let in_progress = (self.scale.run_at(PAID_RUNS) + SignedDuration::from_millis(1), runs.1);
        let a_run = Some(self.scale.run_id(3));
        let queries = [
            ("payouts", none(), all),
            ("payouts, draft", statuses(&[Draft]), draft),
            ("payouts, processing", statuses(&[Processing]), in_progress),
            ("payouts, paid", statuses(&[Paid]), runs),
            ("payouts, failed", statuses(&[Failed]), runs),
            ("payouts, draft or failed", statuses(&[Draft, Failed]), runs),
            ("payouts of a run", PayoutQuery { run: a_run, ..none() }, runs),
            ("payouts of a run, failed", PayoutQuery { run: a_run, ..statuses(&[Failed]) }, runs),
        ];
        for (name, query, times) in queries {
            time(name, async |number| self.payout_page(&query, page(times, number)).await).await;
        }
        time("payouts of an affiliate", async |number| {
            let partner = Some(self.scale.partner_id(self.scale.partner_of(spread(number))));
            self.payout_page(&PayoutQuery { partner, ..none() }, page(runs, number)).await
        })
        .await;
    }

    async fn payout_page(&self, query: &PayoutQuery, wanted: ListPageRequest) -> PageSize {
        self.fixture.service.context.require_set_up(self.fixture.account).await.unwrap();
        let page = self.fixture.ledger().list_payouts(self.fixture.account, query, wanted).await.unwrap();
        let objects: Vec<_> = page.rows.iter().map(PayoutObject::from).collect();
        page_size(&objects, page.next.is_some())
    }

    /// Lists that only the owner sees.
    async fn owner(&self, drafted: &Drafted) {
        let (affiliate, account) = (&self.fixture.service, self.fixture.account);
        time("owner: campaigns, each with its affiliates", async |_| {
            let mut counts = Vec::new();
            for campaign in affiliate.context.list_campaigns(account).await.unwrap() {
                counts.push(affiliate.context.count_partners(&campaign).await.unwrap());
            }
            page_size(&counts, false)
        })
        .await;
        for (name, statuses) in [
            ("owner: reviews", Vec::new()),
            ("owner: reviews, open", vec![ReviewStatus::Open]),
            ("owner: reviews, allowed or rejected", vec![ReviewStatus::Allowed, ReviewStatus::Rejected]),
        ] {
            time(name, async |number| {
                let wanted = page(self.all, number);
                let page = referral::list_reviews(self.fixture.store(), account, &statuses, wanted).await.unwrap();
                let objects: Vec<_> = page.rows.iter().map(ReferralObject::from).collect();
                page_size(&objects, page.next.is_some())
            })
            .await;
        }
        for (name, statuses) in [
            ("owner: processor's events", Vec::new()),
            ("owner: processor's events, failed", vec![EventStatus::Failed]),
        ] {
            time(name, async |number| {
                let month = (self.fixture.now - days(30), self.fixture.now);
                let after = (between(month, number), String::new());
                let page =
                    affiliate.events.list_processor_events(account, &statuses, Some(&after), LIMIT).await.unwrap();
                (page.events.len(), page.next.is_some())
            })
            .await;
        }
        time("owner: payout runs", async |_| {
            let wanted = ListPageRequest { before: None, limit: LIMIT, from: None };
            let page = self.fixture.ledger().list_runs(account, wanted).await.unwrap();
            let objects: Vec<_> = page.rows.iter().map(PayoutRunObject::from).collect();
            page_size(&objects, page.next.is_some())
        })
        .await;
        time("owner: a part of a run's payouts", async |number| {
            let after = Some(PayoutId::new(between((drafted.run.created_at, drafted.until), number), 0));
            let ledger = self.fixture.ledger();
            let (payouts, next) = ledger.list_payouts_of_run(&drafted.run, after, LIMIT).await.unwrap();
            let objects: Vec<_> = payouts.iter().map(PayoutObject::from).collect();
            page_size(&objects, next.is_some())
        })
        .await;
    }
}
