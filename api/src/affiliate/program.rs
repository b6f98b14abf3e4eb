//! `/dashboard/api/affiliate-program`: set-up and state of the program, for its owner.

use ::affiliate::api_objects::{ApiTimestamp, ProcessorObject, ProgramObject, processor_events_url};
use ::affiliate::error::AffiliateError;
use ::affiliate::program::onboarding::ProcessorConnection;
use ::affiliate::stripe::client::API_BASE;
use httpd::request_object::RequestValue;
use model::affiliate::money::Currency;
use model::affiliate::program::{AffiliateProgram, ProcessorMode, WEBHOOK_SECRETS_MAX};

use super::fields::CurrencyCode;
use super::program_fields::PageUrl;
use super::request::{ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::VersionedResponse;
use super::settings::UpdateProgramSettings;
use super::view::{CreatedResponse, ProcessorResponse, ProgramDetailResponse, ProgramResponse, TestProcessorResponse};
use crate::prelude::*;

/// Maximum length of a secret or key of the payment processor.
const SECRET_BYTES_MAX: usize = 500;
/// Minimum length of a signing secret. Stripe's secrets have 38 or 70 characters; a test double may use shorter ones.
const SIGNING_SECRET_BYTES_MIN: usize = 8;

async fn program_response(
    state: &AppState,
    changed: Result<AffiliateProgram, AffiliateError>,
) -> Result<VersionedResponse<ProgramResponse>> {
    let program = changed.or_problem(state)?;
    Ok(VersionedResponse::new(&ProgramResponse { program: program_object(state, &program).await? })
        .with_etag(program.rev))
}

async fn program_object(state: &AppState, program: &AffiliateProgram) -> Result<ProgramObject> {
    let portal_fault = state.affiliate.hosts.portal_host_error(program).await?;
    Ok(ProgramObject::of(program, portal_fault, state.affiliate.partners.senders.mail_fault(program).await?))
}

/// A new affiliate program
#[derive(Debug, RequestObject)]
#[schema(name = "EnableAffiliateProgram", body_bytes_max = SMALL_BYTES_MAX)]
pub struct EnableProgram {
    /// The website that partner links lead to
    #[field(reader = PageUrl)]
    website_url: String,
    /// The currency of flat amounts, bounties and caps
    #[field(reader = CurrencyCode)]
    currency: Currency,
    /// Whether live or test payments count; defaults to `live`
    #[field(absent = ProcessorMode::Live)]
    mode: ProcessorMode,
}

/// `POST /dashboard/api/affiliate-program`.
///
/// # Errors
/// The input is invalid; the plan includes no affiliate program; a program exists already.
pub async fn enable(
    state: State,
    owner: Owner,
    input: EnableProgram,
) -> Result<VersionedResponse<CreatedResponse<ProgramResponse>>> {
    let EnableProgram { website_url, currency, mode } = input;
    let account = owner.tenant().account().id;
    if !state.accounts.limits.plans.of(owner.tenant().account().plan).affiliates {
        let text = "Your plan does not include an affiliate program; upgrade your plan";
        return Err(Problem::new(ErrorCode::PLAN_FULL, text)
            .with_upgrade_url(state.upgrade_url())
            .with_details(json!({"limit": "affiliates", "used": 0, "cap": 0})));
    }
    let program =
        state.affiliate.onboarding.enable_program(account, website_url, currency, mode).await.or_problem(&state)?;
    Ok(VersionedResponse::new(&ProgramResponse { program: program_object(&state, &program).await? })
        .with_etag(program.rev))
}

/// `GET /dashboard/api/affiliate-program`.
pub async fn get(
    state: State,
    owner: Owner,
    request: ReadRequest<NoInput>,
) -> Result<VersionedResponse<ProgramDetailResponse>> {
    let program = request.require_program(&state, owner.tenant()).await?.program;
    let detail = ProgramDetailResponse {
        program: program_object(&state, &program).await?,
        processor: processor_object(&state, &program).await?,
        webhook_url: processor_events_url(&state.options.base_url, &program),
        missing: program.missing_steps(),
    };
    Ok(VersionedResponse::new(&detail).with_etag(program.rev))
}

async fn processor_object(state: &AppState, program: &AffiliateProgram) -> Result<Option<ProcessorObject>> {
    let summary = state.affiliate.events.processor_event_summary(program.account).await.or_problem(state)?;
    let base_url = &state.options.base_url;
    Ok(program.processor.as_ref().map(|processor| ProcessorObject::of(processor, program, summary, base_url)))
}

/// `PATCH /dashboard/api/affiliate-program`.
///
/// # Errors
/// The input is invalid, there is no program, it was changed concurrently, or currency and mode can no longer change.
pub async fn update(
    state: State,
    owner: Owner,
    request: UpdateRequest<UpdateProgramSettings>,
) -> Result<VersionedResponse<ProgramResponse>> {
    let ResolvedRequest { program, input, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    if let Some(Some(sender)) = input.mail_from() {
        state.affiliate.onboarding.check_sender(program.account, sender).await.or_problem(&state)?;
    }
    let change = |settings: &mut _| {
        input.apply(settings);
        Ok(())
    };
    let set = state.affiliate.onboarding.update_settings(program.account, if_match.as_ref(), &change).await;
    program_response(&state, set).await
}

/// The connection to the payment processor
#[derive(RequestObject)]
#[schema(name = "ConnectAffiliateProcessor", examples = [{"webhook_secrets": ["whsec_0123456789abcdef"]}])]
struct ProcessorFields {
    /// The signing secret of the webhook; two during a rotation
    #[field(parse = parse_signing_secrets, schema = signing_secrets_schema)]
    webhook_secrets: Vec<String>,
    /// The base URL of the payment processor's API; defaults to Stripe's
    #[field(reader = PageUrl, absent = API_BASE.to_owned(), examples = [API_BASE])]
    api_base: String,
    /// A restricted API key; without one only events are received
    #[field(reader = ProcessorSecret, nullable)]
    restricted_key: Option<String>,
    /// The payment processor's account id; needed only without a key
    #[field(reader = ProcessorSecret, nullable)]
    account_id: Option<String>,
}

/// Body of `PUT …/processor`. It holds secrets, so it does not implement `Debug`.
pub struct ConnectProcessor(ProcessorConnection);

impl FromRequest for ConnectProcessor {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(ProcessorFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let ProcessorFields { webhook_secrets, api_base, restricted_key, account_id } = read_body(call)?;
        Ok(Self(ProcessorConnection { webhook_secrets, api_base, restricted_key, account_id }))
    }
}

fn parse_signing_secrets(value: &RawValue) -> Result<Vec<String>, String> {
    let error = || "must be a list of one or two secrets".to_owned();
    let entries = fields::parse_list(value, WEBHOOK_SECRETS_MAX).map_err(|_| error())?;
    if entries.is_empty() {
        return Err(error());
    }
    entries.into_iter().map(parse_signing_secret).collect()
}

fn signing_secrets_schema(schemas: &mut Schemas) -> Value {
    let mut secret = schema::describe(ProcessorSecret::schema(schemas), Some("A signing secret (`whsec_…`)"));
    secret["minLength"] = json!(SIGNING_SECRET_BYTES_MIN);
    json!({"type": "array", "items": secret, "minItems": 1, "maxItems": WEBHOOK_SECRETS_MAX})
}

/// Parses a signing secret. It must be long: whoever guesses it can create commissions.
fn parse_signing_secret(value: &RawValue) -> Result<String, String> {
    let secret = ProcessorSecret::parse(value)?;
    if secret.len() < SIGNING_SECRET_BYTES_MIN {
        return Err(format!(
            "must be secrets of at least {SIGNING_SECRET_BYTES_MIN} characters, as the processor shows them (`whsec_…`)"
        ));
    }
    Ok(secret)
}

/// A secret, key or id: printable ASCII without spaces.
struct ProcessorSecret;

impl RequestValue for ProcessorSecret {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": SECRET_BYTES_MAX, "pattern": "^[!-~]+$"})
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        let text = fields::parse_text(value)?;
        if (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(text.into_owned());
        }
        Err(format!("must be 1 to {SECRET_BYTES_MAX} printable characters without spaces"))
    }
}

/// `PUT …/processor`.
///
/// # Errors
/// The input is invalid; there is no program; the payment processor returned an error.
pub async fn connect(
    state: State,
    owner: Owner,
    request: UpdateRequest<ConnectProcessor>,
) -> Result<VersionedResponse<ProcessorResponse>> {
    let ResolvedRequest { program, input, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    let connected = state.affiliate.onboarding.connect_processor(program.account, if_match.as_ref(), &input.0).await;
    let program = connected.or_problem(&state)?;
    let processor = processor_object(&state, &program).await?;
    let processor = processor.ok_or_else(|| Problem::internal("the connected payment processor is missing"))?;
    Ok(VersionedResponse::new(&ProcessorResponse { processor }).with_etag(program.rev))
}

/// `POST …/processor/test`.
///
/// # Errors
/// There is no program; no processor is connected; the payment processor returned an error.
pub async fn test_processor(
    state: State,
    owner: Owner,
    request: ReadRequest<NoInput>,
) -> Result<TestProcessorResponse> {
    let program = request.require_program(&state, owner.tenant()).await?.program;
    let processor_account = state.affiliate.onboarding.test_processor(program.account).await.or_problem(&state)?;
    let account_id = Some(processor_account.id).filter(|id| !id.is_empty());
    let summary = state.affiliate.events.processor_event_summary(program.account).await.or_problem(&state)?;
    let last_event_at = summary.last_event_at.map(ApiTimestamp);
    Ok(TestProcessorResponse { ok: true, account_id, livemode: processor_account.livemode, last_event_at })
}

/// `POST …/go-live`.
///
/// # Errors
/// There is no program; set-up steps are missing.
pub async fn go_live(
    state: State,
    owner: Owner,
    request: UpdateRequest<NoInput>,
) -> Result<VersionedResponse<ProgramResponse>> {
    let ResolvedRequest { program, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    let result = state.affiliate.onboarding.go_live(program.account, if_match.as_ref()).await;
    program_response(&state, result).await
}

/// `POST …/pause`.
///
/// # Errors
/// There is no program, or it was never live.
pub async fn pause(
    state: State,
    owner: Owner,
    request: UpdateRequest<NoInput>,
) -> Result<VersionedResponse<ProgramResponse>> {
    let ResolvedRequest { program, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    let paused = state.affiliate.onboarding.pause(program.account, if_match.as_ref()).await;
    program_response(&state, paused).await
}
