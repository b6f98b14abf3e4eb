//! A template: the text of an email with places for variables, kept under a name.
//!
//! ```text
//! draft ──publish──► version 1, 2, 3 … (never changed) ──resolve──► Compiled ──render──► subject, html, text
//! ```
//!
//! What is edited is the draft; what is sent is the latest published version, or the one that is asked
//! for. The markup is a subset of Handlebars ([`markup`] says which and holds its bounds, [`usage`] finds
//! the variables that it uses, [`blocks`] are its four blocks, [`render`] fills it in). Nothing in a
//! template reads a file, runs a script or includes another; the work of filling it in is counted and
//! bounded.

mod blocks;
pub mod markup;
pub mod render;
pub mod usage;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::address::Mailbox;
use crate::email::Category;
use crate::id::{AccountId, TemplateId};
use crate::number::is_number;

pub use self::markup::MarkupError;
pub use self::render::{CompiledTemplate, ParsedTemplate, RenderError, RenderedTemplate};

/// The token of managed unsubscribe (email-api.md "Managed unsubscribe"): a template lets it through, the
/// hall puts the link in its place.
pub const UNSUBSCRIBE_URL: &str = "unsubscribe_url";
/// An alias.
pub const ALIAS_BYTES_MAX: usize = 100;
/// A template's name.
pub const NAME_BYTES_MAX: usize = 200;
/// The markup of the subject: what the subject of a send request may have (RFC 5322 2.1.1, in characters of
/// four bytes).
pub const SUBJECT_BYTES_MAX: usize = 4 * 998;
/// The markup of the preheader: mail programs show some 100 characters.
pub const PREHEADER_BYTES_MAX: usize = 1_000;
/// The markup of `html`, and of `text`: five times what Gmail shows of a message.
pub const MARKUP_BYTES_MAX: usize = 512 << 10;
/// Variables that a template declares.
pub const VARIABLES_MAX: usize = 100;
/// The name of a declared variable.
pub const KEY_BYTES_MAX: usize = 64;
/// All fallback values of a template together, as JSON.
pub const FALLBACKS_BYTES_MAX: usize = 16 << 10;
/// A note to a version.
pub const NOTE_BYTES_MAX: usize = 500;
/// Versions of a template that are kept; the oldest is forgotten for the next.
pub const VERSIONS_KEPT: u32 = 200;

/// Names that are no variables' names, since the markup means something else by them.
const RESERVED: &[&str] = &["if", "unless", "each", "with", "this", "as", "true", "false", "null"];

/// Where a template stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TemplateStatus {
    /// Never published.
    Draft,
    /// May be sent.
    Published,
    /// Kept, but not sent any more.
    Archived,
}

impl TemplateStatus {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["draft", "published", "archived"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "draft" => Some(Self::Draft),
            "published" => Some(Self::Published),
            "archived" => Some(Self::Archived),
            _ => None,
        }
    }
}

/// What a variable may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableType {
    /// A text, or what can be written as one: a number, a truth value.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// Names and values.
    Object,
    /// A list.
    List,
}

impl VariableType {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["string", "number", "boolean", "object", "list"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "string" => Some(Self::String),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            "object" => Some(Self::Object),
            "list" => Some(Self::List),
            _ => None,
        }
    }

    /// How it is called in a sentence.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Object => "an object",
            Self::List => "a list",
        }
    }

    /// Whether a value is of this type.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string() || is_number(value) || value.is_boolean(),
            Self::Number => is_number(value),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object() && !is_number(value),
            Self::List => value.is_array(),
        }
    }
}

/// What a template says of one of its variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateVariable {
    /// Its name.
    pub key: String,
    /// What it holds.
    pub r#type: VariableType,
    /// Without it (and without a fallback) nothing is sent. What is not required and not given is blank.
    pub required: bool,
    /// What stands in its place when it is not given.
    pub fallback_value: Option<Value>,
}

/// Checks the name of a variable: a letter or `_`, then letters, digits, `_` and `-`.
///
/// # Errors
/// What is wrong with it.
pub fn check_key(key: &str) -> Result<(), String> {
    let mut bytes = key.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !first || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Err("must be a letter or `_`, followed by letters, digits, `_` and `-`".to_owned());
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(format!("is longer than {KEY_BYTES_MAX} bytes"));
    }
    // `{{elsewhere}}` reads as `{{else where}}`.
    if RESERVED.contains(&key) || key.starts_with("else") {
        return Err(format!("`{key}` means something else in a template"));
    }
    if key == UNSUBSCRIBE_URL {
        return Err(format!("`{UNSUBSCRIBE_URL}` is set by the service"));
    }
    Ok(())
}

/// Checks an alias: a letter or digit, then letters, digits, `.`, `_` and `-`; not like an id.
///
/// # Errors
/// What is wrong with it.
pub fn check_alias(alias: &str) -> Result<(), String> {
    let mut bytes = alias.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    if !first || !bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return Err("must be a letter or digit, followed by letters, digits, `.`, `_` and `-`".to_owned());
    }
    if alias.len() > ALIAS_BYTES_MAX {
        return Err(format!("is longer than {ALIAS_BYTES_MAX} bytes"));
    }
    if alias.to_ascii_lowercase().starts_with(TemplateId::PREFIX) {
        return Err(format!("must not begin with `{}` as ids do", TemplateId::PREFIX));
    }
    Ok(())
}

