//! Property test: a filtered list equals the list of all emails, filtered in memory, for any emails and filter, page by
//! page.
#![allow(clippy::unwrap_used, reason = "a test panics on errors")]

use jiff::{SignedDuration, Timestamp};
use message::header::HeaderSummary;
use model::credential::CredentialId;
use model::email::{Category, Email, EmailStatus, Ingress, SourceTemplate, Tag};
use model::email_index::{EmailFilter, subject_words};
use model::event::{Event, EventKind};
use model::id::{AccountId, ApiKeyId, EmailId, EventId, SmtpCredentialId, TemplateId};
use model::recipient::{Recipient, RecipientKind, RecipientState};
use proptest::prelude::*;
use store::email::{self, StoredEmail};
use store::email_index::{IndexChange, search};
use store::engine::{Batch, Body, Store};

/// Far enough apart that emails fall into several blocks.
fn at(tenths: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + tenths * 100).unwrap()
}

fn account(number: u128) -> AccountId {
    AccountId::new(at(0), number)
}

const STATES: [RecipientState; 8] = [
    RecipientState::Scheduled,
    RecipientState::Held,
    RecipientState::Queued,
    RecipientState::Delivered,
    RecipientState::Bounced,
    RecipientState::Failed,
    RecipientState::Suppressed,
    RecipientState::Cancelled,
];

/// Random properties of an email, with few different values, so that filters overlap.
#[derive(Debug, Clone)]
struct Choice {
    to: Vec<u8>,
    from: u8,
    tag: u8,
    subject: u8,
    template: u8,
    category: u8,
    first: usize,
    then: usize,
}

fn choice() -> impl Strategy<Value = Choice> {
    let to = proptest::collection::vec(0u8..4, 1..4);
    (to, 0u8..3, 0u8..4, 0u8..8, 0u8..4, 0u8..3, 0usize..8, 0usize..8).prop_map(
        |(to, from, tag, subject, template, category, first, then)| Choice {
            to,
            from,
            tag,
            subject,
            template,
            category,
            first,
            then,
        },
    )
}

/// `None` for emails sent by versions that did not record the credential.
fn credential(number: u8) -> Option<CredentialId> {
    match number {
        0 => None,
        1 => Some(CredentialId::ApiKey(ApiKeyId::new(at(0), 1))),
        _ => Some(CredentialId::Smtp(SmtpCredentialId::new(at(0), 1))),
    }
}

fn category(number: u8) -> Category {
    [Category::Transactional, Category::Product, Category::Newsletter][usize::from(number) % 3]
}

fn subject(bits: u8) -> String {
    ["Your", "ORDER", "ships"].iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, w)| *w).fold(
        String::new(),
        |mut text, word| {
            text.push_str(word);
            text.push_str(", ");
            text
        },
    )
}

impl Choice {
    fn email(&self, number: usize) -> Email {
        // Two emails per millisecond.
        let born = at(number as i64 / 2);
        let template = TemplateId::new(at(0), u128::from(self.template));
        let from = format!("From{}@example.com", self.from).parse().unwrap();
        Email {
            domain: (self.from != 2).then(|| format!("d{}.example.com", self.from).parse().unwrap()),
            header: HeaderSummary { subject: subject(self.subject), ..HeaderSummary::default() },
            tags: vec![Tag { name: "n".into(), value: format!("v,{}", self.tag) }],
            category: category(self.category),
            size_bytes: 1,
            sent_by: credential(self.from),
            template: (self.template > 0).then(|| SourceTemplate {
                id: template,
                alias: (self.template > 1).then(|| format!("t{}", self.template)),
                version: 1,
            }),
            ..Email::new(EmailId::new(born, number as u128), account(1), Ingress::Api, from, born)
        }
    }

    fn recipients(&self, state: usize, ms: i64) -> Vec<Recipient> {
        let to_recipient = |(index, to): (usize, &u8)| Recipient {
            index: index as u16,
            address: format!("to{to}@example.net").parse().unwrap(),
            kind: RecipientKind::To,
            state: STATES[state],
            attempts: 0,
            last_response: None,
            error: None,
            mx_host: None,
            last_event: (EventKind::Sent, at(ms)),
            delivered_at: None,
            bounced_at: None,
            complained_at: None,
            next_attempt_at: None,
            notify: model::recipient::DsnOptions::default(),
        };
        self.to.iter().enumerate().map(to_recipient).collect()
    }
}

