//! Referrals with their processor state and lines. A few model customers are ingested through the ledger; all others
//! are copies of the rows it wrote, with their own ids and times. So the rows are the ones that the ledger stores.

use std::collections::{BTreeMap, HashMap, HashSet};

use affiliate::context::no_extension;
use affiliate::ledger::ingest::{FactIngest, IngestOutcome};
use affiliate::referrals::{PartnerSelector, ReferralDraft};
use jiff::Timestamp;
use model::affiliate::commission::{Commission, CommissionOrigin, CommissionState, FreezeReasons};
use model::affiliate::money::Currency;
use model::affiliate::referral::{
    FraudFlag, Referral, ReferralRejection, ReferralReview, ReferralSource, ReferralStatus, RejectReason, ReviewStatus,
};
use model::id::CommissionId;
use net::clock::Clock;
use serde_json::Value;
use serde_json::value::RawValue;
use store::affiliate::processor_state::{self, ProcessorObjectKind, StoredProcessorObject};
use store::affiliate::{commission, customer_counts, payout, referral};
use store::engine::Batch;

use super::fixture::Fixture;
use super::processor_objects;
use super::scale::{Fate, PAID_RUNS, Scale, days, fate, recruiter, spread, stem};

/// Referrals per commit.
const AT_ONCE: usize = 100;
/// Maximum lines of a referral; keeps the generated ids distinct.
const LINES_MAX: u64 = 1_000;

/// Key of a payout: run, partner, currency.
pub(crate) type PayoutKey = (u32, u64, Currency);

/// Sum of a payout's lines.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) amount: i64,
    pub(crate) lines: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) lines: u64,
    pub(crate) payouts: BTreeMap<PayoutKey, Sum>,
    paying: HashMap<u64, u32>,
}

/// A model referral as the ledger stored it, with its processor state.
struct Model {
    stem: String,
    referral: Referral,
    objects: Vec<(ProcessorObjectKind, String, String)>,
    invoices: Vec<String>,
    /// With the number of each line's invoice.
    lines: Vec<(u64, Commission)>,
}

fn is_customer(fate: Fate) -> bool {
    !matches!(fate, Fate::Lead | Fate::Flagged | Fate::Rejected)
}

fn has_paid(fate: Fate) -> bool {
    is_customer(fate) && fate != Fate::Trialing
}

/// Cancelled customers pay in another currency.
fn currency(fate: Fate) -> &'static str {
    if fate == Fate::Cancelled { "eur" } else { "usd" }
}

fn invoice_id(stem: &str, number: u64) -> String {
    format!("in_{stem}_{number}")
}

/// Returns all events of a customer, in order.
fn events(scale: &Scale, fate: Fate, stem: &str, from: i64) -> Vec<Value> {
    let mut objects: Vec<(&str, Value)> = Vec::new();
    let status = if fate == Fate::Trialing { "trialing" } else { "active" };
    objects.push(("customer.subscription.created", processor_objects::subscription(stem, status)));
    let invoices = if has_paid(fate) { scale.invoices } else { 0 };
    for number in 0..invoices {
        let (id, paid_at) = (invoice_id(stem, number), from + i64::try_from(number).unwrap() + 1);
        objects.push(("invoice.paid", processor_objects::invoice(&id, stem, currency(fate), paid_at)));
        if fate == Fate::Refunded {
            objects.push(("charge.refunded", processor_objects::refunded(&id, currency(fate))));
        }
    }
    if fate == Fate::Cancelled {
        objects.push(("customer.subscription.deleted", processor_objects::subscription(stem, "canceled")));
    }
    let event = |(second, (kind, object)): (i64, (&str, Value))| {
        processor_objects::event(&format!("evt_{stem}_{second}"), kind, from + second, &object)
    };
    (1..).zip(objects).map(event).collect()
}

