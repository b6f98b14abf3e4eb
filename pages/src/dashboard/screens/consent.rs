//! Consent: a program asks for access to the account, and the user allows or denies it (OAuth 2.1).
//!
//! The request is the query of the page's URL. Its name and redirect URI are texts of a stranger. The answer to a form
//! leads to the program's redirect URI, so the content security policy of this page names its origin as a target of
//! forms. A wrong request is shown, and leads nowhere by itself.

use super::client_policy::{self, Policy};
use crate::dashboard::form::read_fields;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/authorize" => show, reads ["get_authorization_request"], forms {
        "allow" => decide(true), calls "decide_authorization_request";
        "deny" => decide(false), calls "decide_authorization_request";
    };
};

#[derive(Debug, Deserialize)]
struct AuthorizationRequest {
    client: ConsentClient,
    redirect: Redirect,
    scopes: Vec<ConsentScope>,
    resources: Vec<String>,
    policy: Option<Policy>,
    error: Option<AuthorizationError>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ConsentClient {
    id: String,
    name: String,
    host: Option<String>,
    identity: String,
}

#[derive(Debug, Deserialize)]
struct Redirect {
    uri: String,
    destination: String,
    is_local: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ConsentScope {
    scope: String,
    pub(super) permitted: bool,
}

#[derive(Debug, Deserialize)]
struct AuthorizationError {
    code: String,
    description: String,
    return_to: String,
}

/// The scopes with what they allow.
pub(super) fn scope_text(scope: &str) -> &'static str {
    match scope {
        "read" => "Read emails, recipients, domains, metrics and everything else except secrets",
        "send" => "Send emails from your domains",
        "manage" => "Create, change and delete templates, domains, webhooks, automations and other objects",
        _ => "Unknown",
    }
}

/// The form that allows the request. The user may take scopes away, and set rules for what the program sends or
/// changes;
/// scopes that the role does not allow are not offered.
pub(super) fn allow_form(scopes: &[ConsentScope], policy: Option<&Policy>) -> Form<'static> {
    let permitted: Vec<&ConsentScope> = scopes.iter().filter(|scope| scope.permitted).collect();
    let choices = permitted.iter().map(|scope| (scope.scope.clone(), scope_text(&scope.scope).to_owned())).collect();
    let chosen: Vec<&str> = permitted.iter().map(|scope| scope.scope.as_str()).collect();
    let only_reads = chosen.iter().all(|scope| *scope == "read");
    let mut fields = vec![Field::new("scopes", "The app can", Control::Checkboxes(choices)).value(chosen.join("\n"))];
    if !only_reads {
        fields.extend(client_policy::fields(true, policy));
    }
    Form::new("allow", "Allow", fields)
}

pub(super) fn deny_form() -> Form<'static> {
    Form::new("deny", "Deny", Vec::new()).secondary()
}

/// The decision of a form, as the operations take it. A form without rules keeps those of the last time.
///
/// # Errors
/// The form has a number that is none.
pub(super) fn decision(context: &Context<'_>, approve: bool) -> Result<Value, Failure> {
    if !approve {
        return Ok(json!({"approve": false}));
    }
    let form = context.form();
    let rules = client_policy::fields(true, None);
    let has_rules = rules.iter().any(|field| form.find(&field.name).is_some());
    let mut body = if has_rules { read_fields(&rules, form)? } else { json!({}) };
    body["approve"] = true.into();
    body["scopes"] = form.all("scopes").collect();
    Ok(body)
}

/// The client, with how far it is known.
pub(super) fn client_facts(client: &ConsentClient, account: &str) -> Facts {
    let known = match (client.identity.as_str(), &client.host) {
        ("built_in", _) => "It is part of postrider.".to_owned(),
        ("document", Some(host)) => format!("Published by the owner of {host}. The name is not verified."),
        _ => "Anyone can register an app with any name: allow it only if you started this yourself.".to_owned(),
    };
    Facts::new()
        .row("App", maud! { strong { (client.name) } })
        .optional("Published at", client.host.as_ref().map(|host| maud! { code { (host) } }))
        .row("Client id", maud! { code { (client.id) } })
        .row("Known as", known)
        .row("Account", maud! { (account) })
}

