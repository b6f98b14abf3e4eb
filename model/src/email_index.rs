//! Email search index: the terms that emails are indexed by, and the filter of an email list.
//!
//! ```text
//! email ─► terms (recipients, author, tags, subject words, …)   written with its first event
//! email ─► status term                                          updated by its events
//! filter ─► term lists to intersect ─► candidates ─► [`EmailFilter::matches`] ─► result
//! ```
//!
//! Values that most emails have (delivered, transactional) are not indexed: filters for them check each candidate. An
//! indexed status may be outdated when it is read, so [`EmailFilter::matches`] decides.

use jiff::Timestamp;
use message::address::{Address, DomainName, fold_spelling};

use crate::credential::CredentialId;
use crate::email::{Category, Email, EmailRollup, EmailStatus};
use crate::recipient::Recipient;

/// Maximum number of distinct subject words that are indexed: the first ones.
pub const WORDS_MAX: usize = 16;
/// Longest indexed word in bytes; longer words are truncated.
pub const WORD_BYTES_MAX: usize = 64;
/// Longest term in bytes. Longer terms are truncated because storage keys are limited.
const TERM_BYTES_MAX: usize = 400;

/// The field of a term. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IndexField {
    /// A recipient's address.
    Recipient = 1,
    /// The author's address.
    Author = 2,
    /// The sending domain's name.
    Domain = 3,
    Tag = 4,
    Word = 5,
    /// The template's id or alias.
    Template = 6,
    Category = 7,
    Status = 8,
    /// The credential that submitted the email.
    Credential = 9,
}

/// A field and a value by which emails are indexed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexTerm {
    pub field: IndexField,
    pub text: String,
}

impl IndexTerm {
    fn new(field: IndexField, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(TERM_BYTES_MAX));
        Self { field, text }
    }

    /// The term of a status; `None` for `Delivered`, which is not indexed.
    pub fn for_status(status: EmailStatus) -> Option<Self> {
        let word = match status {
            EmailStatus::Delivered => return None,
            // One term for both, because no event marks the change from scheduled to queued.
            EmailStatus::Scheduled | EmailStatus::Queued => "waiting",
            EmailStatus::Sent => "sent",
            EmailStatus::Bounced => "bounced",
            EmailStatus::Failed => "failed",
            EmailStatus::Cancelled => "cancelled",
        };
        Some(Self::new(IndexField::Status, word))
    }

    fn for_category(category: Category) -> Option<Self> {
        (category != Category::Transactional).then(|| Self::new(IndexField::Category, category.word()))
    }
}

/// The form in which addresses are compared.
fn address_key(address: &Address) -> String {
    fold_spelling(&address.to_string())
}

/// The terms of an address: [`address_key`], and the one that version 0.1.0 wrote, if it differs. That version did not
/// compose characters (NFC).
fn address_terms(field: IndexField, address: &Address) -> impl Iterator<Item = IndexTerm> {
    let key = address_key(address);
    let former = (!key.is_ascii()).then(|| address.to_string().to_lowercase()).filter(|former| *former != key);
    [Some(key), former].into_iter().flatten().map(move |text| IndexTerm::new(field, text))
}

/// The words of a subject or of a search text: runs of letters and digits in lower case, without duplicates.
pub fn subject_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut word = run.to_lowercase();
        word.truncate(word.floor_char_boundary(WORD_BYTES_MAX));
        if !words.contains(&word) {
            words.push(word);
        }
        if words.len() == WORDS_MAX {
            break;
        }
    }
    words
}

/// The terms of an email that do not change.
pub fn index_terms(email: &Email, recipients: &[Recipient]) -> Vec<IndexTerm> {
    let mut terms: Vec<IndexTerm> =
        recipients.iter().flat_map(|r| address_terms(IndexField::Recipient, &r.address)).collect();
    terms.extend(address_terms(IndexField::Author, &email.from.address));
    terms.extend(email.domain.as_ref().map(|name| IndexTerm::new(IndexField::Domain, name.as_str())));
    terms.extend(email.tags.iter().map(|tag| IndexTerm::new(IndexField::Tag, format!("{}:{}", tag.name, tag.value))));
    terms.extend(subject_words(&email.header.subject).into_iter().map(|word| IndexTerm::new(IndexField::Word, word)));
    if let Some(template) = &email.template {
        terms.push(IndexTerm::new(IndexField::Template, template.id.to_string()));
        terms.extend(template.alias.as_ref().map(|alias| IndexTerm::new(IndexField::Template, alias.as_str())));
    }
    terms.extend(IndexTerm::for_category(email.category));
    terms.extend(email.sent_by.map(|id| IndexTerm::new(IndexField::Credential, id.to_string())));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// The term of an email's current status.
pub fn status_term(recipients: &[Recipient]) -> Option<IndexTerm> {
    IndexTerm::for_status(EmailRollup::from_recipients(recipients).status)
}

/// The filter of an email list. All fields must match; of several values in one field one must match, except where
/// noted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmailFilter {
    pub statuses: Vec<EmailStatus>,
    /// Addresses of recipients.
    pub to: Vec<Address>,
    /// Addresses of authors.
    pub from: Vec<Address>,
    /// Tags as `name:value`; all of them must match.
    pub tags: Vec<String>,
    pub categories: Vec<Category>,
    /// Ids or aliases of templates.
    pub templates: Vec<String>,
    /// Sending domains.
    pub domains: Vec<DomainName>,
    /// Words of the subject as returned by [`subject_words`]; all of them must match.
    pub words: Vec<String>,
    /// The credential that submitted the email.
    pub sent_by: Option<CredentialId>,
    /// Accepted after this time, in milliseconds.
    pub after: Option<Timestamp>,
    /// Accepted before this time, in milliseconds.
    pub before: Option<Timestamp>,
}