async fn model(fixture: &Fixture, scale: &Scale, fate: Fate, partner: u64) -> Model {
    let (store, account, ledger) = (fixture.store(), fixture.account, fixture.ledger());
    let stem = format!("model{fate:?}{partner}x").to_lowercase();
    let customer = is_customer(fate).then(|| format!("cus_{stem}"));
    let email = format!("{stem}@buyers.example").parse().unwrap();
    let selector = PartnerSelector::Id(scale.partner_id(partner));
    let draft = ReferralDraft { partner: selector, email, customer: customer.clone(), sub_id: None };
    let id = ledger.refer(account, &draft, &no_extension).await.unwrap().referral.id;
    let (mut objects, mut lines, mut invoices) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(customer) = customer {
        // Invoices must be later than the referral, and writing the partners may have taken a while.
        let from = Clock::default().now().as_second();
        for event in events(scale, fate, &stem, from) {
            let answer = FactIngest::new(&ledger, None).ingest(account, event.to_string().as_bytes()).await;
            assert!(matches!(answer, IngestOutcome::Done), "{event}: {answer:?}");
        }
        invoices = processor_state::list_customer_invoices(store, account, &customer, None, usize::MAX).await.unwrap();
        let mut named = vec![(ProcessorObjectKind::Customer, customer)];
        for id in &invoices {
            let number = id.rsplit('_').next().unwrap().parse().unwrap();
            let theirs = commission::list_by_invoice(store, account, id).await.unwrap();
            lines.extend(theirs.into_iter().map(|line| (number, line)));
            named.extend([
                (ProcessorObjectKind::Invoice, id.clone()),
                (ProcessorObjectKind::Payment, format!("pi_{id}")),
            ]);
            named.push((ProcessorObjectKind::Charge, format!("ch_{id}")));
        }
        for (kind, name) in named {
            let read: StoredProcessorObject<Box<RawValue>> =
                processor_state::get(store, account, kind, &name).await.unwrap();
            objects.extend(read.value.map(|value| (kind, name, value.get().to_owned())));
        }
    }
    assert_eq!(has_paid(fate), !lines.is_empty(), "{fate:?}");
    let referral = referral::get(store, account, id).await.unwrap().unwrap();
    Model { stem, referral, objects, invoices, lines }
}

/// Source of a referral; metadata is very rare.
fn source(number: u64) -> ReferralSource {
    match number % 1_000 {
        0 => ReferralSource::Metadata,
        other if other % 3 == 0 => ReferralSource::Checkout,
        other if other % 3 == 1 => ReferralSource::Signup,
        _ => ReferralSource::Api,
    }
}

fn review(fate: Fate, at: Timestamp) -> Option<ReferralReview> {
    let status = match fate {
        Fate::Flagged => ReviewStatus::Open,
        Fate::Rejected => ReviewStatus::Rejected,
        Fate::Allowed => ReviewStatus::Allowed,
        _ => return None,
    };
    let decided_at = (status != ReviewStatus::Open).then_some(at);
    Some(ReferralReview { flags: vec![FraudFlag::Velocity], status, created_at: at, decided_at })
}

/// Writes copies of a model.
struct Copier<'a> {
    fixture: &'a Fixture,
    scale: &'a Scale,
    batch: Batch,
    written: &'a mut Written,
}