/// A sentence about scopes that the role does not allow.
pub(super) fn missing_scopes(scopes: &[ConsentScope]) -> Option<String> {
    let missing: Vec<&str> = scopes.iter().filter(|scope| !scope.permitted).map(|scope| scope.scope.as_str()).collect();
    (!missing.is_empty()).then(|| format!("Your role does not allow you to grant: {}.", missing.join(", ")))
}

/// The request in the query, for an operation. A field that occurs twice stays twice: the operation refuses it.
fn call(context: &Context<'_>, operation: &'static str) -> Call {
    let own = ["done"];
    let fields = context.query().iter().filter(|(name, _)| !own.contains(name));
    fields.fold(Call::new(operation), |call, (name, value)| call.query(name, value))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    if context.query().iter().next().is_none() {
        let body = maud! { p { "Apps that ask for access open this page. No app is asking." } };
        return Ok(Page::new("No app is asking for access", body).into());
    }
    let request: AuthorizationRequest = context.read(&call(context, "get_authorization_request")).await?;
    if let Some(error) = &request.error {
        return Ok(refused_page(&request, error).into());
    }
    let account = context.viewer.map_or("", |viewer| viewer.email.as_str());
    let (allow, deny) = (allow_form(&request.scopes, request.policy.as_ref()), deny_form());
    let can_allow = request.scopes.iter().any(|scope| scope.permitted);
    let missing = missing_scopes(&request.scopes);
    let destination = match request.redirect.is_local {
        true => format!("an app on this computer ({})", request.redirect.destination),
        false => request.redirect.destination.clone(),
    };
    let facts = client_facts(&request.client, account)
        .row("For", resources_text(&request.resources))
        .row("Returns to", maud! { strong { (destination) } })
        .optional("Policy", kept_policy(request.policy.as_ref()));
    let body = maud! {
        section.card {
            (facts)
            @if let Some(text) = &missing { (Notice { tone: Tone::Warning, text }) }
            @if can_allow { (allow.within(context)) }
            (deny.within(context))
            p.soft { "Secrets, money and the team stay off limits. You can revoke access under \"Connected apps\"." }
        }
    };
    let page = Page::new("Allow access to your account?", body);
    Ok(page.form_target(form_target(&request.redirect.uri)).into())
}

/// The rules of the client's latest grant of this user, which a new one gets unless the form changes them.
pub(super) fn kept_policy(policy: Option<&Policy>) -> Option<String> {
    policy.map(|policy| format!("{}. These are the rules from last time.", policy.summary()))
}

fn resources_text(resources: &[String]) -> &'static str {
    match resources {
        [one] if one == "mcp" => "The MCP server",
        [one] if one == "api" => "The API",
        _ => "The API and the MCP server",
    }
}

fn refused_page(request: &AuthorizationRequest, error: &AuthorizationError) -> Page {
    let body = maud! {
        section.card {
            p { "The request from " strong { (request.client.name) } " is not valid: \
                " (error.description.replace('`', "")) }
            p { "Code " code { (error.code) } }
            p { a.button href=(error.return_to) rel="noreferrer" { "Go back to " (request.redirect.destination) } }
        }
    };
    Page::new("This request is not valid", body)
}

/// The source expression of a redirect URI (CSP 3, 2.3.1): its origin; for an address in brackets, which the grammar
/// does not have, and for a scheme of a program, the scheme.
fn form_target(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once(':') else { return String::new() };
    let authority = rest.strip_prefix("//").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    match (scheme, authority) {
        ("https" | "http", Some(authority)) if !authority.starts_with('[') => format!("{scheme}://{authority}"),
        _ => format!("{scheme}:"),
    }
}

