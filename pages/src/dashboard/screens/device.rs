//! The page where a user enters the code that a device shows (RFC 8628), and decides about its request.

use super::client_policy::Policy;
use super::consent::{
    ConsentClient, ConsentScope, allow_form, client_facts, decision, deny_form, kept_policy, missing_scopes,
};
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/device";

pub const PAGES: &[PageRow] = page_rows! {
    "/device" => show, reads ["get_device_request"], forms {
        "code" => enter, calls "get_device_request";
        "allow" => decide(true), calls "decide_device_request";
        "deny" => decide(false), calls "decide_device_request";
    };
};

#[derive(Debug, Deserialize)]
struct DeviceRequest {
    user_code: String,
    client: ConsentClient,
    scopes: Vec<ConsentScope>,
    policy: Option<Policy>,
}

fn code_form() -> Form<'static> {
    let code = Field::text("code", "Code shown on the device").required().placeholder("BCDF-GHJK");
    Form::new("code", "Continue", vec![code])
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let code = context.query().get("code");
    // A refused code is not looked up again: that would count as another wrong one.
    if code.is_empty() || context.failure_of("code").is_some() {
        return Ok(code_page(context).into());
    }
    let request: DeviceRequest = match context.read(&Call::new("get_device_request").parameter("code", code)).await {
        Ok(request) => request,
        Err(failure) if failure.status == 404 => {
            let body = maud! {
                (Notice { tone: Tone::Bad, text: &failure.message })
                p { a.button href=(PATH) { "Enter a different code" } }
            };
            return Ok(Page::new("This code is invalid", body).into());
        }
        Err(failure) => return Err(failure),
    };
    let account = context.viewer.map_or("", |viewer| viewer.email.as_str());
    let (allow, deny) = (allow_form(&request.scopes, request.policy.as_ref()), deny_form());
    let can_allow = request.scopes.iter().any(|scope| scope.permitted);
    let missing = missing_scopes(&request.scopes);
    let facts = client_facts(&request.client, account)
        .row("Code", maud! { strong { (request.user_code) } })
        .optional("Policy", kept_policy(request.policy.as_ref()));
    let body = maud! {
        section.card {
            (Notice { tone: Tone::Warning, text: "Allow this only if your own device is showing this code now. \
                Support staff will never ask you to enter a code." })
            (facts)
            @if let Some(text) = &missing { (Notice { tone: Tone::Warning, text }) }
            @if can_allow { (allow.within(context)) }
            (deny.within(context))
        }
    };
    Ok(Page::new("Allow a device to access your account?", body).into())
}

fn code_page(context: &Context<'_>) -> Page {
    let form = code_form();
    let done = match context.query().get("device") {
        "allowed" => Some("The device now has access. You can close this page."),
        "denied" => Some("Access denied."),
        _ => None,
    };
    let body = maud! {
        @if let Some(text) = done { (Notice { tone: Tone::Good, text }) }
        section.card { (form.within(context)) }
    };
    Page::new("Connect a device", body)
}

async fn enter(context: &Context<'_>) -> Result<Outcome, Failure> {
    let code = context.form().get("code").trim();
    let call = Call::new("get_device_request").parameter("code", code);
    context.perform(&call).await.map_err(|failure| match failure.status {
        404 => Failure::field("code", failure.message),
        _ => failure,
    })?;
    Ok(Outcome::SeeOther(format!("{PATH}?code={}", encode(code))))
}

async fn decide(context: &Context<'_>, approve: bool) -> Result<Outcome, Failure> {
    let call = Call::new("decide_device_request").parameter("code", context.query().get("code"));
    context.perform(&call.json(decision(context, approve)?)).await?;
    Ok(Outcome::SeeOther(format!("{PATH}?device={}", if approve { "allowed" } else { "denied" })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dashboard::backend::CallBody;
    use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

    fn backend() -> FakeBackend {
        FakeBackend::new()
            .answer(
                "get_device_request",
                json!({
                    "user_code": "BCDF-GHJK",
                    "client": {"id": "postrider-cli", "name": HOSTILE, "host": null, "identity": "built_in"},
                    "scopes": [{"scope": "read", "permitted": true}],
                }),
            )
            .answer("decide_device_request", json!({"ok": true}))
    }

    #[test]
    fn a_code_leads_to_the_decision() {
        let backend = backend();
        assert!(html(backend.get("/device")).contains("Code shown on the device"));
        assert_eq!(
            location(backend.post("/device", "code", &[("code", " bcdf-ghjk ")])),
            "/dashboard/device?code=bcdf-ghjk"
        );
        let page = html(backend.get("/device?code=bcdf-ghjk"));
        assert_harmless(&page);
        assert!(page.contains("BCDF-GHJK") && page.contains("value=\"read\""), "{page}");
        let decided = backend.post("/device?code=bcdf-ghjk", "allow", &[("scopes", "read")]);
        assert_eq!(location(decided), "/dashboard/device?device=allowed");
        let body = CallBody::Json(json!({"approve": true, "scopes": ["read"]}));
        assert_eq!(backend.calls("decide_device_request")[0].body, body);
        assert!(html(backend.get("/device?device=allowed")).contains("now has access"));
    }

    #[test]
    fn a_wrong_code_is_refused_at_its_field() {
        let wrong = Failure {
            status: 404,
            code: "not_found".into(),
            message: "The code is wrong".into(),
            ..Failure::default()
        };
        let backend = FakeBackend::new().refuse("get_device_request", wrong);
        assert!(html(backend.post("/device", "code", &[("code", "x")])).contains("The code is wrong"));
        assert_eq!(backend.calls("get_device_request").len(), 1);
        assert!(html(backend.get("/device?code=x")).contains("Enter a different code"));
    }
}
