//! Object schemas from the tables of properties that `#[derive(ToSchema)]` writes.

use std::collections::BTreeMap;

use mail::id;
use serde_json::{Value, json};

use super::{Schemas, ToSchema};

/// A row of an object's table of properties.
pub enum Property {
    Named {
        name: &'static str,
        description: Option<&'static str>,
        /// [`ToSchema::described`] of the field's type.
        schema: fn(&mut Schemas, Option<&str>) -> Value,
        is_required: bool,
        /// Keywords that the type cannot tell, as an object.
        keywords: Option<fn() -> Value>,
    },
    /// The properties of a flattened object, which may be absent.
    Flattened { properties: &'static [Property], is_required: bool },
}

impl Property {
    /// Adds the property to an object, which may be absent as a whole.
    fn add_to(&self, object: &mut Value, is_object_required: bool, schemas: &mut Schemas) {
        match self {
            Self::Flattened { properties, is_required } => {
                let is_required = *is_required && is_object_required;
                properties.iter().for_each(|property| property.add_to(object, is_required, schemas));
            }
            Self::Named { name, description, schema, is_required, keywords } => {
                let schema = schema(schemas, *description);
                object["properties"][name] = match keywords {
                    Some(keywords) => with_keywords(schema, keywords()),
                    None => schema,
                };
                if *is_required
                    && is_object_required
                    && let Some(required) = object["required"].as_array_mut()
                {
                    required.push(json!(name));
                }
            }
        }
    }
}

/// The schema of an object with these properties.
pub fn object_schema(schemas: &mut Schemas, description: Option<&str>, properties: &[Property]) -> Value {
    let mut object = describe(json!({"type": "object"}), description);
    object["properties"] = json!({});
    object["required"] = json!([]);
    properties.iter().for_each(|property| property.add_to(&mut object, true, schemas));
    if let Some(fields) = object.as_object_mut()
        && fields["required"] == json!([])
    {
        fields.remove("required");
    }
    object
}

/// The schema of an object that has the fields of two.
#[must_use]
pub fn all_of(base: Value, rest: Value, description: Option<&str>) -> Value {
    describe(json!({"allOf": [base, rest]}), description)
}

/// Sets keywords, given as an object.
#[must_use]
pub fn with_keywords(mut schema: Value, keywords: Value) -> Value {
    if let Value::Object(keywords) = keywords {
        keywords.into_iter().for_each(|(keyword, value)| schema[keyword] = value);
    }
    schema
}

/// Sets the description, if there is one.
#[must_use]
pub fn describe(mut schema: Value, description: Option<&str>) -> Value {
    if let Some(text) = description {
        schema["description"] = json!(text);
    }
    schema
}

/// A schema or null. If both the field and its type have a description, an alternative keeps the type's.
impl<T: ToSchema> ToSchema for Option<T> {
    const PROPERTIES: &'static [Property] = T::PROPERTIES;

    fn schema(schemas: &mut Schemas) -> Value {
        Self::described(schemas, None)
    }

    fn described(schemas: &mut Schemas, description: Option<&str>) -> Value {
        let mut schema = T::schema(schemas);
        match description {
            Some(text) if schema.get("description").is_some() => {
                json!({"description": text, "oneOf": [{"type": "null"}, schema]})
            }
            _ => {
                super::allow_null(&mut schema);
                describe(schema, description)
            }
        }
    }
}

impl<T: ToSchema> ToSchema for BTreeMap<String, T> {
    fn schema(schemas: &mut Schemas) -> Value {
        json!({"type": "object", "additionalProperties": T::schema(schemas)})
    }
}

impl<T: ToSchema> ToSchema for Vec<T> {
    fn schema(schemas: &mut Schemas) -> Value {
        json!({"type": "array", "items": T::schema(schemas)})
    }
}

/// Implements [`ToSchema`] with a constant schema.
macro_rules! constant_schemas {
    ($($($type:ty),+ => $schema:tt;)*) => {$($(
        impl ToSchema for $type {
            fn schema(_: &mut Schemas) -> Value {
                json!($schema)
            }
        }
    )+)*};
}

/// Implements [`ToSchema`] for types that are written as one word of a list.
macro_rules! string_enum_schemas {
    ($($type:ty: $words:expr),* $(,)?) => {$(
        impl ToSchema for $type {
            fn schema(_: &mut Schemas) -> Value {
                json!({"type": "string", "enum": $words})
            }
        }
    )*};
}

constant_schemas! {
    String, &'static str => {"type": "string"};
    bool => {"type": "boolean"};
    u16, u32, u64, usize => {"type": "integer", "minimum": 0};
    i64 => {"type": "integer"};
    f64 => {"type": "number"};
    Value => {};
    crate::json_timestamp::JsonTimestamp, ::affiliate::api_objects::ApiTimestamp => {"type": "string", "format": "date-time"};
    mail::address::DomainName, mail::address_pattern::AddressPattern, mail::event::EventKind => {"type": "string"};
    mail::affiliate::money::Currency, std::net::IpAddr => {"type": "string"};
    id::AccountId, id::ApiKeyId, id::SmtpCredentialId, id::DomainId, id::ClaimId, id::EmailId, id::EventId, id::SuppressionId, id::OptOutId, id::ImportId, id::TemplateId, id::WebhookId, id::DeliveryId, id::ReceivedId, id::ProductEventId, id::AutomationId, id::RunId, id::RequestId, id::UserId, id::SessionId, id::ProgramId, id::PartnerId, id::PartnerLinkId, id::CampaignId, id::ReferralId, id::CommissionId, id::PayoutId, id::PayoutRunId, id::VisitId, id::BackfillId => {"type": "string"};
}

string_enum_schemas! {
    mail::automation::AutomationStatus: mail::automation::AutomationStatus::WORDS,
    mail::automation::run::CancelSource: mail::automation::run::CancelSource::WORDS,
    mail::automation::run::CompletionReason: mail::automation::run::CompletionReason::WORDS,
    mail::automation::run::RunMode: mail::automation::run::RunMode::WORDS,
    mail::automation::run::RunStatus: mail::automation::run::RunStatus::WORDS,
    mail::automation::run::StepStatus: mail::automation::run::StepStatus::WORDS,
    mail::email::Category: mail::email::Category::WORDS,
    mail::suppression::SuppressionReason: crate::suppression_words::reason_words(),
    mail::suppression::SuppressionSource: crate::suppression_words::source_words(),
    mail::webhook::DisabledReason: mail::webhook::DisabledReason::WORDS,
    mail::webhook::RetryPolicy: mail::webhook::RetryPolicy::WORDS,
    mail::webhook_delivery::WebhookDeliveryStatus: mail::webhook_delivery::WebhookDeliveryStatus::WORDS,
    mail::template::TemplateStatus: mail::template::TemplateStatus::WORDS,
    mail::template::VariableType: mail::template::VariableType::WORDS,
    mail::affiliate::backfill::BackfillStatus: mail::affiliate::backfill::BackfillStatus::WORDS,
    mail::affiliate::payout::PayoutFileFormat: mail::affiliate::payout::PayoutFileFormat::WORDS,
    mail::affiliate::program::MissingStep: mail::affiliate::program::MissingStep::WORDS,
    mail::affiliate::program::PayoutMethod: mail::affiliate::program::PayoutMethod::WORDS,
    mail::affiliate::referral::FraudFlag: mail::affiliate::referral::FraudFlag::WORDS,
    mail::affiliate::referral::ReviewStatus: mail::affiliate::referral::ReviewStatus::WORDS,
    store::affiliate::processor_event::EventStatus: store::affiliate::processor_event::EventStatus::WORDS,
}
