//! What a template comes to: shown (`preview`), or sent to be looked at (`test-send`).
//!
//! A preview renders what it can, leaves the tags of missing variables to be seen, and says all that it
//! knows; a test is sent as any email is, and refused as any email is.

use std::sync::Arc;

use mail::address::Mailbox;
use mail::compose::Composition;
use mail::draft::{Content, Draft, Envelope, Wishes};
use mail::email::{Category, Door};
use mail::idempotency::Operation;
use mail::template::render::VARIABLES_BYTES_MAX;
use mail::template::{Program, Rendered, TemplateKey, UNSUBSCRIBE_URL};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::access::Tenant;

use super::{OfTemplate, find, find_whole, unrendered};
use crate::call::{Call, Input, Media, Takes};
use crate::emails::recipients::{Recipients, author, recipients};
use crate::emails::send::Sent;
use crate::emails::send_once;
use crate::emails::template::{variables, variables_schema, version};
use crate::fields::{self, Given, Kind, Names, Notes};
use crate::idempotency::Once;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// Gmail shows so much of a message's HTML and cuts the rest off.
const GMAIL_BYTES_MAX: usize = 102 << 10;
/// Variables, and some addresses.
const REQUEST_BYTES_MAX: usize = 2 * VARIABLES_BYTES_MAX + (256 << 10);

/// What is to be rendered: the draft, or a version; and with what.
#[derive(Debug)]
struct Rendering {
    variables: Value,
    version: Option<u32>,
}

impl Rendering {
    fn read(given: &Given<'_>, notes: &mut Notes) -> Self {
        let version = given.value("version").map_or(Ok(None), |value| {
            let is_draft =
                Kind::of(value) == Kind::Text && fields::text(value).is_ok_and(|word| word == "draft");
            if is_draft { Ok(None) } else { version(value).map(Some) }
        });
        let version =
            version.map_err(|_| notes.errors.add("version", "must be \"draft\" or a version's number"));
        let variables = given.value("variables").and_then(|value| variables(value, "variables", notes));
        Self { variables: Value::Object(variables.unwrap_or_default()), version: version.unwrap_or_default() }
    }

    /// Reads the markup and works with it, in a thread that may take its time.
    async fn work<T: Send + 'static>(
        self,
        room: &Room,
        tenant: &Tenant,
        key: &TemplateKey,
        work: impl FnOnce(&Program, &Value) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (settings, bodies) = match self.version {
            None => {
                let (template, bodies) = find_whole(room, tenant, key).await?;
                (template.draft, bodies)
            }
            Some(number) => {
                let template = find(room, tenant, key).await?;
                let (store, account) = (room.hall.store(), template.account);
                let found = store::template::version(store, account, template.id, number).await?;
                let (version, bodies) = found.ok_or_else(|| Problem::not_found("version"))?;
                (version.settings, bodies)
            }
        };
        let done = tokio::task::spawn_blocking(move || {
            // It was read before it was stored.
            let program = Program::compile(&settings, &bodies).map_err(|errors| {
                let first = errors.first().map(|(part, error)| format!("{part}: {error}"));
                Problem::internal(format!("a stored template cannot be read: {}", first.unwrap_or_default()))
            })?;
            Ok(work(&program, &self.variables))
        });
        done.await.map_err(Problem::internal)?
    }
}

fn rendering_schema() -> [(&'static str, Value); 2] {
    let version = json!({
        "description": "Which; the draft if nothing is said",
        "oneOf": [{"const": "draft"}, {"type": "integer", "minimum": 1}],
    });
    [("variables", variables_schema()), ("version", version)]
}

/// A preview that is asked for.
#[derive(Debug)]
pub struct PreviewTemplate(Rendering, Vec<String>);

impl Input for (OfTemplate, PreviewTemplate) {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object_with("What is to be shown", &[], rendering_schema());
        let parameters = vec![OfTemplate::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[("variables", "variables"), ("version", "version")],
            foreign: &[("TestRenderModel", "variables")],
        };
        let mut notes = Notes::default();
        let given = Given::sort(fields::body_or_nothing(&call.body)?, &NAMES, "", &mut notes);
        let rendering = Rendering::read(&given, &mut notes);
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok((OfTemplate::of(call), PreviewTemplate(rendering, notes.warnings)))
    }
}

