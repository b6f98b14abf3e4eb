//! Connected apps: what users allowed programs to do (OAuth grants), and the end of it.

use std::collections::HashMap;

use super::client_policy::{self, Policy};
use super::consent::scope_text;
use crate::dashboard::context::raw;
use crate::dashboard::page::render;
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/connected-apps";
const TITLE: &str = "Connected apps";

pub const PAGES: &[PageRow] = page_rows! {
    "/connected-apps" => list, reads ["list_grants", "list_users"];
    "/connected-apps/{id}" => detail, reads ["get_grant", "list_users"], forms {
        "policy" => set_policy, calls "update_grant";
        "revoke" => revoke, calls "revoke_grant";
        "revoke-own" => revoke_own, calls "revoke_own_grant";
    };
};

#[derive(Debug, Deserialize)]
struct Grant {
    id: String,
    client_id: String,
    client_name: String,
    user_id: String,
    scopes: Vec<String>,
    policy: Option<Policy>,
    resources: Vec<String>,
    last_used_at: Option<String>,
    last_used_ip: Option<String>,
    expires_at: String,
    created_at: String,
}

/// The addresses of the account's users by id.
async fn emails_by_user(context: &Context<'_>) -> Result<HashMap<String, String>, Failure> {
    Ok(context.read_names("users", &Call::new("list_users")).await?.into_iter().collect())
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_grants").query("cursor", context.query().get("cursor"));
    let found: &List<Grant> = &context.read_list("grants", &call).await?;
    let users = emails_by_user(context).await?;
    let table = Table::of(TITLE, &found.entries)
        .column("App", |grant| link(format!("{PATH}/{}", encode(&grant.id)), &grant.client_name))
        .column("May", |grant| grant.scopes.join(", "))
        .column("Allowed by", |grant| users.get(&grant.user_id).map_or(grant.user_id.as_str(), String::as_str))
        .column("Last used", |grant| time_or_dash(grant.last_used_at.as_deref()))
        .column("Since", |grant| time_or_dash(Some(&grant.created_at)));
    let empty = EmptyState {
        title: "No apps have access",
        text: "Apps such as AI assistants and editors ask for access here, as does \"postrider login\" on the command \
            line.",
        action: None,
    };
    let body = found.view(context, &table, empty);
    Ok(Page::new(TITLE, body).same_as(call).into())
}

fn policy_form<'a>(policy: Option<&Policy>) -> Form<'a> {
    Form::new("policy", "Save", client_policy::fields(true, policy))
}

async fn set_policy(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = policy_form(None).read(context.form())?;
    let call = Call::new("update_grant").id(context.id()).json(body);
    context.act(&call, format!("{PATH}/{}", encode(context.id())), "changed").await
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_grant").id(context.id());
    let grant: Grant = context.read_field("grant", &call).await?;
    let users = emails_by_user(context).await?;
    let is_own = context.viewer.is_some_and(|viewer| viewer.user_id == grant.user_id);
    let own = Form::new("revoke-own", "End the access", Vec::new()).danger();
    let any = Form::new("revoke", "End the access", Vec::new()).danger();
    let rules = policy_form(grant.policy.as_ref());
    let scopes = render(maud! { ul { @for scope in &grant.scopes { li { (scope_text(scope)) } } } });
    let facts = Facts::new()
        .row("May", raw(&scopes))
        .optional("Policy", grant.policy.as_ref().map(Policy::summary))
        .row("Uses", grant.resources.join(", "))
        .row("Allowed by", users.get(&grant.user_id).map_or(grant.user_id.as_str(), String::as_str))
        .row("Client id", maud! { code { (grant.client_id) } })
        .row("Since", time_or_dash(Some(&grant.created_at)))
        .row("Last used", time_or_dash(grant.last_used_at.as_deref()))
        .optional("From", grant.last_used_ip.as_deref())
        .row("Expires unless used", time_or_dash(Some(&grant.expires_at)));
    let body = maud! {
        section.card { (facts) }
        @if context.allows("update_grant") {
            section.card {
                h2 { "Policy" }
                p.soft { "These rules further restrict what was allowed. If the same user allows the app again, the \
                    form starts with them." }
                (rules.within(context))
            }
        }
        @if is_own || context.allows("revoke_grant") {
            section.card {
                h2 { "End the access" }
                p { "The app loses access at once. It can ask again." }
                @if is_own { (own.within(context)) } @else { (any.within(context)) }
            }
        }
    };
    Ok(Page::new(grant.client_name, body).below(PATH, TITLE).same_as(call).into())
}

