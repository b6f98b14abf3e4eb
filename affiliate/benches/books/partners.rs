//! The program, its campaigns, partners with links, and recent processor events.

use jiff::Timestamp;
use model::affiliate::campaign::{Campaign, CommissionDuration as Months, CommissionRate, CommissionTerms, Visibility};
use model::affiliate::money::BasisPoints;
use model::affiliate::partner::{
    LINKS_MAX, Partner, PartnerLink, PartnerLinkToken, PartnerSource, PartnerStatus, PayoutDestination,
};
use model::affiliate::program::{
    AffiliateProgram, PaymentProcessor, PayoutMethod, ProcessorMode, ProgramSettings, ProgramStatus,
};
use model::domain::SealedSecret;
use model::id::{CampaignId, PartnerLinkId, ProgramId};
use store::affiliate::processor_event::{self, EventStatus, ProcessorEvent, StoredProcessorEvent};
use store::affiliate::{campaign, partner, partner_link, program};
use store::engine::Batch;

use super::fixture::Fixture;
use super::scale::{Scale, days, recruiter, spread, standing};

/// Rows per commit.
const AT_ONCE: usize = 200;
/// Number of campaigns.
const CAMPAIGNS: u64 = 3;

/// True for partners with the maximum number of links.
pub(crate) fn has_all_links(partner: u64) -> bool {
    partner % 50 == 10
}

fn points(points: u16) -> BasisPoints {
    BasisPoints::try_from(points).unwrap()
}

fn campaign_of(fixture: &Fixture, at: Timestamp, number: u64) -> Campaign {
    let terms = CommissionTerms {
        base: CommissionRate::Percent(points(2_000)),
        unused: 0,
        tiers: Vec::new(),
        products: Vec::new(),
        duration: Months::Recurring(None),
        max_commission: None,
        second_tier: points(500),
        lead_bounty: 0,
        cookie_days: 30,
        hold_days: 30,
    };
    Campaign {
        id: CampaignId::new(at, spread(number).into()),
        account: fixture.account,
        name: format!("Plan {number}"),
        visibility: Visibility::Public,
        auto_approve: true,
        terms,
        archived_at: None,
        rev: 1,
        created_at: at,
        updated_at: at,
    }
}

fn program_of(fixture: &Fixture, at: Timestamp, plan: CampaignId) -> AffiliateProgram {
    let processor = PaymentProcessor {
        api_base: "https://api.stripe.example".to_owned(),
        restricted_key: None,
        webhook_secrets: vec![SealedSecret(String::new())],
        account_id: None,
        livemode: Some(true),
    };
    AffiliateProgram {
        id: ProgramId::new(at, 1),
        account: fixture.account,
        status: ProgramStatus::Live,
        settings: ProgramSettings::new("https://shop.example".to_owned(), "usd".parse().unwrap(), ProcessorMode::Live),
        default_campaign: Some(plan),
        publishable_key: "pk_bench".to_owned(),
        processor: Some(processor),
        rev: 1,
        created_at: at,
        updated_at: at,
    }
}

fn partner_of(fixture: &Fixture, scale: &Scale, number: u64, campaigns: &[CampaignId]) -> Partner {
    let (at, email) = (scale.joined_at(number), email(number));
    let status = standing(number);
    let is_member = matches!(status, PartnerStatus::Active | PartnerStatus::Suspended);
    Partner {
        id: scale.partner_id(number),
        account: fixture.account,
        email: email.parse().unwrap(),
        first_name: Some("Ada".to_owned()),
        last_name: Some(format!("No. {number}")),
        company: None,
        website: Some("https://blog.example/".to_owned()),
        country: Some("DE".to_owned()),
        status,
        source: PartnerSource::Import,
        campaign: campaigns[usize::try_from(number % CAMPAIGNS).unwrap()],
        parent: recruiter(number).map(|recruiter| scale.partner_id(recruiter)),
        tags: vec!["podcast".to_owned()],
        payout: Some(PayoutDestination { method: PayoutMethod::Paypal, destination: email, is_able: true }),
        payouts_failed: 0,
        notes: None,
        postback_url: None,
        postback_secret: SealedSecret("x".repeat(80)),
        email_opt_out: false,
        commission_override: None,
        primary_link: PartnerLinkId::new(at, spread(number).into()),
        was_paid: is_member,
        approved_at: is_member.then_some(at),
        terms_accepted_at: None,
        rev: 1,
        created_at: at,
        updated_at: at,
    }
}

pub(crate) fn email(partner: u64) -> String {
    format!("partner{partner}@partners.example")
}

async fn links(fixture: &Fixture, batch: &mut Batch, partner: &Partner, number: u64) {
    let count = if has_all_links(number) { LINKS_MAX } else { 1 };
    for nth in 0..count {
        let token = PartnerLinkToken::parse(&format!("p{number}-{nth}")).unwrap();
        let free = partner_link::find_free_token(fixture.store(), fixture.account, &token, fixture.now)
            .await
            .unwrap()
            .unwrap();
        let chance = u128::from(spread(number)) + u128::try_from(nth).unwrap();
        let link = PartnerLink {
            id: PartnerLinkId::new(partner.created_at, chance),
            account: fixture.account,
            partner: partner.id,
            token,
            destination_url: None,
            label: None,
            created_at: partner.created_at,
        };
        partner_link::create(batch, &link, free);
    }
}

fn event_of(fixture: &Fixture, scale: &Scale, number: u64) -> ProcessorEvent {
    let status = match number % 100 {
        0 => EventStatus::Failed,
        1 => EventStatus::Ignored,
        _ => EventStatus::Done,
    };
    let back = days(30).as_millis() * i128::from(number) * 10 / i128::from(scale.referrals);
    ProcessorEvent {
        id: format!("evt_old_{number}"),
        kind: "invoice.paid".to_owned(),
        status,
        error: (status == EventStatus::Failed).then(|| "the processor does not answer".to_owned()),
        attempts: 1,
        received_at: fixture.now - jiff::SignedDuration::from_millis(back.try_into().unwrap()),
        body: (status == EventStatus::Failed).then(|| "x".repeat(4_000)),
        is_asked: false,
    }
}

/// Writes all rows, and returns the campaigns.
pub(crate) async fn write(fixture: &Fixture, scale: &Scale) -> Vec<CampaignId> {
    let at = scale.joined_at(0);
    let campaigns: Vec<_> = (0..CAMPAIGNS).map(|number| campaign_of(fixture, at, number)).collect();
    let ids: Vec<_> = campaigns.iter().map(|campaign| campaign.id).collect();
    let mut batch = Batch::intake();
    campaigns.iter().for_each(|campaign| campaign::create(&mut batch, campaign));
    program::create(&mut batch, &program_of(fixture, at, ids[0]));
    fixture.store().commit(batch).await.unwrap();
    for chunk in (0..scale.partners).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut batch = Batch::intake();
        for number in chunk {
            let partner = partner_of(fixture, scale, *number, &ids);
            partner::create(&mut batch, &partner);
            links(fixture, &mut batch, &partner, *number).await;
        }
        fixture.store().commit(batch).await.unwrap();
    }
    for chunk in (0..scale.referrals / 10).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut batch = Batch::intake();
        for number in chunk {
            let event = event_of(fixture, scale, *number);
            processor_event::put(&mut batch, fixture.account, &StoredProcessorEvent::default(), &event);
        }
        fixture.store().commit(batch).await.unwrap();
    }
    ids
}
