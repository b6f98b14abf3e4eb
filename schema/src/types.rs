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
    model::affiliate::campaign::Visibility: model::affiliate::campaign::Visibility::WORDS,
    model::affiliate::commission::ReversalReason: model::affiliate::commission::ReversalReason::WORDS,
    model::affiliate::partner::PartnerSource: model::affiliate::partner::PartnerSource::WORDS,
    model::affiliate::partner::PartnerStatus: model::affiliate::partner::PartnerStatus::WORDS,
    model::affiliate::payout::PayoutRunStatus: model::affiliate::payout::PayoutRunStatus::WORDS,
    model::affiliate::payout::PayoutStatus: model::affiliate::payout::PayoutStatus::WORDS,
    model::affiliate::payout::SkipReason: model::affiliate::payout::SkipReason::WORDS,
    model::affiliate::program::AfterPayout: model::affiliate::program::AfterPayout::WORDS,
    model::affiliate::program::Attribution: model::affiliate::program::Attribution::WORDS,
    model::affiliate::program::ProcessorMode: model::affiliate::program::ProcessorMode::WORDS,
    model::affiliate::program::ProgramStatus: model::affiliate::program::ProgramStatus::WORDS,
    model::affiliate::referral::ReferralBlock: model::affiliate::referral::ReferralBlock::WORDS,
    model::affiliate::referral::ReferralSource: model::affiliate::referral::ReferralSource::WORDS,
    model::affiliate::referral::ReferralStatus: model::affiliate::referral::ReferralStatus::WORDS,
    model::approval::ApprovalStatus: model::approval::ApprovalStatus::WORDS,
    model::automation::AutomationStatus: model::automation::AutomationStatus::WORDS,
    model::automation::run::CancelSource: model::automation::run::CancelSource::WORDS,
    model::automation::run::CompletionReason: model::automation::run::CompletionReason::WORDS,
    model::automation::run::RunMode: model::automation::run::RunMode::WORDS,
    model::automation::run::RunStatus: model::automation::run::RunStatus::WORDS,
    model::automation::run::StepStatus: model::automation::run::StepStatus::WORDS,
    message::received::AuthResult: message::received::AuthResult::WORDS,
    model::received::SpamStatus: model::received::SpamStatus::WORDS,
    model::email::Category: model::email::Category::WORDS,
    model::product_event::funnel::GroupBy: model::product_event::funnel::GroupBy::WORDS,
    model::suppression::SuppressionReason: model::suppression::SuppressionReason::WORDS,
    model::suppression::SuppressionSource: model::suppression::SuppressionSource::WORDS,
    model::webhook::DisabledReason: model::webhook::DisabledReason::WORDS,
    model::webhook::RetryPolicy: model::webhook::RetryPolicy::WORDS,
    model::webhook_delivery::WebhookDeliveryStatus: model::webhook_delivery::WebhookDeliveryStatus::WORDS,
    model::template::TemplateStatus: model::template::TemplateStatus::WORDS,
    model::template::VariableType: model::template::VariableType::WORDS,
    model::affiliate::backfill::BackfillStatus: model::affiliate::backfill::BackfillStatus::WORDS,
    model::affiliate::payout::PayoutFileFormat: model::affiliate::payout::PayoutFileFormat::WORDS,
    model::affiliate::program::MissingStep: model::affiliate::program::MissingStep::WORDS,
    model::affiliate::program::PayoutMethod: model::affiliate::program::PayoutMethod::WORDS,
    model::affiliate::referral::FraudFlag: model::affiliate::referral::FraudFlag::WORDS,
    model::affiliate::referral::ReviewStatus: model::affiliate::referral::ReviewStatus::WORDS,
}
