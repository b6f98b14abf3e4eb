//! The policy of a credential in requests and responses.

use std::collections::BTreeSet;

use httpd::fields::FieldLookup as _;
use httpd::request_object::{RequestValue, read_nested};
use httpd::request_value::{AddressPatterns, Integer};
use message::address_pattern::AddressPattern;
use model::client_policy::{ApprovalKind, ClientPolicy, RECIPIENT_PATTERNS_MAX, SENDS_PER_DAY_MAX};
use model::email::Category;

use crate::prelude::*;

const POLICY: &str = "policy";

/// The rules for the client below its scope
#[derive(Debug, RequestObject)]
#[schema(name = "ClientPolicyRequest")]
pub(super) struct PolicyFields {
    /// The recipients that it may send to: addresses and patterns like `*@example.com`; empty allows all
    #[field(reader = AddressPatterns<RECIPIENT_PATTERNS_MAX>, absent = Vec::new(), null = Vec::new())]
    recipients: Vec<AddressPattern>,
    /// The only sender address
    #[field(parse = parse_address, schema = schema::address(""), nullable)]
    from: Option<Address>,
    /// Maximum number of recipients per day (UTC)
    #[field(reader = Integer<u32, 1, { SENDS_PER_DAY_MAX as i64 }>, nullable)]
    sends_per_day: Option<u32>,
    /// The categories of email that it may send; empty allows all
    #[field(reader = Categories, absent = BTreeSet::new(), null = BTreeSet::new())]
    categories: BTreeSet<Category>,
    /// The kinds of operations that wait for a person's approval
    #[field(reader = ApprovalKinds, absent = BTreeSet::new(), null = BTreeSet::new(), examples = [[]])]
    approve: BTreeSet<ApprovalKind>,
}

impl From<PolicyFields> for ClientPolicy {
    fn from(fields: PolicyFields) -> Self {
        let PolicyFields { recipients, from, sends_per_day, categories, approve } = fields;
        Self { recipients, from, sends_per_day, categories, approve }
    }
}

fn parse_address(value: &RawValue) -> Result<Address, String> {
    fields::parse_text(value)?.trim().parse().map_err(|_| "is not an email address".to_owned())
}

/// Reads the field `policy`; null has no rules. A field that is not known is an error, because a rule that is mistyped
/// would permit what it is to prevent.
pub(crate) fn read_policy(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<ClientPolicy> {
    if fields.is_null(POLICY) {
        return Some(ClientPolicy::default());
    }
    let value = fields.value(POLICY)?;
    if let Ok(object) = fields::parse_object(value) {
        for (name, _) in object.0.iter().filter(|(name, _)| PolicyFields::FIELDS.canonical(name).is_none()) {
            notes.errors.add(&format!("{POLICY}.{}", fields::printable_name(name)), "is not a rule of policies");
        }
    }
    read_nested::<PolicyFields>(value, POLICY, notes).map(ClientPolicy::from)
}

/// The schema of the field.
pub(crate) fn policy_request_schema(schemas: &mut Schemas) -> Value {
    PolicyFields::schema(schemas)
}

fn parse_words<T: Ord>(
    value: &RawValue,
    words: &[&str],
    from_word: impl Fn(&str) -> Option<T>,
) -> Result<BTreeSet<T>, String> {
    let entries = fields::parse_list(value, words.len())?;
    let parse = |entry| {
        let text = fields::parse_text(entry)?;
        from_word(&text).ok_or_else(|| format!("must be one of {}", words.join(", ")))
    };
    entries.into_iter().map(parse).collect()
}

fn words_schema(words: &[&str]) -> Value {
    json!({"type": "array", "items": {"type": "string", "enum": words}, "maxItems": words.len()})
}

struct Categories;

impl RequestValue for Categories {
    type Value = BTreeSet<Category>;

    fn schema(_: &mut Schemas) -> Value {
        words_schema(Category::WORDS)
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        parse_words(value, Category::WORDS, Category::from_word)
    }
}

struct ApprovalKinds;

impl RequestValue for ApprovalKinds {
    type Value = BTreeSet<ApprovalKind>;

    fn schema(_: &mut Schemas) -> Value {
        words_schema(ApprovalKind::WORDS)
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        parse_words(value, ApprovalKind::WORDS, ApprovalKind::from_word)
    }
}

/// The policy as the API shows it; null without a rule.
pub(crate) fn policy_view(policy: &ClientPolicy) -> Value {
    #[derive(Serialize)]
    struct PolicyView<'a> {
        recipients: &'a [AddressPattern],
        from: Option<&'a Address>,
        sends_per_day: Option<u32>,
        categories: Vec<&'static str>,
        approve: Vec<&'static str>,
    }
    if policy.is_empty() {
        return Value::Null;
    }
    let view = PolicyView {
        recipients: &policy.recipients,
        from: policy.from.as_ref(),
        sends_per_day: policy.sends_per_day,
        categories: policy.categories.iter().map(|category| category.word()).collect(),
        approve: policy.approve.iter().map(|kind| kind.word()).collect(),
    };
    json!(view)
}

/// The schema of [`policy_view`].
pub(crate) fn policy_schema(schemas: &mut Schemas) -> Value {
    let mut schema = schemas.component("ClientPolicy", |_| {
        let recipient = schema::string("An address, or a pattern like `*@example.com`");
        let category = schema::string_enum(Category::WORDS, "A category");
        let kind = schema::string_enum(ApprovalKind::WORDS, "A kind of operations");
        schema::object(
            "What a client may do below its scope",
            [
                ("recipients", schema::list(recipient, "The recipients that it may send to; empty allows all")),
                ("from", schema::nullable_string("The only sender address")),
                ("sends_per_day", schema::nullable_count("Maximum number of recipients per day (UTC)")),
                ("categories", schema::list(category, "The categories of email that it may send; empty allows all")),
                ("approve", schema::list(kind, "The kinds of operations that wait for a person's approval")),
            ],
        )
    });
    schema::allow_null(&mut schema);
    schema
}
