//! A template: the text of an email with variables, stored under a name.
//!
//! ```text
//! draft ──publish──► version 1, 2, 3 … (immutable) ──resolve──► CompiledTemplate ──render──► subject, html, text
//! ```
//!
//! Edits change the draft. Emails use the latest published version, or the requested one. The markup is a subset of
//! Handlebars: [`markup`] defines it and its bounds, [`usage`] collects the variables, `blocks` implements the four
//! blocks, [`render`] renders. A template cannot read files, run scripts or include other templates, and the work of
//! rendering is bounded.

mod blocks;
pub mod markup;
pub mod render;
pub mod usage;

use jiff::Timestamp;
use message::address::Mailbox;
use message::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::email::Category;
use crate::id::{AccountId, TemplateId};
use crate::raw_number::is_number;

pub use self::markup::{MarkupError, MarkupTag, MarkupTagKind};
pub use self::render::{CompiledTemplate, ParsedTemplate, RenderError, RenderedTemplate};

/// The placeholder of managed unsubscribe: rendering keeps it, and message intake
/// replaces it by the link.
pub const UNSUBSCRIBE_URL: &str = "unsubscribe_url";
pub const ALIAS_BYTES_MAX: usize = 100;
/// Maximum bytes of a template's name.
pub const NAME_BYTES_MAX: usize = 200;
/// Maximum bytes of the subject's markup: equal to the limit of a send request (RFC 5322 2.1.1, in characters of four
/// bytes).
pub const SUBJECT_BYTES_MAX: usize = 4 * 998;
/// Maximum bytes of the preheader's markup; mail clients show about 100 characters.
pub const PREHEADER_BYTES_MAX: usize = 1_000;
/// Maximum bytes of `html`, of `text`, and of `mjml`: five times what Gmail shows.
pub const MARKUP_BYTES_MAX: usize = 512 << 10;
/// Maximum number of declared variables.
pub const VARIABLES_MAX: usize = 100;
/// Maximum bytes of a declared variable's name.
pub const KEY_BYTES_MAX: usize = 64;
/// Maximum bytes of all fallback values of a template, as JSON.
pub const FALLBACKS_BYTES_MAX: usize = 16 << 10;
/// Maximum bytes of a version's note.
pub const NOTE_BYTES_MAX: usize = 500;
/// Number of stored versions per template; the oldest is deleted for a new one.
pub const VERSIONS_KEPT: u32 = 200;

/// Names with a meaning in the markup, which variables cannot have.
const RESERVED: &[&str] = &["if", "unless", "each", "with", "this", "as", "true", "false", "null"];

words! {
    TemplateStatus {
        /// Never published.
        Draft = "draft",
        /// Can be sent.
        Published = "published",
        /// Stored, but cannot be sent.
        Archived = "archived",
    }
}

words! {
    VariableType {
        /// A text, a number or a boolean.
        String = "string",
        Number = "number",
        Boolean = "boolean",
        Object = "object",
        List = "list",
    }
}

impl VariableType {
    /// Phrase for error messages.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Object => "an object",
            Self::List => "a list",
        }
    }

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

/// Declaration of a template variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateVariable {
    pub key: String,
    pub r#type: VariableType,
    /// If set, rendering fails without a value or fallback; otherwise a missing variable renders as empty.
    pub required: bool,
    /// Value used if none is given.
    pub fallback_value: Option<Value>,
}

/// Validates a variable name: a letter or `_`, then letters, digits, `_` and `-`.
///
/// # Errors
/// Returns the reason, to be appended to the field's name.
pub fn check_key(key: &str) -> Result<(), String> {
    let mut bytes = key.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !first || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Err("must be a letter or `_`, followed by letters, digits, `_` and `-`".to_owned());
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(format!("is longer than {KEY_BYTES_MAX} bytes"));
    }
    // The grammar parses `{{elsewhere}}` as `{{else where}}`.
    if RESERVED.contains(&key) || key.starts_with("else") {
        return Err(format!("`{key}` is a reserved word in templates"));
    }
    if key == UNSUBSCRIBE_URL {
        return Err(format!("`{UNSUBSCRIBE_URL}` is set by the service"));
    }
    Ok(())
}

