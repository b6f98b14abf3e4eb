//! Schemas of types that cannot derive them: containers, ids, times, enums of other crates.

use std::collections::BTreeMap;

use model::id;
use serde_json::{Value, json};

use crate::builders::allow_null;
use crate::components::Schemas;
use crate::property::{Property, describe};
use crate::to_schema::ToSchema;

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
                allow_null(&mut schema);
                describe(schema, description)
            }
        }
    }
}

impl<K, T: ToSchema> ToSchema for BTreeMap<K, T> {
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
    ($($type:ty),* $(,)?) => {$(
        impl ToSchema for $type {
            fn schema(_: &mut Schemas) -> Value {
                json!({"type": "string", "enum": <$type>::WORDS})
            }
        }
    )*};
}

constant_schemas! {
    String, &'static str => {"type": "string"};
    bool => {"type": "boolean"};
    u8, u16, u32, u64, usize => {"type": "integer", "minimum": 0};
    i64 => {"type": "integer"};
    f64 => {"type": "number"};
    Value => {};
    message::address::DomainName, message::address_pattern::AddressPattern, model::event::EventKind => {"type": "string"};
    model::affiliate::money::Currency => {"type": "string", "pattern": "^[a-z]{3}$", "examples": ["usd"]};
    std::net::IpAddr => {"type": "string"};
    id::AccountId, id::ApiKeyId, id::SmtpCredentialId, id::DomainId, id::ClaimId, id::EmailId, id::EventId, id::SuppressionId, id::OptOutId, id::ImportId, id::TemplateId, id::WebhookId, id::DeliveryId, id::ReceivedId, id::ProductEventId, id::AutomationId, id::RunId, id::RequestId, id::UserId, id::ApprovalId, id::SessionId, id::GrantId, id::OAuthClientId, id::ProgramId, id::PartnerId, id::PartnerLinkId, id::CampaignId, id::ReferralId, id::CommissionId, id::PayoutId, id::PayoutRunId, id::VisitId, id::BackfillId => {"type": "string"};
}

string_enum_schemas! {
    model::affiliate::campaign::Visibility,
    model::affiliate::commission::ReversalReason,
    model::affiliate::partner::PartnerSource,
    model::affiliate::partner::PartnerStatus,
    model::affiliate::payout::PayoutRunStatus,
    model::affiliate::payout::PayoutStatus,
    model::affiliate::payout::SkipReason,
    model::affiliate::program::AfterPayout,
    model::affiliate::program::Attribution,
    model::affiliate::program::ProcessorMode,
    model::affiliate::program::ProgramStatus,
    model::affiliate::referral::ReferralBlock,
    model::affiliate::referral::ReferralSource,
    model::affiliate::referral::ReferralStatus,
    model::approval::ApprovalStatus,
    model::automation::AutomationStatus,
    model::automation::run::CancelSource,
    model::automation::run::CompletionReason,
    model::automation::run::RunMode,
    model::automation::run::RunStatus,
    model::automation::run::StepStatus,
    message::received::AuthResult,
    model::received::SpamStatus,
    model::email::Category,
    model::product_event::funnel::GroupBy,
    model::suppression::SuppressionReason,
    model::suppression::SuppressionSource,
    model::webhook::DisabledReason,
    model::webhook::RetryPolicy,
    model::webhook_delivery::WebhookDeliveryStatus,
    model::template::TemplateStatus,
    model::template::VariableType,
    model::affiliate::backfill::BackfillStatus,
    model::affiliate::payout::PayoutFileFormat,
    model::affiliate::program::MissingStep,
    model::affiliate::program::PayoutMethod,
    model::affiliate::referral::FraudFlag,
    model::affiliate::referral::ReviewStatus,
}