async fn decide(context: &Context<'_>, approve: bool) -> Result<Outcome, Failure> {
    let call = call(context, "decide_authorization_request").json(decision(context, approve)?);
    Ok(Outcome::Leave(context.read_field("redirect_to", &call).await?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::dashboard::answer::PageContent;
    use crate::dashboard::backend::CallBody;
    use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless};

    const TARGET: &str = "/authorize?response_type=code&client_id=client_1&state=a%26b";

    fn request(error: Value) -> Value {
        json!({
            "client": {"id": "client_1", "name": HOSTILE, "host": null, "identity": "registered"},
            "redirect": {"uri": "https://client.example/cb", "destination": "client.example", "is_local": false},
            "scopes": [{"scope": "read", "permitted": true}, {"scope": "send", "permitted": false}],
            "resources": ["mcp"],
            "policy": {"recipients": ["*@example.com"], "approve": ["send"]},
            "error": error,
        })
    }

    #[test]
    fn the_request_is_shown_as_text_of_a_stranger() {
        let backend = FakeBackend::new().answer("get_authorization_request", request(Value::Null));
        let answer = backend.get(TARGET);
        let PageContent::FormTarget { html, origin } = answer.content else { panic!("{answer:?}") };
        assert_harmless(&html);
        assert_eq!(origin, "https://client.example");
        assert!(html.contains("client.example") && html.contains("ada@example.com"), "{html}");
        assert!(html.contains("sends only to *@example.com; asks for approval to send. These are the rules"), "{html}");
        assert!(html.contains("does not allow you to grant: send") && !html.contains("value=\"send\""), "{html}");
        let calls = backend.calls("get_authorization_request");
        assert!(calls[0].query.contains(&("state".to_owned(), "a&b".to_owned())), "{calls:?}");
    }

    #[test]
    fn a_decision_leads_to_the_program() {
        let backend = FakeBackend::new()
            .answer("get_authorization_request", request(Value::Null))
            .answer("decide_authorization_request", json!({"redirect_to": "https://client.example/cb?code=x"}));
        for (form, body) in
            [("allow", json!({"approve": true, "scopes": ["read"]})), ("deny", json!({"approve": false}))]
        {
            let answer = backend.post(TARGET, form, &[("scopes", "read")]);
            assert_eq!(answer.status, 303);
            let PageContent::Leave(url) = answer.content else { panic!("{answer:?}") };
            assert_eq!(url, "https://client.example/cb?code=x");
            let calls = backend.calls("decide_authorization_request");
            assert_eq!(calls.last().unwrap().body, CallBody::Json(body));
        }
    }

    #[test]
    fn the_form_sets_the_rules_of_a_program_that_sends() {
        let mut asked = request(Value::Null);
        asked["scopes"][1]["permitted"] = true.into();
        let backend = FakeBackend::new()
            .answer("get_authorization_request", asked)
            .answer("decide_authorization_request", json!({"redirect_to": "https://client.example/cb?code=x"}));
        let PageContent::FormTarget { html, .. } = backend.get(TARGET).content else { panic!("no page") };
        assert!(html.contains("name=\"policy.recipients\"") && html.contains("*@example.com</textarea>"), "{html}");
        let fields = [
            ("scopes", "send"),
            ("policy.recipients", "grace@example.net"),
            ("policy.from", ""),
            ("policy.sends_per_day", "50"),
            ("policy.approve", "delete"),
        ];
        assert_eq!(backend.post(TARGET, "allow", &fields).status, 303);
        let policy = json!({
            "recipients": ["grace@example.net"], "from": null, "sends_per_day": 50, "categories": [], "approve": ["delete"],
        });
        let body = json!({"approve": true, "scopes": ["send"], "policy": policy});
        assert_eq!(backend.calls("decide_authorization_request")[0].body, CallBody::Json(body));
    }

    #[test]
    fn a_wrong_request_leads_nowhere_by_itself() {
        let error =
            json!({"code": "invalid_scope", "description": HOSTILE, "return_to": "https://client.example/cb?error=x"});
        let backend = FakeBackend::new().answer("get_authorization_request", request(error));
        let html = crate::dashboard::fake_backend::html(backend.get(TARGET));
        assert_harmless(&html);
        assert!(
            html.contains("href=\"https://client.example/cb?error=x\"")
                && !html.contains("name=\"form\" value=\"allow\"")
        );
        let unknown = FakeBackend::new().refuse("get_authorization_request", Failure::field("client_id", "unknown"));
        assert_eq!(unknown.get(TARGET).status, 400);
    }

    #[test]
    fn targets_of_forms_are_source_expressions() {
        for (uri, target) in [
            ("https://a.example:8443/cb?x=1", "https://a.example:8443"),
            ("http://127.0.0.1:5000/cb", "http://127.0.0.1:5000"),
            ("http://[::1]:5000/cb", "http:"),
            ("cursor://x/cb", "cursor:"),
            ("com.example.app:/cb", "com.example.app:"),
        ] {
            assert_eq!(form_target(uri), target, "{uri}");
        }
    }
}