impl Copier<'_> {
    fn copy(&mut self, model: &Model, number: u64) {
        let (account, name, fate) = (self.fixture.account, stem(number), fate(number));
        let (id, model_id) = (self.scale.referral_id(number), model.referral.id.to_string());
        let rename = |text: &str| text.replace(&model.stem, &name);
        for (kind, key, value) in &model.objects {
            let value = RawValue::from_string(rename(value).replace(&model_id, &id.to_string())).unwrap();
            StoredProcessorObject::put(&mut self.batch, account, *kind, &rename(key), &value);
        }
        let customer = model.referral.customer.as_deref().map(rename);
        for invoice in &model.invoices {
            let customer = customer.as_deref().unwrap();
            processor_state::link_invoice_to_customer(&mut self.batch, account, customer, &rename(invoice));
        }
        let at = self.scale.created_at(number);
        let mut activity = model.referral.dealings.clone();
        activity.first_earning = activity.first_earning.as_deref().map(rename);
        let is_rejected = fate == Fate::Rejected;
        let status = ReferralStatus::Lead;
        let copy = Referral {
            id,
            partner: self.scale.partner_id(self.scale.partner_of(number)),
            status: if is_rejected { ReferralStatus::Rejected } else { model.referral.status },
            source: source(number),
            email: Some(format!("person{number}@buyers.example").parse().unwrap()),
            customer,
            rejection: is_rejected.then_some(ReferralRejection { reason: RejectReason::Owner, was: status }),
            review: review(fate, at),
            dealings: activity,
            rev: 1,
            created_at: at,
            updated_at: at,
            ..model.referral.clone()
        };
        referral::create(&mut self.batch, &copy, None);
        if has_paid(fate) && fate != Fate::Refunded {
            *self.written.paying.entry(self.scale.partner_of(number)).or_default() += 1;
        }
        for (nth, (invoice, line)) in (0..).zip(&model.lines) {
            self.copy_line(line, &copy, number, *invoice, nth, &rename);
        }
    }

    fn copy_line(
        &mut self,
        line: &Commission,
        referral: &Referral,
        number: u64,
        invoice: u64,
        nth: u64,
        rename: &dyn Fn(&str) -> String,
    ) {
        let (at, earner) = (self.scale.paid_at(number, invoice), self.scale.earner(number, line.level()));
        let id = CommissionId::new(at, spread(number * LINES_MAX + nth).into());
        let mut copy = Commission {
            id,
            partner: self.scale.partner_id(earner),
            referral: referral.id,
            created_at: at,
            updated_at: at,
            rev: 1,
            ..line.clone()
        };
        if let CommissionOrigin::Sale(sale) = &mut copy.origin {
            sale.invoice = rename(&sale.invoice);
            sale.charge = sale.charge.as_deref().map(rename);
        }
        if let CommissionState::Reversed { reason, .. } = line.status {
            copy.status = CommissionState::Reversed { reversed_at: at, reason, earned_at: None };
        } else if let Some(status) = self.status(at, earner, &copy, invoice) {
            (copy.status, copy.earns_at) = (status, at + days(30));
        }
        commission::create(&mut self.batch, &copy);
        self.written.lines += 1;
    }

    /// Returns the later status of a line; `None` while its hold lasts.
    fn status(&mut self, at: Timestamp, earner: u64, line: &Commission, invoice: u64) -> Option<CommissionState> {
        let (run, earned_at) = (self.scale.run_of(at), at + days(30));
        if run > PAID_RUNS {
            let frozen = FreezeReasons::default();
            return invoice.is_multiple_of(2).then_some(CommissionState::Earned { earned_at, frozen });
        }
        let payout_key = (run, earner, line.currency);
        let id = payout_id(self.scale, payout_key);
        payout::put_item(&mut self.batch, line.account, id, line.id, line.amount);
        let sum = self.written.payouts.entry(payout_key).or_default();
        sum.amount += line.amount;
        sum.lines += 1;
        let paid_at = self.scale.run_at(run) + days(1);
        Some(if run == PAID_RUNS {
            CommissionState::InPayout { earned_at, payout: id }
        } else {
            CommissionState::Paid { earned_at, payout: id, paid_at }
        })
    }
}

/// Returns the payout that contains lines of a partner.
pub(crate) fn payout_id(scale: &Scale, (run, partner, currency): PayoutKey) -> model::id::PayoutId {
    scale.payout_id(run, partner, u64::from(currency.as_str() == "eur"))
}

/// Writes all referrals.
pub(crate) async fn write(fixture: &Fixture, scale: &Scale) -> Written {
    let mut models = HashMap::new();
    // Any twenty consecutive referrals contain each fate; partner 9 has a recruiter, partner 4 has none.
    for fate in (0..20).map(fate).collect::<HashSet<_>>() {
        for partner in [4, 9] {
            let key = (fate, recruiter(partner).is_some());
            models.insert(key, model(fixture, scale, fate, partner).await);
        }
    }
    let mut written = Written::default();
    let mut commit: Option<tokio::task::JoinHandle<_>> = None;
    for chunk in (0..scale.referrals).collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut copier = Copier { fixture, scale, batch: Batch::intake(), written: &mut written };
        for number in chunk {
            let is_recruited = recruiter(scale.partner_of(*number)).is_some();
            copier.copy(&models[&(fate(*number), is_recruited)], *number);
        }
        let (batch, store) = (copier.batch, fixture.store().clone());
        // A batch is committed while the next is built.
        if let Some(before) = commit.replace(tokio::spawn(async move { store.commit(batch).await })) {
            before.await.unwrap().unwrap();
        }
    }
    commit.unwrap().await.unwrap().unwrap();
    let mut batch = Batch::intake();
    for (partner, paying) in &written.paying {
        let (account, partner) = (fixture.account, scale.partner_id(*partner));
        let before = customer_counts::get(fixture.store(), account, partner).await.unwrap();
        customer_counts::put(&mut batch, account, partner, &before, before.paying + paying);
    }
    fixture.store().commit(batch).await.unwrap();
    written.lines += models.values().map(|model| u64::try_from(model.lines.len()).unwrap()).sum::<u64>();
    written
}