/// What a template comes to.
#[derive(Debug, Serialize)]
pub struct Preview {
    subject: Option<String>,
    html: Option<String>,
    text: Option<String>,
    missing_variables: Vec<String>,
    unused_variables: Vec<String>,
    #[serde(serialize_with = "mail::number::serialize")]
    suggested_variables: Value,
    warnings: Vec<String>,
    size_bytes: usize,
}

impl Preview {
    fn of(program: &Program, variables: &Value) -> Self {
        let (rendered, error) = program.preview(variables);
        let declared = &program.settings().variables;
        let given = variables.as_object().into_iter().flat_map(Map::keys);
        let known = declared.iter().map(|variable| &variable.key);
        let mut unused_variables: Vec<String> = Vec::new();
        for name in given.chain(known) {
            if !program.usage().uses(name) && !unused_variables.contains(name) {
                unused_variables.push(name.clone());
            }
        }
        let mut warnings: Vec<String> =
            error.invalid.iter().map(|(name, message)| format!("`{name}` {message}")).collect();
        warnings.extend(advice(program, &rendered));
        let Rendered { subject, html, text } = rendered;
        let size_bytes = [&html, &text].into_iter().flatten().map(String::len).sum();
        Self {
            subject,
            html,
            text,
            missing_variables: error.missing,
            unused_variables,
            suggested_variables: Value::Object(program.usage().suggest(declared)),
            warnings,
            size_bytes,
        }
    }
}

/// What those who know mail would say.
fn advice(program: &Program, rendered: &Rendered) -> Vec<String> {
    let mut advice = Vec::new();
    let settings = program.settings();
    let html_bytes = rendered.html.as_ref().map_or(0, String::len);
    if html_bytes > GMAIL_BYTES_MAX {
        advice.push(format!("The HTML has {html_bytes} bytes: Gmail cuts a message off after 102 KB"));
    }
    if rendered.subject.as_ref().is_none_or(String::is_empty) {
        advice.push("There is no subject: every send must give one".to_owned());
    }
    if rendered.html.is_none() && rendered.text.is_none() {
        advice.push("There is neither html nor text: it cannot be published".to_owned());
    } else if rendered.text.is_none() {
        advice.push("There is no text: some mail programs and filters look for one".to_owned());
    }
    match (settings.unsubscribes(), program.has_unsubscribe_url()) {
        (true, false) => advice.push(format!(
            "Managed unsubscribe is on, and no `{{{{{UNSUBSCRIBE_URL}}}}}` is in it: only the header offers it"
        )),
        (false, true) if settings.category == Category::Transactional => advice.push(format!(
            "`{{{{{UNSUBSCRIBE_URL}}}}}` is filled in only when managed unsubscribe is on: set `unsubscribe_enabled`"
        )),
        _ => {}
    }
    advice
}

/// `POST /templates/{id_or_alias}/preview`.
///
/// # Errors
/// No such template or version.
pub async fn preview(
    room: Arc<Room>,
    tenant: Tenant,
    (OfTemplate(key), PreviewTemplate(rendering, mut warnings)): (OfTemplate, PreviewTemplate),
) -> Result<Preview, Problem> {
    let mut preview = rendering.work(&room, &tenant, &key, Preview::of).await?;
    warnings.append(&mut preview.warnings);
    Ok(Preview { warnings, ..preview })
}

/// A test that is to be sent.
#[derive(Debug)]
pub struct TestTemplate {
    rendering: Rendering,
    people: Recipients,
    from: Option<Mailbox>,
    warnings: Vec<String>,
}

