//! Response objects of the affiliate program and their schemas. The objects are from `affiliate::api_objects`, which
//! webhooks use as well.

use ::affiliate::api_objects::{
    CampaignObject, CommissionObject, LinkObject, PartnerObject, ProcessorObject, ProgramObject, ReferralObject,
};
use ::affiliate::partners::lookup::PartnerView;
use httpd::response::{ExtraResponse, IntoResponse, Response};
use model::affiliate::program::MissingStep;

use super::response::VersionedResponse;
use crate::prelude::*;

/// Like `T`, answered with 201.
#[derive(Debug)]
pub struct CreatedResponse<T>(std::marker::PhantomData<T>);

impl<T: ToSchema> ToSchema for CreatedResponse<T> {
    const SUCCESS_STATUS: StatusCode = StatusCode::CREATED;

    fn schema(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }
}

/// A page of the list
#[derive(Debug, Serialize, ToSchema)]
pub struct ListResponse<T> {
    /// The entries, newest first
    data: Vec<T>,
    /// Whether there are more
    has_more: bool,
    /// The `cursor` of the next page
    next_cursor: Option<String>,
}

impl<T> ListResponse<T> {
    /// `next_cursor` is `None` on the last page.
    pub(super) fn new(data: Vec<T>, next_cursor: Option<String>) -> Self {
        Self { data, has_more: next_cursor.is_some(), next_cursor }
    }
}

/// A response with a single object
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "OneAffiliate")]
pub struct PartnerResponse {
    pub(super) affiliate: PartnerObject,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(skip)]
    pub(super) warnings: Vec<String>,
}

impl PartnerResponse {
    pub(super) fn from_partner(view: &PartnerView) -> Self {
        let warnings = view.warning.iter().map(ToString::to_string).collect();
        Self { affiliate: view.object(), warnings }
    }
}

object_response! { "A response with a single object", pub PartnerLinkResponse { link: LinkObject } as "OneAffiliateLink" }

object_response! { "A response with a single object", pub CampaignResponse { campaign: CampaignObject } as "OneAffiliateCampaign" }

object_response! { "A response with a single object", pub ReferralResponse { referral: ReferralObject } as "OneAffiliateReferral" }

object_response! { "A response with a single object", pub CommissionResponse { commission: CommissionObject } as "OneAffiliateCommission" }

object_response! { "A response with a single object", pub ProgramResponse { program: ProgramObject } as "OneAffiliateProgram" }

object_response! { "A response with a single object", pub ProcessorResponse { processor: ProcessorObject } as "OneAffiliateProcessor" }

/// A created or existing referral
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ToldAffiliateReferral", status = CREATED)]
pub struct CreateReferralResponse {
    pub(super) referral: ReferralObject,
    /// Whether the request created the referral; false if the person was referred before
    pub(super) created: bool,
}

/// The referral that was created, or the one that exists.
#[derive(Debug)]
pub struct VersionedReferral(pub(super) VersionedResponse<CreateReferralResponse>);

impl IntoResponse for VersionedReferral {
    const STATUS: StatusCode = CreateReferralResponse::SUCCESS_STATUS;
    const EXTRA_RESPONSES: &'static [ExtraResponse] =
        &[ExtraResponse::json(200, "The person was referred before; the existing referral is returned")];

    fn describe(schemas: &mut Schemas) -> Value {
        CreateReferralResponse::schema(schemas)
    }

    fn into_response(self) -> Result<Response> {
        self.0.into_response()
    }
}

/// An affiliate program with its payment processor and missing setup steps
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "WholeAffiliateProgram")]
pub struct ProgramDetailResponse {
    pub(super) program: ProgramObject,
    pub(super) processor: Option<ProcessorObject>,
    /// The URL for the payment processor's events, which you enter there before you connect it
    pub(super) webhook_url: String,
    /// Setup steps that are missing before the program can go live
    #[schema(items = {"type": "string", "enum": MissingStep::WORDS, "description": "A setup step"})]
    pub(super) missing: Vec<MissingStep>,
}

/// The payment processor's key is valid, or no key is set
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TestedAffiliateProcessor")]
pub struct TestProcessorResponse {
    #[schema(const = true)]
    pub(super) ok: bool,
    /// The payment processor's account id
    pub(super) account_id: Option<String>,
    /// Whether payments are live; null if unknown
    pub(super) livemode: Option<bool>,
    /// When the last event was received
    pub(super) last_event_at: Option<::affiliate::api_objects::ApiTimestamp>,
}

object_view! {
    /// A partner including its write-only fields
    #[schema(name = "AffiliateInside")]
    pub struct OwnerPartnerDetail, pub(super) fn from_partner(
        view: &PartnerView, postback_secret: Option<String>;
        let partner = &view.partner
    ) {
        affiliate: PartnerObject = view.object(),
        /// The owner's notes
        notes: Option<String> = partner.notes.clone(),
        /// The payout destination
        payout_destination: Option<String> = partner.payout.as_ref().map(|payout| payout.destination.clone()),
        /// The URL that receives the partner's own events
        postback_url: Option<String> = partner.postback_url.clone(),
        /// The secret that signs the postbacks
        postback_secret: Option<String> = postback_secret,
        /// Whether the partner has opted out of email, except security email and email it requests
        email_opt_out: bool = partner.email_opt_out,
        commission_override: Option<CommissionOverride> = partner
            .commission_override
            .map(|rate| CommissionOverride { commission_type: "percent", commission_bps: rate.get() }),
    }
}

/// The partner's own rate; takes precedence over the campaign's
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct CommissionOverride {
    #[schema(const = "percent")]
    commission_type: &'static str,
    /// The percentage of a sale in basis points
    #[schema(maximum = model::affiliate::money::BasisPoints::ALL.get())]
    commission_bps: u16,
}
