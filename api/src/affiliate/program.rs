//! `/dashboard/api/affiliate-program`: set-up and state of the program, for its owner.

use std::sync::Arc;

use ::affiliate::api_objects::{ApiTimestamp, ProcessorObject, ProgramObject};
use ::affiliate::error::AffiliateError;
use ::affiliate::onboarding::ProcessorConnection;
use ::affiliate::stripe_client::API_BASE;
use mail::affiliate::money::Currency;
use mail::affiliate::program::{AffiliateProgram, ProcessorMode};
use serde_json::json;
use serde_json::value::RawValue;

use super::fields::{BodyFieldReader, parse_currency, parse_word};
use super::program_fields::{currency_schema, page_url_schema, parse_page_url};
use super::refusal::refusal_problem;
use super::request::{ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::VersionedResponse;
use super::settings::UpdateProgramSettings;
use super::view::{CreatedResponse, ProcessorResponse, ProgramDetailResponse, ProgramResponse, TestProcessorResponse};
use crate::fields::{self, FieldNames};
use crate::handler::Owner;
use crate::problem::{ErrorCode, Problem};
use crate::request::{FromRequest, NoInput, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas};
use crate::state::AppState;

/// Maximum length of a secret or key of the payment processor.
const SECRET_BYTES_MAX: usize = 500;
/// Minimum length of a signing secret. Stripe's secrets have 38 or 70 characters; a test double may use shorter ones.
const SIGNING_SECRET_BYTES_MIN: usize = 8;

async fn program_response(
    state: &AppState,
    changed: Result<AffiliateProgram, AffiliateError>,
) -> Result<VersionedResponse<ProgramResponse>, Problem> {
    let program = changed.map_err(|refusal| refusal_problem(state, refusal))?;
    Ok(VersionedResponse::new(&ProgramResponse { program: program_object(state, &program).await? })
        .with_etag(program.rev))
}

async fn program_object(state: &AppState, program: &AffiliateProgram) -> Result<ProgramObject, Problem> {
    let portal_fault = state.affiliate.portal_host_error(program).await?;
    Ok(ProgramObject::of(program, portal_fault, state.affiliate.mail_fault(program).await?))
}

/// Body of `POST …`.
#[derive(Debug)]
pub struct EnableProgram {
    website_url: String,
    currency: Currency,
    mode: ProcessorMode,
}

impl FromRequest for EnableProgram {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("EnableAffiliateProgram", |_| {
            let fields = [
                ("website_url", page_url_schema("The website that partner links lead to")),
                ("currency", currency_schema("The currency of flat amounts, bounties and caps")),
                (
                    "mode",
                    schema::string_enum(
                        ProcessorMode::WORDS,
                        "Whether live or test payments count; defaults to `live`",
                    ),
                ),
            ];
            schema::object_with("A new affiliate program", &["website_url", "currency"], fields)
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("website_url", "currency", "mode");
        let mut reader = BodyFieldReader::from_body(call, &NAMES)?;
        reader.require("website_url");
        reader.require("currency");
        let website_url = reader.read_optional("website_url", parse_page_url);
        let currency = reader.read_optional("currency", parse_currency);
        let mode =
            reader.read_optional("mode", |value| parse_word(ProcessorMode::WORDS, ProcessorMode::from_word, value));
        reader.finish()?;
        match (website_url, currency) {
            (Some(website_url), Some(currency)) => {
                Ok(Self { website_url, currency, mode: mode.unwrap_or(ProcessorMode::Live) })
            }
            _ => Err(Problem::field("website_url", "is required")),
        }
    }
}

/// `POST /dashboard/api/affiliate-program`.
///
/// # Errors
/// The input is invalid; the plan includes no affiliate program; a program exists already.
pub async fn enable(
    state: Arc<AppState>,
    owner: Owner,
    input: EnableProgram,
) -> Result<VersionedResponse<CreatedResponse<ProgramResponse>>, Problem> {
    let EnableProgram { website_url, currency, mode } = input;
    let account = owner.tenant().account().id;
    if !state.intake.plans().of(owner.tenant().account().plan).affiliates {
        let text = "Your plan does not include an affiliate program; upgrade your plan";
        return Err(Problem::new(ErrorCode::PLAN_FULL, text)
            .with_upgrade_url(state.upgrade_url())
            .with_details(json!({"limit": "affiliates", "used": 0, "cap": 0})));
    }
    let made = state.affiliate.enable_program(account, website_url, currency, mode).await;
    let program = made.map_err(|refusal| refusal_problem(&state, refusal))?;
    Ok(VersionedResponse::new(&ProgramResponse { program: program_object(&state, &program).await? })
        .with_etag(program.rev))
}

/// `GET /dashboard/api/affiliate-program`.
///
/// # Errors
/// There is no program; the store cannot be read.
pub async fn get(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<NoInput>,
) -> Result<VersionedResponse<ProgramDetailResponse>, Problem> {
    let program = request.require_program(&state, owner.tenant()).await?.program;
    let detail = ProgramDetailResponse {
        program: program_object(&state, &program).await?,
        processor: processor_object(&state, &program).await?,
        missing: program.missing_steps(),
    };
    Ok(VersionedResponse::new(&detail).with_etag(program.rev))
}

async fn processor_object(state: &AppState, program: &AffiliateProgram) -> Result<Option<ProcessorObject>, Problem> {
    let summary = state
        .affiliate
        .processor_event_summary(program.account)
        .await
        .map_err(|refusal| refusal_problem(state, refusal))?;
    Ok(ProcessorObject::of(program, summary, &state.options.base_url))
}

/// `PATCH /dashboard/api/affiliate-program`.
///
/// # Errors
/// The input is invalid, there is no program, it was changed concurrently, or currency and mode can no longer change.
pub async fn update(
    state: Arc<AppState>,
    owner: Owner,
    request: UpdateRequest<UpdateProgramSettings>,
) -> Result<VersionedResponse<ProgramResponse>, Problem> {
    let ResolvedRequest { program, input, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    if let Some(Some(sender)) = input.mail_from() {
        let checked = state.affiliate.check_sender(program.account, sender).await;
        checked.map_err(|refusal| refusal_problem(&state, refusal))?;
    }
    let change = |settings: &mut _| {
        input.apply(settings);
        Ok(())
    };
    let set = state.affiliate.update_settings(program.account, if_match.as_ref(), &change).await;
    program_response(&state, set).await
}

/// Body of `PUT …/processor`. It holds secrets, so it does not implement `Debug`.
pub struct ConnectProcessor(ProcessorConnection);

impl FromRequest for ConnectProcessor {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let secret = |description: &str, at_least: usize| {
            json!({
                "type": "string", "minLength": at_least, "maxLength": SECRET_BYTES_MAX, "pattern": "^[!-~]+$",
                "description": description,
            })
        };
        let body = schemas.component("ConnectAffiliateProcessor", |_| {
            let mut secrets = schema::list(
                secret("A signing secret (`whsec_…`)", SIGNING_SECRET_BYTES_MIN),
                "The signing secret of the webhook; two during a rotation",
            );
            (secrets["minItems"], secrets["maxItems"]) = (json!(1), json!(2));
            let mut api_base = page_url_schema("The base URL of the payment processor's API; defaults to Stripe's");
            api_base["examples"] = json!([API_BASE]);
            let mut key = secret("A restricted API key; without one only events are received", 1);
            schema::allow_null(&mut key);
            let mut account = secret("The payment processor's account id; needed only without a key", 1);
            schema::allow_null(&mut account);
            let fields = [
                ("webhook_secrets", secrets),
                ("api_base", api_base),
                ("restricted_key", key),
                ("account_id", account),
            ];
            let mut schema =
                schema::object_with("The connection to the payment processor", &["webhook_secrets"], fields);
            schema["examples"] = json!([{"webhook_secrets": ["whsec_0123456789abcdef"]}]);
            schema
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("webhook_secrets", "api_base", "restricted_key", "account_id");
        let mut reader = BodyFieldReader::from_body(call, &NAMES)?;
        reader.require("webhook_secrets");
        let secrets = reader.read_optional("webhook_secrets", |value| {
            let entries = fields::parse_list(value, 2).map_err(|_| "must be a list of one or two secrets")?;
            if entries.is_empty() {
                return Err("must be a list of one or two secrets".to_owned());
            }
            entries.into_iter().map(parse_signing_secret).collect::<Result<Vec<_>, _>>()
        });
        let api_base = reader.read_optional("api_base", parse_page_url);
        let restricted_key = reader.read_optional("restricted_key", parse_secret);
        let account_id = reader.read_optional("account_id", parse_secret);
        reader.finish()?;
        Ok(Self(ProcessorConnection {
            webhook_secrets: secrets.unwrap_or_default(),
            api_base: api_base.unwrap_or_else(|| API_BASE.to_owned()),
            restricted_key,
            account_id,
        }))
    }
}

/// Parses a signing secret. It must be long: whoever guesses it can create commissions.
fn parse_signing_secret(value: &RawValue) -> Result<String, String> {
    let secret = parse_secret(value)?;
    if secret.len() < SIGNING_SECRET_BYTES_MIN {
        return Err(format!(
            "must be secrets of at least {SIGNING_SECRET_BYTES_MIN} characters, as the processor shows them (`whsec_…`)"
        ));
    }
    Ok(secret)
}

/// Parses a secret, key or id: printable ASCII without spaces.
fn parse_secret(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    if (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.into_owned());
    }
    Err(format!("must be 1 to {SECRET_BYTES_MAX} printable characters without spaces"))
}

/// `PUT …/processor`.
///
/// # Errors
/// The input is invalid; there is no program; the payment processor returned an error.
pub async fn connect(
    state: Arc<AppState>,
    owner: Owner,
    request: UpdateRequest<ConnectProcessor>,
) -> Result<VersionedResponse<ProcessorResponse>, Problem> {
    let ResolvedRequest { program, input, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    let connected = state.affiliate.connect_processor(program.account, if_match.as_ref(), &input.0).await;
    let program = connected.map_err(|refusal| refusal_problem(&state, refusal))?;
    let processor = processor_object(&state, &program).await?;
    let processor = processor.ok_or_else(|| Problem::internal("the connected payment processor is missing"))?;
    Ok(VersionedResponse::new(&ProcessorResponse { processor }).with_etag(program.rev))
}

/// `POST …/processor/test`.
///
/// # Errors
/// There is no program; no processor is connected; the payment processor returned an error.
pub async fn test_processor(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<NoInput>,
) -> Result<TestProcessorResponse, Problem> {
    let program = request.require_program(&state, owner.tenant()).await?.program;
    let processor_account = state.affiliate.test_processor(program.account).await;
    let processor_account = processor_account.map_err(|refusal| refusal_problem(&state, refusal))?;
    let account_id = Some(processor_account.id).filter(|id| !id.is_empty());
    let summary = state
        .affiliate
        .processor_event_summary(program.account)
        .await
        .map_err(|refusal| refusal_problem(&state, refusal))?;
    let last_event_at = summary.last_event_at.map(ApiTimestamp);
    Ok(TestProcessorResponse { ok: true, account_id, livemode: processor_account.livemode, last_event_at })
}

/// `POST …/go-live`.
///
/// # Errors
/// There is no program; set-up steps are missing.
pub async fn go_live(
    state: Arc<AppState>,
    owner: Owner,
    request: UpdateRequest<NoInput>,
) -> Result<VersionedResponse<ProgramResponse>, Problem> {
    let ResolvedRequest { program, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    let result = state.affiliate.go_live(program.account, if_match.as_ref()).await;
    program_response(&state, result).await
}

/// `POST …/pause`.
///
/// # Errors
/// There is no program, or it was never live.
pub async fn pause(
    state: Arc<AppState>,
    owner: Owner,
    request: UpdateRequest<NoInput>,
) -> Result<VersionedResponse<ProgramResponse>, Problem> {
    let ResolvedRequest { program, if_match, .. } = request.require_program(&state, owner.tenant()).await?;
    let paused = state.affiliate.pause(program.account, if_match.as_ref()).await;
    program_response(&state, paused).await
}