impl EmailFilter {
    /// True if the filter matches every email.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The term lists to intersect: a matching email has at least one term of each list. Fields that are not indexed
    /// have no list.
    pub fn required_terms(&self) -> Vec<Vec<IndexTerm>> {
        let each = |about, texts: &[String]| -> Vec<IndexTerm> {
            texts.iter().map(|text| IndexTerm::new(about, text.as_str())).collect()
        };
        let addresses = |about, wanted_addresses: &[Address]| -> Vec<IndexTerm> {
            wanted_addresses.iter().flat_map(|address| address_terms(about, address)).collect()
        };
        // If one value is not indexed, the field needs a check of each candidate.
        let statuses: Option<Vec<IndexTerm>> = self.statuses.iter().map(|s| IndexTerm::for_status(*s)).collect();
        let categories: Option<Vec<IndexTerm>> = self.categories.iter().map(|c| IndexTerm::for_category(*c)).collect();
        let credential = self.sent_by.map(|id| IndexTerm::new(IndexField::Credential, id.to_string()));
        let mut lists = vec![
            credential.into_iter().collect(),
            addresses(IndexField::Recipient, &self.to),
            addresses(IndexField::Author, &self.from),
            each(IndexField::Template, &self.templates),
            self.domains.iter().map(|name| IndexTerm::new(IndexField::Domain, name.as_str())).collect(),
            statuses.unwrap_or_default(),
            categories.unwrap_or_default(),
        ];
        lists.extend(each(IndexField::Tag, &self.tags).into_iter().map(|term| vec![term]));
        lists.extend(each(IndexField::Word, &self.words).into_iter().map(|term| vec![term]));
        lists.retain(|list| !list.is_empty());
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        lists
    }

    /// True if an email matches. The caller compares `after` and `before` with the time in the email's id.
    pub fn matches(&self, email: &Email, recipients: &[Recipient]) -> bool {
        let has_address = |list: &[Address], address: &Address| {
            let address = address_key(address);
            list.iter().any(|other| address_key(other) == address)
        };
        let tagged = |wanted: &String| {
            email.tags.iter().any(|tag| {
                wanted.strip_prefix(tag.name.as_str()).and_then(|rest| rest.strip_prefix(':')) == Some(&tag.value)
            })
        };
        let made_from = |wanted: &String| {
            email
                .template
                .as_ref()
                .is_some_and(|template| template.alias.as_ref() == Some(wanted) || template.id.to_string() == *wanted)
        };
        self.sent_by.is_none_or(|id| email.sent_by == Some(id))
            && (self.statuses.is_empty() || self.statuses.contains(&EmailRollup::from_recipients(recipients).status))
            && (self.to.is_empty() || recipients.iter().any(|r| has_address(&self.to, &r.address)))
            && (self.from.is_empty() || has_address(&self.from, &email.from.address))
            && self.tags.iter().all(tagged)
            && (self.categories.is_empty() || self.categories.contains(&email.category))
            && (self.templates.is_empty() || self.templates.iter().any(made_from))
            && (self.domains.is_empty() || email.domain.as_ref().is_some_and(|d| self.domains.contains(d)))
            && (self.words.is_empty() || {
                let subject = subject_words(&email.header.subject);
                self.words.iter().all(|word| subject.contains(word))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_and_distinct() {
        assert_eq!(subject_words("Your ORDER #12-34: your order, ÄRGER"), ["your", "order", "12", "34", "ärger"]);
        assert_eq!(subject_words("  -- !"), Vec::<String>::new());
        assert_eq!(subject_words(&(0..100).map(|n| format!("w{n} ")).collect::<String>()).len(), WORDS_MAX);
        assert!(subject_words(&"ä".repeat(100)).iter().all(|word| word.len() <= WORD_BYTES_MAX));
    }

    #[test]
    fn addresses_are_found_by_every_spelling() {
        let terms = |text: &str| {
            let address = text.parse().unwrap();
            address_terms(IndexField::Author, &address).map(|term| term.text).collect::<Vec<_>>()
        };
        assert_eq!(terms("\u{c9}@example.net"), ["\u{e9}@example.net"]);
        assert_eq!(terms("E\u{301}@example.net"), ["\u{e9}@example.net", "e\u{301}@example.net"]);
    }

    #[test]
    fn common_values_are_not_indexed() {
        let filter = EmailFilter {
            statuses: vec![EmailStatus::Bounced, EmailStatus::Delivered],
            categories: vec![Category::Product],
            words: vec!["a".to_owned(), "b".to_owned()],
            ..EmailFilter::default()
        };
        let lists = filter.required_terms();
        assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
        let waiting =
            EmailFilter { statuses: vec![EmailStatus::Scheduled, EmailStatus::Queued], ..EmailFilter::default() };
        assert_eq!(waiting.required_terms(), [vec![IndexTerm::for_status(EmailStatus::Queued).unwrap()]]);
        assert!(EmailFilter::default().is_empty() && EmailFilter::default().required_terms().is_empty());
    }
}