async fn revoke(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("revoke_grant").id(context.id()), PATH, "access_ended").await
}

async fn revoke_own(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("revoke_own_grant").id(context.id()), PATH, "access_ended").await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::dashboard::backend::{CallBody, Failure};
    use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

    fn grant(user: &str) -> Value {
        json!({
            "id": "grant_1", "client_id": HOSTILE, "client_name": HOSTILE, "user_id": user, "scopes": ["read", "send"],
            "resources": ["mcp"], "last_used_at": null, "last_used_ip": null, "expires_at": "2026-12-26T00:00:00Z",
            "created_at": "2026-11-26T00:00:00Z",
        })
    }

    fn backend(user: &str) -> FakeBackend {
        FakeBackend::new()
            .answer("list_grants", json!({"grants": [grant(user)], "next_cursor": null}))
            .answer("get_grant", json!({"grant": grant(user)}))
            .answer("list_users", json!({"users": [{"id": "usr_1", "email": "ada@example.com"}]}))
            .answer("revoke_grant", json!({"ok": true}))
            .answer("revoke_own_grant", json!({"ok": true}))
            .answer("update_grant", json!({"grant": grant(user)}))
    }

    #[test]
    fn the_policy_is_set_and_a_wrong_rule_is_refused_beside_its_field() {
        let backend = backend("usr_1");
        let saved = backend.post("/connected-apps/grant_1", "policy", &[("policy.recipients", "*@example.com")]);
        assert_eq!(location(saved), "/dashboard/connected-apps/grant_1?done=changed");
        let calls = backend.calls("update_grant");
        let CallBody::Json(body) = &calls[0].body else { panic!("no body") };
        assert_eq!(body["policy"]["recipients"], json!(["*@example.com"]));
        let refused = Failure::field("policy.recipients", "is no pattern");
        let backend = backend.refuse("update_grant", refused);
        let page = html(backend.post("/connected-apps/grant_1", "policy", &[("policy.recipients", "*")]));
        let (before, after) = page.split_once("is no pattern").expect("the error is shown");
        assert!(before.contains("May send only to") && after.contains("May send only from"), "beside the field");
        let viewer = html(backend.forbid("update_grant").get("/connected-apps/grant_1"));
        assert!(!viewer.contains("May send only to"), "{viewer}");
    }

    #[test]
    fn grants_are_listed_with_their_user() {
        let page = html(backend("usr_1").get("/connected-apps"));
        assert_harmless(&page);
        assert!(page.contains("ada@example.com") && page.contains("read, send"), "{page}");
        let empty = backend("usr_1").answer("list_grants", json!({"grants": [], "next_cursor": null}));
        assert!(html(empty.get("/connected-apps")).contains("No apps have access"));
    }

    #[test]
    fn a_user_ends_an_own_grant_and_a_developer_any() {
        let own = backend("usr_1").forbid("revoke_grant");
        let page = html(own.get("/connected-apps/grant_1"));
        assert_harmless(&page);
        assert!(page.contains("value=\"revoke-own\""), "{page}");
        let ended = own.post("/connected-apps/grant_1", "revoke-own", &[]);
        assert_eq!(location(ended), "/dashboard/connected-apps?done=access_ended");
        let other = html(backend("usr_2").get("/connected-apps/grant_1"));
        assert!(other.contains("value=\"revoke\"") && !other.contains("value=\"revoke-own\""), "{other}");
        let viewer = html(backend("usr_2").forbid("revoke_grant").get("/connected-apps/grant_1"));
        assert!(!viewer.contains("End the access</button>"), "{viewer}");
    }
}
