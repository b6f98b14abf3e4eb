//! Schemas of types that cannot derive them: containers, ids, times, enums of other crates.

use std::collections::BTreeMap;

use mail::id;
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
    mail::address::DomainName, mail::address_pattern::AddressPattern, mail::event::EventKind => {"type": "string"};
    mail::affiliate::money::Currency => {"type": "string", "pattern": "^[a-z]{3}$", "examples": ["usd"]};
    std::net::IpAddr => {"type": "string"};
    id::AccountId, id::ApiKeyId, id::SmtpCredentialId, id::DomainId, id::ClaimId, id::EmailId, id::EventId, id::SuppressionId, id::OptOutId, id::ImportId, id::TemplateId, id::WebhookId, id::DeliveryId, id::ReceivedId, id::ProductEventId, id::AutomationId, id::RunId, id::RequestId, id::UserId, id::ApprovalId, id::SessionId, id::GrantId, id::OAuthClientId, id::ProgramId, id::PartnerId, id::PartnerLinkId, id::CampaignId, id::ReferralId, id::CommissionId, id::PayoutId, id::PayoutRunId, id::VisitId, id::BackfillId => {"type": "string"};
}

string_enum_schemas! {
    mail::affiliate::campaign::Visibility: mail::affiliate::campaign::Visibility::WORDS,
    mail::affiliate::commission::ReversalReason: mail::affiliate::commission::ReversalReason::WORDS,
    mail::affiliate::partner::PartnerSource: mail::affiliate::partner::PartnerSource::WORDS,
    mail::affiliate::partner::PartnerStatus: mail::affiliate::partner::PartnerStatus::WORDS,
    mail::affiliate::payout::PayoutRunStatus: mail::affiliate::payout::PayoutRunStatus::WORDS,
    mail::affiliate::payout::PayoutStatus: mail::affiliate::payout::PayoutStatus::WORDS,
    mail::affiliate::payout::SkipReason: mail::affiliate::payout::SkipReason::WORDS,
    mail::affiliate::program::AfterPayout: mail::affiliate::program::AfterPayout::WORDS,
    mail::affiliate::program::Attribution: mail::affiliate::program::Attribution::WORDS,
    mail::affiliate::program::ProcessorMode: mail::affiliate::program::ProcessorMode::WORDS,
    mail::affiliate::program::ProgramStatus: mail::affiliate::program::ProgramStatus::WORDS,
    mail::affiliate::referral::ReferralBlock: mail::affiliate::referral::ReferralBlock::WORDS,
    mail::affiliate::referral::ReferralSource: mail::affiliate::referral::ReferralSource::WORDS,
    mail::affiliate::referral::ReferralStatus: mail::affiliate::referral::ReferralStatus::WORDS,
    mail::automation::AutomationStatus: mail::automation::AutomationStatus::WORDS,
    mail::automation::run::CancelSource: mail::automation::run::CancelSource::WORDS,
    mail::automation::run::CompletionReason: mail::automation::run::CompletionReason::WORDS,
    mail::automation::run::RunMode: mail::automation::run::RunMode::WORDS,
    mail::automation::run::RunStatus: mail::automation::run::RunStatus::WORDS,
    mail::automation::run::StepStatus: mail::automation::run::StepStatus::WORDS,
    mail::received::AuthResult: mail::received::AuthResult::WORDS,
    mail::received::SpamStatus: mail::received::SpamStatus::WORDS,
    mail::email::Category: mail::email::Category::WORDS,
    mail::suppression::SuppressionReason: mail::suppression::SuppressionReason::WORDS,
    mail::suppression::SuppressionSource: mail::suppression::SuppressionSource::WORDS,
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
}
