//! The catalog: the words by which an email is found again, and the question that a filtered list asks.
//!
//! ```text
//! email ─► terms (whom to, whose, tags, words of the subject, …)   written when its first event is told
//! email ─► where it stands                                         follows its events
//! filter ─► lists of terms, to be intersected ─► candidates ─► `holds` ─► shown
//! ```
//!
//! What most emails have in common (delivered, transactional) has no term: such a filter is answered by
//! looking. And what a term says may be over by the time it is read, so [`Filter::holds`] decides.

use jiff::Timestamp;

use crate::address::{Address, DomainName};
use crate::credential::CredentialId;
use crate::email::{Category, Email, EmailRollup, EmailStatus};
use crate::recipient::Recipient;
use crate::suppression::category_word;

/// Distinct words of a subject that are found: the first.
pub const WORDS_MAX: usize = 16;
/// A word's bytes that count.
pub const WORD_BYTES_MAX: usize = 64;
/// A term's bytes that count: a storage key has its limits, and terms of this length are told apart.
const TERM_BYTES_MAX: usize = 400;

/// What a term is about. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IndexField {
    /// The address of a recipient.
    Recipient = 1,
    /// The address of the author.
    Author = 2,
    /// The name of the sending domain.
    Domain = 3,
    /// A tag, `name:value`.
    Tag = 4,
    /// A word of the subject.
    Word = 5,
    /// The id or the alias of the template.
    Template = 6,
    /// What it is for.
    Category = 7,
    /// Where it stands.
    Status = 8,
    /// The credential that it was handed in with.
    Credential = 9,
}

/// A word by which emails are found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexTerm {
    /// What it is about.
    pub field: IndexField,
    /// The word.
    pub text: String,
}

impl IndexTerm {
    fn new(field: IndexField, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(TERM_BYTES_MAX));
        Self { field, text }
    }

    /// Of a recipient's address.
    #[must_use]
    pub fn for_recipient(address: &Address) -> Self {
        Self::new(IndexField::Recipient, address_key(address))
    }

    /// Of a status; none for what most emails come to.
    #[must_use]
    pub fn for_status(status: EmailStatus) -> Option<Self> {
        let word = match status {
            EmailStatus::Delivered => return None,
            // From one to the other no event leads.
            EmailStatus::Scheduled | EmailStatus::Queued => "waiting",
            EmailStatus::Sent => "sent",
            EmailStatus::Bounced => "bounced",
            EmailStatus::Failed => "failed",
            EmailStatus::Cancelled => "cancelled",
        };
        Some(Self::new(IndexField::Status, word))
    }

    fn for_category(category: Category) -> Option<Self> {
        (category != Category::Transactional).then(|| Self::new(IndexField::Category, category_word(category)))
    }
}

/// An address as it is compared here: the case of no letter counts.
fn address_key(address: &Address) -> String {
    address.to_string().to_lowercase()
}

/// The words of a subject, or of a question about it: runs of letters and digits in lower case, each once.
#[must_use]
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

/// The terms of an email that stay as they are.
#[must_use]
pub fn index_terms(email: &Email, recipients: &[Recipient]) -> Vec<IndexTerm> {
    let mut terms: Vec<IndexTerm> = recipients.iter().map(|r| IndexTerm::for_recipient(&r.address)).collect();
    terms.push(IndexTerm::new(IndexField::Author, address_key(&email.from.address)));
    terms.extend(email.domain.as_ref().map(|name| IndexTerm::new(IndexField::Domain, name.as_str())));
    terms.extend(email.tags.iter().map(|tag| IndexTerm::new(IndexField::Tag, format!("{}:{}", tag.name, tag.value))));
    terms.extend(subject_words(&email.facts.subject).into_iter().map(|word| IndexTerm::new(IndexField::Word, word)));
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

/// The term of where an email stands.
#[must_use]
pub fn status_term(recipients: &[Recipient]) -> Option<IndexTerm> {
    IndexTerm::for_status(EmailRollup::from_recipients(recipients).status)
}

/// What a list of emails is asked for: what is said must hold, and of several values of one field, one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmailFilter {
    /// Where it stands.
    pub statuses: Vec<EmailStatus>,
    /// An address among its recipients.
    pub to: Vec<Address>,
    /// Its author.
    pub from: Vec<Address>,
    /// Its tags, `name:value`: all of them.
    pub tags: Vec<String>,
    /// What it is for.
    pub categories: Vec<Category>,
    /// Its template, by id or alias.
    pub templates: Vec<String>,
    /// Its sending domain.
    pub domains: Vec<DomainName>,
    /// Words of its subject, as [`words`] gives them: all of them.
    pub words: Vec<String>,
    /// The credential that it was handed in with.
    pub sent_by: Option<CredentialId>,
    /// It was accepted after this time (to the millisecond).
    pub after: Option<Timestamp>,
    /// It was accepted before this time (to the millisecond).
    pub before: Option<Timestamp>,
}

impl EmailFilter {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The lists of terms that an email must be in: in one term of each. A field that terms do not answer
    /// has no list.
    #[must_use]
    pub fn required_terms(&self) -> Vec<Vec<IndexTerm>> {
        let each = |about, texts: &[String]| -> Vec<IndexTerm> {
            texts.iter().map(|text| IndexTerm::new(about, text.as_str())).collect()
        };
        let addresses = |about, given: &[Address]| -> Vec<IndexTerm> {
            given.iter().map(|address| IndexTerm::new(about, address_key(address))).collect()
        };
        // One value without a term makes the field a matter of looking.
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

    /// Whether an email is one of those asked for; when it was accepted is a matter of its id.
    #[must_use]
    pub fn matches(&self, email: &Email, recipients: &[Recipient]) -> bool {
        let is = |given: &[Address], address: &Address| {
            let address = address_key(address);
            given.iter().any(|one| address_key(one) == address)
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
            && (self.to.is_empty() || recipients.iter().any(|r| is(&self.to, &r.address)))
            && (self.from.is_empty() || is(&self.from, &email.from.address))
            && self.tags.iter().all(tagged)
            && (self.categories.is_empty() || self.categories.contains(&email.category))
            && (self.templates.is_empty() || self.templates.iter().any(made_from))
            && (self.domains.is_empty() || email.domain.as_ref().is_some_and(|d| self.domains.contains(d)))
            && (self.words.is_empty() || {
                let subject = subject_words(&email.facts.subject);
                self.words.iter().all(|word| subject.contains(word))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_in_lower_case_each_once() {
        assert_eq!(subject_words("Your ORDER #12-34: your order, ÄRGER"), ["your", "order", "12", "34", "ärger"]);
        assert_eq!(subject_words("  -- !"), Vec::<String>::new());
        assert_eq!(subject_words(&(0..100).map(|n| format!("w{n} ")).collect::<String>()).len(), WORDS_MAX);
        assert!(subject_words(&"ä".repeat(100)).iter().all(|word| word.len() <= WORD_BYTES_MAX));
    }

    #[test]
    fn what_most_have_in_common_is_no_list() {
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