fn change(email: &Email, kind: EventKind) -> IndexChange {
    let mut change = IndexChange::default();
    change.add_event(&Event {
        id: EventId::new(at(0), 0),
        account: email.account,
        subject: email.id.into(),
        kind,
        recipient: None,
        created_at: at(0),
        detail: serde_json::json!({}),
    });
    change
}

async fn record_events(store: &Store, emails: &[Email], kind: EventKind) {
    let ids: Vec<_> = emails.iter().map(|email| (email.account, email.id)).collect();
    let found = email::get_each(store, &ids, &|_| None).await.unwrap();
    let found: Vec<StoredEmail> = found.into_iter().flatten().collect();
    let changed: Vec<_> = found.iter().zip(emails).map(|(found, email)| (found, change(email, kind))).collect();
    let mut batch = Batch::progress();
    store::email_index::update(store, &mut batch, &changed).await.unwrap();
    store.commit(batch).await.unwrap();
}

/// Stores emails and dispatches their events, several per commit and out of order, then changes some and dispatches
/// again. Returns the final state.
async fn fill(store: &Store, choices: &[Choice], together: usize) -> Vec<(Email, Vec<Recipient>)> {
    let mut all = Vec::new();
    for (number, choice) in choices.iter().enumerate() {
        let (email, recipients) = (choice.email(number), choice.recipients(choice.first, 0));
        let mut batch = Batch::intake();
        email::create(&mut batch, &email, &recipients, Body::default());
        store.commit(batch).await.unwrap();
        all.push((email, choice.recipients(choice.then, 1)));
    }
    // Every n-th email from each of the first ones, so that blocks overlap.
    let steps = choices.len().div_ceil(together).max(1);
    for first in 0..steps {
        let some: Vec<Email> = all.iter().skip(first).step_by(steps).map(|(email, _)| email.clone()).collect();
        record_events(store, &some, EventKind::Sent).await;
    }
    for (choice, (email, recipients)) in choices.iter().zip(&all) {
        let mut batch = Batch::intake();
        recipients.iter().for_each(|r| email::put_recipient(&mut batch, email.account, email.id, r));
        store.commit(batch).await.unwrap();
        // No event leads from one waiting state to the other.
        if !(choice.first < 2 && choice.then < 2) {
            record_events(store, std::slice::from_ref(email), EventKind::Delivered).await;
        }
    }
    all
}

async fn forget(store: &Store, emails: &[(Email, Vec<Recipient>)]) {
    let ids: Vec<EmailId> = emails.iter().map(|(email, _)| email.id).collect();
    let mut batch = Batch::progress();
    email::purge(store, &mut batch, account(1), &ids).await.unwrap();
    store.commit(batch).await.unwrap();
}

fn filter() -> impl Strategy<Value = EmailFilter> {
    let few = |n: u8| proptest::collection::vec(0..n, 0..3);
    let status = proptest::sample::select(vec![
        EmailStatus::Scheduled,
        EmailStatus::Queued,
        EmailStatus::Sent,
        EmailStatus::Delivered,
        EmailStatus::Bounced,
        EmailStatus::Failed,
        EmailStatus::Cancelled,
    ]);
    let statuses = proptest::collection::vec(status, 0..3);
    let times = (proptest::option::of(0i64..20), proptest::option::of(0i64..20));
    let rest = (0u8..3, 0u8..8, 0u8..9, times);
    (statuses, few(5), few(4), few(4), few(5), few(3), rest).prop_map(
        |(statuses, to, from, categories, templates, domains, (tag, words_of, by, (after, before)))| EmailFilter {
            statuses,
            to: to.iter().map(|n| format!("TO{n}@example.net").parse().unwrap()).collect(),
            from: from.iter().map(|n| format!("from{n}@example.com").parse().unwrap()).collect(),
            tags: (tag > 0).then(|| format!("n:v,{tag}")).into_iter().collect(),
            categories: categories.iter().map(|n| category(*n)).collect(),
            templates: templates
                .iter()
                .map(|n| match n {
                    0..3 => TemplateId::new(at(0), u128::from(*n)).to_string(),
                    n => format!("t{}", n - 1),
                })
                .collect(),
            domains: domains.iter().map(|n| format!("d{n}.example.com").parse().unwrap()).collect(),
            words: subject_words(&subject(words_of)),
            sent_by: credential(by % 5 % 3),
            after: after.map(at),
            before: before.map(|ms| at(ms) + SignedDuration::from_micros(ms % 2)),
        },
    )
}