impl Input for (OfTemplate, TestTemplate) {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let to = json!({
            "description": "To whom: an address or a list",
            "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        });
        let [variables, version] = rendering_schema();
        let from = ("from", schema::string("The author; the template's if none is given"));
        let body = schema::object_with("A test", &["to"], [("to", to), from, variables, version]);
        let parameters = vec![OfTemplate::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[("to", "to"), ("from", "from"), ("variables", "variables"), ("version", "version")],
            foreign: &[("To", "to"), ("From", "from")],
        };
        let mut notes = Notes::default();
        let given = Given::sort(fields::body(&call.body)?, &NAMES, "", &mut notes);
        let rendering = Rendering::read(&given, &mut notes);
        let people = recipients(&given, &mut notes);
        let from = given.value("from").and_then(|_| author(&given, &mut notes));
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let warnings = notes.warnings;
        Ok((OfTemplate::of(call), TestTemplate { rendering, people, from, warnings }))
    }
}

/// `POST /templates/{id_or_alias}/test-send`.
///
/// # Errors
/// No such template or version; it cannot be rendered with these variables; what the hall refuses.
pub async fn test_send(
    room: Arc<Room>,
    tenant: Tenant,
    (OfTemplate(key), test): (OfTemplate, TestTemplate),
) -> Result<Once<Sent>, Problem> {
    let draft = drafted(&room, &tenant, (key, test));
    // It takes no key.
    send_once(&room, &tenant, (Operation::Send, None), draft).await
}

async fn drafted(
    room: &Room,
    tenant: &Tenant,
    (key, test): (TemplateKey, TestTemplate),
) -> Result<(Draft, Vec<String>), Problem> {
    let TestTemplate { rendering, people, from, warnings } = test;
    let work = |program: &Program, variables: &Value| {
        program.render(variables).map(|rendered| (rendered, program.settings().clone()))
    };
    let outcome = rendering.work(room, tenant, &key, work).await?;
    let (rendered, settings) = outcome.map_err(|error| unrendered(&error))?;
    let needed = |name: &str| Problem::field(name, "is needed: the template has none");
    let from = from.or(settings.from).ok_or_else(|| needed("from"))?;
    let subject = rendered.subject.filter(|subject| !subject.is_empty()).ok_or_else(|| needed("subject"))?;
    if rendered.html.is_none() && rendered.text.is_none() {
        return Err(needed("html"));
    }
    let parts = Composition {
        from: from.clone(),
        to: people.to,
        cc: people.cc,
        bcc: people.bcc,
        reply_to: settings.reply_to.clone(),
        subject,
        html: rendered.html,
        text: rendered.text,
        headers: Vec::new(),
        attachments: Vec::new(),
    };
    let unsubscribe = settings.unsubscribe_enabled.then_some(true);
    let draft = Draft {
        door: Door::Api,
        from: Some(from),
        envelope: Envelope::default(),
        recipients: people.envelope,
        content: Content::Parts(Box::new(parts)),
        tags: Vec::new(),
        category: settings.category,
        wishes: Wishes { unsubscribe, ..Wishes::default() },
    };
    Ok((draft, warnings))
}

impl Describe for Preview {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("TemplatePreview", |_| {
            let names = |description: &str| schema::list(json!({"type": "string"}), description);
            schema::object(
                "What a template comes to",
                [
                    ("subject", schema::nullable_string("The subject")),
                    ("html", schema::nullable_string("The HTML body; tags of missing variables stay")),
                    ("text", schema::nullable_string("The plain-text body")),
                    ("missing_variables", names("Variables without which nothing is sent")),
                    (
                        "unused_variables",
                        names("Variables, given or declared, that the template does not use"),
                    ),
                    (
                        "suggested_variables",
                        json!({"type": "object", "description": "Variables that would do"}),
                    ),
                    ("warnings", names("What ought to be looked at")),
                    ("size_bytes", schema::count("Bytes of both bodies")),
                ],
            )
        })
    }
}