/// What a template or a version of it says, but for `html` and `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSettings {
    /// What it is for.
    pub category: Category,
    /// Managed unsubscribe was switched on.
    pub unsubscribe_enabled: bool,
    /// The author, unless the send request names one.
    pub from: Option<Mailbox>,
    /// Where answers go, unless the send request says.
    pub reply_to: Vec<Mailbox>,
    /// The markup of the subject.
    pub subject: Option<String>,
    /// The markup of the line that mail programs show behind the subject.
    pub preheader: Option<String>,
    /// What it says of its variables.
    pub variables: Vec<TemplateVariable>,
}

impl TemplateSettings {
    /// Whether managed unsubscribe is on: switched on, or by the category (email-api.md "Template
    /// categories").
    #[must_use]
    pub fn has_managed_unsubscribe(&self) -> bool {
        self.unsubscribe_enabled || self.category != Category::Transactional
    }
}

/// The two bodies of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateBodies {
    /// The HTML body.
    pub html: Option<String>,
    /// The plain-text body.
    pub text: Option<String>,
}

impl TemplateBodies {
    /// Whether there is something to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let empty = |body: &Option<String>| body.as_ref().is_none_or(|text| text.trim().is_empty());
        empty(&self.html) && empty(&self.text)
    }

    /// Their bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        [&self.html, &self.text].into_iter().flatten().map(|text| text.len() as u64).sum()
    }
}

/// Which version is published, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedVersion {
    /// Its number.
    pub version: u32,
    /// Since when.
    pub at: Timestamp,
}

/// A template: its draft, and which version is published. The bodies lie apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its id.
    pub id: TemplateId,
    /// Whose it is.
    pub account: AccountId,
    /// Its name, for people; once in an account.
    pub name: String,
    /// Its name, for programs; once in an account, without regard to case.
    pub alias: Option<String>,
    /// The draft.
    pub draft: TemplateSettings,
    /// Counts the changes of the draft, from 1: who changes it can say which one they saw.
    pub draft_version: u32,
    /// The published version, also the number of versions that ever were.
    pub published: Option<PublishedVersion>,
    /// The draft is not what is published.
    pub changed: bool,
    /// It is not sent any more.
    pub archived: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When anything of it was last changed.
    pub updated_at: Timestamp,
}

impl Template {
    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> TemplateStatus {
        match (self.archived, self.published) {
            (true, _) => TemplateStatus::Archived,
            (false, Some(_)) => TemplateStatus::Published,
            (false, None) => TemplateStatus::Draft,
        }
    }

    /// The template with a further version published, and which that is. Numbers are never used again.
    #[must_use]
    pub fn with_next_version(&self, now: Timestamp) -> (Self, PublishedVersion) {
        let number = self.published.map_or(0, |published| published.version).saturating_add(1);
        let published = PublishedVersion { version: number, at: now };
        let after = Self { published: Some(published), archived: false, updated_at: now, ..self.clone() };
        (after, published)
    }
}

/// A published version. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateVersion {
    /// 1, 2, 3 …
    pub number: u32,
    /// Why it was published.
    pub note: Option<String>,
    /// When it was published.
    pub published_at: Timestamp,
    /// By whom.
    pub published_by: String,
    /// What it says.
    pub settings: TemplateSettings,
}

/// How a template is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TemplateKey {
    /// By its id.
    Id(TemplateId),
    /// By its alias, in small letters.
    Alias(String),
}

impl TemplateKey {
    /// Reads an id or an alias. What can be neither is the alias of nothing.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(id) => Self::Id(id),
            Err(_) => Self::Alias(text.to_ascii_lowercase()),
        }
    }
}

/// Which template is to be sent, and which version of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TemplateRef {
    /// Which.
    pub key: TemplateKey,
    /// This version; the published one when none is named.
    pub version: Option<u32>,
}

/// A template and what is filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateUse {
    /// Which.
    pub reference: TemplateRef,
    /// An object.
    pub variables: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_and_keys() {
        for good in ["welcome", "order.shipped", "2fa-code", "A_b", &"x".repeat(100)] {
            assert_eq!(check_alias(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", "a b", "\u{e4}", "tpl_x", "TPL_x", "a/b", &"x".repeat(101)] {
            assert!(check_alias(bad).is_err(), "{bad}");
        }
        for good in ["name", "_x", "first-name", "a1"] {
            assert_eq!(check_key(good), Ok(()), "{good}");
        }
        for bad in ["", "1a", "a.b", "if", "each", "this", "elsewhere", "unsubscribe_url", &"x".repeat(65)] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_template_is_named_by_id_or_alias() {
        let id = TemplateId::new(Timestamp::UNIX_EPOCH, 7);
        assert_eq!(TemplateKey::parse(&id.to_string()), TemplateKey::Id(id));
        assert_eq!(TemplateKey::parse("Welcome"), TemplateKey::Alias("welcome".to_owned()));
        assert_eq!(TemplateKey::parse("tpl_x"), TemplateKey::Alias("tpl_x".to_owned()));
    }

    #[test]
    fn types_take_values() {
        use serde_json::json;
        assert!(VariableType::String.accepts(&json!("x")) && VariableType::String.accepts(&json!(5)));
        assert!(!VariableType::String.accepts(&json!([])) && !VariableType::Number.accepts(&json!("5")));
        for word in VariableType::WORDS {
            let read = VariableType::from_word(word).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), *word);
        }
        for word in TemplateStatus::WORDS {
            let read = TemplateStatus::from_word(word).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), *word);
        }
    }
}