/// Validates an alias: a letter or digit, then letters, digits, `.`, `_` and `-`, without the prefix of template ids.
///
/// # Errors
/// Returns the reason, to be appended to the field's name.
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

/// The settings of a template or version: everything except `html` and `text`.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateSettings {
    pub category: Category,
    /// Managed unsubscribe is switched on.
    pub unsubscribe_enabled: bool,
    /// Author, unless the send request names one.
    pub from: Option<Mailbox>,
    /// Reply-To addresses, unless the send request names some.
    pub reply_to: Vec<Mailbox>,
    /// The subject's markup.
    pub subject: Option<String>,
    /// Markup of the preview line that mail clients show after the subject.
    pub preheader: Option<String>,
    /// Declared variables.
    pub variables: Vec<TemplateVariable>,
}

impl TemplateSettings {
    /// Returns whether managed unsubscribe is on: switched on, or implied by the category
    /// (product email and newsletters).
    pub fn has_managed_unsubscribe(&self) -> bool {
        self.unsubscribe_enabled || self.category != Category::Transactional
    }
}

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TemplateBodies {
    /// The HTML body, which is rendered; compiled if there is `mjml`.
    pub html: Option<String>,
    pub text: Option<String>,
    /// The MJML source that `html` was compiled from.
    pub mjml: Option<String>,
}

impl TemplateBodies {
    /// Returns whether both bodies are blank.
    pub fn is_empty(&self) -> bool {
        let empty = |body: &Option<String>| body.as_ref().is_none_or(|text| text.trim().is_empty());
        empty(&self.html) && empty(&self.text)
    }

    /// Size of the bodies and of the MJML source in bytes.
    pub fn size_bytes(&self) -> u64 {
        [&self.html, &self.text, &self.mjml].into_iter().flatten().map(|text| text.len() as u64).sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedVersion {
    pub version: u32,
    /// Time of publication.
    pub at: Timestamp,
}

/// A template: its draft and its published version. The bodies are stored separately.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    pub id: TemplateId,
    pub account: AccountId,
    /// Display name; unique in an account.
    pub name: String,
    /// Name for API calls; unique in an account, ignoring case.
    pub alias: Option<String>,
    pub draft: TemplateSettings,
    /// Revision of the draft, from 1, for optimistic concurrency control.
    pub draft_version: u32,
    /// The published version; its number is also the count of all versions so far.
    pub published: Option<PublishedVersion>,
    /// The draft differs from the published version.
    pub changed: bool,
    /// Archived: it cannot be sent.
    pub archived: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Template {
    pub fn status(&self) -> TemplateStatus {
        match (self.archived, self.published) {
            (true, _) => TemplateStatus::Archived,
            (false, Some(_)) => TemplateStatus::Published,
            (false, None) => TemplateStatus::Draft,
        }
    }

    /// Returns the template with the next version published, and that version. Version numbers are never reused.
    pub fn with_next_version(&self, now: Timestamp) -> (Self, PublishedVersion) {
        let number = self.published.map_or(0, |published| published.version).saturating_add(1);
        let published = PublishedVersion { version: number, at: now };
        let after = Self { published: Some(published), archived: false, updated_at: now, ..self.clone() };
        (after, published)
    }
}

/// A published version. It is immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateVersion {
    /// 1, 2, 3 …
    pub number: u32,
    /// The customer's note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub published_at: Timestamp,
    pub published_by: String,
    pub settings: TemplateSettings,
}

/// Reference to a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TemplateKey {
    Id(TemplateId),
    /// The alias in lower case.
    Alias(String),
}

impl TemplateKey {
    /// Parses an id; any other text is an alias.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(id) => Self::Id(id),
            Err(_) => Self::Alias(text.to_ascii_lowercase()),
        }
    }
}

/// Reference to a template and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TemplateRef {
    pub key: TemplateKey,
    /// The version; `None` means the published one.
    pub version: Option<u32>,
}

/// A template with its variable values.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateUse {
    pub reference: TemplateRef,
    /// A JSON object.
    pub variables: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_and_keys_are_validated() {
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
    fn variable_types_accept_their_values() {
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