fn naive(all: &[(Email, Vec<Recipient>)], filter: &EmailFilter) -> Vec<EmailId> {
    let mut ids: Vec<EmailId> = all
        .iter()
        .filter(|(email, recipients)| {
            filter.matches(email, recipients)
                && filter.after.is_none_or(|after| email.created_at > after)
                && filter.before.is_none_or(|before| email.created_at < before)
        })
        .map(|(email, _)| email.id)
        .collect();
    ids.sort_unstable();
    ids.reverse();
    ids
}

async fn paged(store: &Store, filter: &EmailFilter, limit: usize) -> Vec<EmailId> {
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = search::search(store, account(1), filter, before, limit).await.unwrap();
        assert!(page.emails.len() <= limit);
        listed.extend(page.emails.iter().map(|found| found.email.id));
        match page.next {
            None => return listed,
            Some(next) => {
                assert!(before.is_none_or(|before| next < before), "the cursor advances");
                before = Some(next);
            }
        }
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_filtered_list_equals_the_filtered_list_of_all(
        choices in proptest::collection::vec(choice(), 0..40),
        filters in proptest::collection::vec(filter(), 1..8),
        limit in 1usize..12,
        together in 1usize..12,
    ) {
        run(async {
            let store = Store::memory();
            let all = fill(&store, &choices, together).await;
            for filter in &filters {
                assert_eq!(paged(&store, filter, limit).await, naive(&all, filter), "{filter:?}");
            }
            let (old, young) = all.split_at(all.len() / 3);
            forget(&store, old).await;
            for filter in &filters {
                assert_eq!(paged(&store, filter, limit).await, naive(young, filter), "{filter:?}");
            }
            forget(&store, young).await;
            // No index row remains.
            let rest = store.scan(vec![0].into()..vec![255].into(), store::engine::ScanOrder::Ascending, 10).await;
            assert_eq!(rest.unwrap(), []);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Long lists that are read in ranges, skipped, set aside and resumed.
    #[test]
    fn long_filtered_lists_equal_the_filtered_list_of_all(
        choices in proptest::collection::vec(choice(), 300..2_000),
        rare in 1usize..200,
        filters in proptest::collection::vec(filter(), 4..12),
        limit in 20usize..100,
        together in 1usize..100,
    ) {
        run(async {
            let store = Store::memory();
            let rarely = |(number, choice): (usize, Choice)| Choice {
                tag: if number % rare == 0 { choice.tag } else { 0 },
                // In groups, so that two emails of the same sender are far apart.
                from: (number / 300 % 3) as u8,
                ..choice
            };
            let choices: Vec<Choice> = choices.into_iter().enumerate().map(rarely).collect();
            let all = fill(&store, &choices, together).await;
            for filter in &filters {
                assert_eq!(paged(&store, filter, limit).await, naive(&all, filter), "{filter:?}");
            }
        });
    }
}

/// Two terms that never occur together, thousands of times: each page is fast, and the end is reached.
#[test]
fn a_filter_without_matches_ends_after_several_pages() {
    run(async {
        let store = Store::memory();
        let base = Choice { to: vec![0], from: 0, tag: 0, subject: 0, template: 0, category: 0, first: 3, then: 3 };
        let choices: Vec<Choice> =
            (0..4_000u16).map(|n| Choice { tag: (n % 2) as u8, from: (n % 2) as u8, ..base.clone() }).collect();
        fill(&store, &choices, 300).await;
        let filter = EmailFilter {
            tags: vec!["n:v,0".to_owned()],
            from: vec!["from1@example.com".parse().unwrap()],
            ..EmailFilter::default()
        };
        let first = search::search(&store, account(1), &filter, None, 25).await.unwrap();
        assert_eq!(first.emails, []);
        assert!(first.next.is_some());
        assert_eq!(paged(&store, &filter, 25).await, []);
        // A filter without a term scans all emails.
        let sent =
            EmailFilter { statuses: vec![EmailStatus::Delivered], words: subject_words("x"), ..EmailFilter::default() };
        assert_eq!(paged(&store, &sent, 25).await, []);
        let delivered = EmailFilter { statuses: vec![EmailStatus::Delivered], ..EmailFilter::default() };
        assert_eq!(paged(&store, &delivered, 100).await.len(), 4_000);
        let elsewhere = search::search(&store, account(2), &delivered, None, 25).await.unwrap();
        assert_eq!((elsewhere.emails.len(), elsewhere.next), (0, None));
    });
}
