//! The OAuth authorization server: grants from consent to revocation, and hostile clients.

use std::time::Duration;

use accounts::users::UserService;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use model::oauth::pkce;
use model::user::UserRole;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::world::{BASE_URL, TestResponse, TestSession, World};

const VERIFIER: &str = "a-code-verifier-of-more-than-forty-three-characters";
const REDIRECT_URI: &str = "https://client.example/callback";
const ALL: [&str; 3] = ["read", "send", "manage"];

fn encode(fields: &[(&str, &str)]) -> String {
    let escaped = |text: &str| -> String {
        let escape = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        text.bytes().map(escape).collect()
    };
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// Replaces a field, or removes it with an empty value.
fn with<'a>(fields: &[(&'a str, &'a str)], name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let kept = fields.iter().copied().filter(|(other, _)| *other != name);
    kept.chain((!value.is_empty()).then_some((name, value))).collect()
}

pub(crate) async fn post_form(world: &World, path: &str, fields: &[(&str, &str)]) -> TestResponse {
    let request = Request::post(path)
        .header("host", "test")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Full::from(encode(fields)))
        .unwrap();
    world.send(request).await
}

async fn register(world: &World, metadata: &Value) -> TestResponse {
    world.call_without_key(Method::POST, "/oauth/register", metadata).await
}

/// A program that registered itself, and the user who decides.
pub(crate) struct Program<'w> {
    world: &'w World,
    user: TestSession,
    pub(crate) id: String,
    challenge: String,
}

impl<'w> Program<'w> {
    pub(crate) async fn of_user(world: &'w World, user: TestSession) -> Self {
        let metadata = json!({"client_name": "Editor", "redirect_uris": [REDIRECT_URI, "http://127.0.0.1/cb"]});
        let registered = register(world, &metadata).await;
        assert_eq!(registered.status, StatusCode::CREATED);
        let id = registered.json()["client_id"].as_str().unwrap().to_owned();
        Self { world, user, id, challenge: pkce::challenge_of(VERIFIER) }
    }

    pub(crate) async fn new(world: &'w World) -> Self {
        Self::of_user(world, world.session(1).await).await
    }

    pub(crate) fn request(&self) -> Vec<(&str, &str)> {
        vec![
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", REDIRECT_URI),
            ("scope", "read send manage"),
            ("state", "s t&a=te"),
            ("code_challenge", &self.challenge),
            ("code_challenge_method", "S256"),
            ("resource", BASE_URL),
        ]
    }

    pub(crate) async fn ask(&self, fields: &[(&str, &str)]) -> TestResponse {
        let path = format!("/auth/authorization-request?{}", encode(fields));
        self.world.call_with_session(&self.user, Method::GET, &path, &Value::Null).await
    }

    pub(crate) async fn decide(&self, fields: &[(&str, &str)], decision: &Value) -> TestResponse {
        let path = format!("/auth/authorization-request?{}", encode(fields));
        self.world.call_with_session(&self.user, Method::POST, &path, decision).await
    }

    /// The code of an approved request.
    pub(crate) async fn code(&self, fields: &[(&str, &str)], scopes: &[&str]) -> String {
        let decided = self.decide(fields, &json!({"approve": true, "scopes": scopes})).await;
        assert_eq!(decided.status, StatusCode::OK, "{}", decided.json());
        let target = decided.json()["redirect_to"].as_str().unwrap().to_owned();
        let start = target.find("code=").unwrap() + "code=".len();
        target[start..].split('&').next().unwrap().to_owned()
    }

    fn token_request<'a>(&'a self, code: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("grant_type", "authorization_code"),
            ("client_id", &self.id),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT_URI),
        ]
    }

    pub(crate) async fn exchange(&self, code: &str) -> TestResponse {
        post_form(self.world, "/oauth/token", &self.token_request(code)).await
    }

    async fn refresh(&self, token: &str) -> TestResponse {
        let fields = [("grant_type", "refresh_token"), ("client_id", &self.id), ("refresh_token", token)];
        post_form(self.world, "/oauth/token", &fields).await
    }

    /// Tokens of a new grant with these scopes.
    pub(crate) async fn tokens(&self, scopes: &[&str]) -> Tokens {
        let code = self.code(&self.request(), scopes).await;
        Tokens::read(&self.exchange(&code).await)
    }
}

pub(crate) struct Tokens {
    pub(crate) access: String,
    refresh: String,
    scope: String,
}

impl Tokens {
    pub(crate) fn read(response: &TestResponse) -> Self {
        assert_eq!(response.status, StatusCode::OK, "{}", response.json());
        assert_eq!(response.headers["cache-control"], "no-store");
        let body = response.json();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Self { access: text("access_token"), refresh: text("refresh_token"), scope: text("scope") }
    }
}

fn error(response: &TestResponse) -> String {
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    response.json()["error"].as_str().unwrap_or_default().to_owned()
}

async fn status_with(world: &World, token: &str, path: &str) -> StatusCode {
    world.get_as(token, path).await.status
}

/// Why an access token is refused.
async fn refusal(world: &World, token: &str) -> String {
    let response = world.get_as(token, "/account").await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    let challenge = response.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("resource_metadata=\"https://api.example.test/.well-known/oauth-protected-resource\""));
    response.json()["error"]["details"]["reason"].as_str().unwrap().to_owned()
}

/// A user of the first account with this role.
pub(crate) async fn user_with_role(world: &World, role: UserRole) -> (model::user::User, TestSession) {
    let users = UserService::new(&world.services);
    let owner = users.by_email(&"owner1@example.com".parse().unwrap()).await.unwrap().unwrap();
    let user = users.new_user(owner.account, format!("{}@example.net", role.word()).parse().unwrap(), role);
    let mut batch = Batch::progress();
    store::user::create(&mut batch, &user);
    users.store.commit(batch).await.unwrap();
    let (token, _) = users.sign_in(&user).await.unwrap();
    (user, TestSession { cookie: api::auth::cookie::cookie_pair(&token), csrf: Some(token.csrf()) })
}

#[tokio::test]
async fn metadata_names_what_clients_look_for() {
    let world = World::start().await;
    let server = world.get("/.well-known/oauth-authorization-server").await;
    assert_eq!(server.headers["access-control-allow-origin"], "*");
    let server = server.json();
    assert_eq!(server["issuer"], BASE_URL);
    assert_eq!(server["client_id_metadata_document_supported"], true);
    assert_eq!(server["authorization_response_iss_parameter_supported"], true);
    assert_eq!(server["token_endpoint_auth_methods_supported"], json!(["none"]));
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["scopes_supported"], json!(ALL));
    for (path, resource) in [("", BASE_URL.to_owned()), ("/mcp", format!("{BASE_URL}/mcp"))] {
        let resource_metadata = world.get(&format!("/.well-known/oauth-protected-resource{path}")).await.json();
        assert_eq!(resource_metadata["resource"], resource);
        assert_eq!(resource_metadata["authorization_servers"], json!([BASE_URL]));
    }
    world.end().await;
}

#[tokio::test]
async fn programs_in_browsers_may_call_the_endpoints() {
    let world = World::start().await;
    for path in ["/oauth/token", "/oauth/register", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = world.call_without_key(Method::OPTIONS, path, &Value::Null).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{path}");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
        assert!(!answer.headers.contains_key("access-control-allow-credentials"));
    }
    // Endpoints that need a session are not called from other origins.
    let answer = world.call_without_key(Method::OPTIONS, "/auth/authorization-request", &Value::Null).await;
    assert!(
        answer.status == StatusCode::METHOD_NOT_ALLOWED && !answer.headers.contains_key("access-control-allow-origin")
    );
    world.end().await;
}

#[tokio::test]
async fn a_grant_from_consent_to_revocation() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let asked = program.ask(&program.request()).await.json();
    assert_eq!(
        (asked["client"]["name"].as_str(), asked["client"]["identity"].as_str()),
        (Some("Editor"), Some("registered"))
    );
    assert_eq!(asked["redirect"]["destination"], "client.example");
    assert!(asked["error"].is_null() && asked["scopes"].as_array().unwrap().len() == 3, "{asked}");
    let decided =
        program.decide(&program.request(), &json!({"approve": true, "scopes": ["read", "send"]})).await.json();
    let target = decided["redirect_to"].as_str().unwrap();
    assert!(target.starts_with(&format!("{REDIRECT_URI}?code=rnl_ac_")), "{target}");
    assert!(target.contains("&state=s%20t%26a%3Dte&iss=https%3A%2F%2Fapi.example.test"), "{target}");
    let tokens = program.tokens(&["read", "send"]).await;
    assert_eq!(tokens.scope, "read send");
    assert_eq!(status_with(&world, &tokens.access, "/account").await, StatusCode::OK);
    let listed = world.get("/grants").await.json();
    let grant = &listed["grants"][0];
    assert_eq!(
        (&grant["client_name"], &grant["scopes"], &grant["resources"]),
        (&json!("Editor"), &json!(["read", "send"]), &json!(["api"]))
    );
    assert!(grant["last_used_at"].is_string(), "{grant}");
    let path = format!("/grants/{}", grant["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.status, StatusCode::OK);
    let logged = world.get("/logs").await.json();
    assert!(logged["logs"].as_array().unwrap().iter().any(|log| log["grant_id"] == grant["id"]), "{logged}");
    assert_eq!(world.call(Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(refusal(&world, &tokens.access).await, "revoked");
    assert_eq!(error(&program.refresh(&tokens.refresh).await), "invalid_grant");
    assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn scopes_bound_every_operation() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let call = async |token: &str, method: Method, path: &str| world.call_as(token, method, path, &json!({})).await;
    for (scopes, sends, manages) in
        [(&["read"][..], false, false), (&["read", "send"], true, false), (&ALL, true, true)]
    {
        let token = program.tokens(scopes).await.access;
        assert_eq!(status_with(&world, &token, "/emails").await, StatusCode::OK);
        let sent = call(&token, Method::POST, "/emails").await;
        assert_eq!(sent.status != StatusCode::FORBIDDEN, sends, "{scopes:?}");
        let managed = call(&token, Method::POST, "/templates").await;
        assert_eq!(managed.status != StatusCode::FORBIDDEN, manages, "{scopes:?}");
        if !manages {
            assert_eq!(managed.headers["www-authenticate"], "Bearer error=\"insufficient_scope\", scope=\"manage\"");
        }
        // Secrets, money, the team, other credentials and sessions are in no scope.
        for (method, path) in [
            (Method::POST, "/api-keys"),
            (Method::DELETE, "/api-keys/key_01M8A1X0KA0004M74J9CNAPE42"),
            (Method::DELETE, "/grants/grant_01M8A1X0KA0004M74J9CNAPE42"),
            (Method::POST, "/users"),
            (Method::GET, "/auth/sessions"),
            (Method::POST, "/auth/authorization-request"),
        ] {
            assert_eq!(call(&token, method.clone(), path).await.status, StatusCode::FORBIDDEN, "{method} {path}");
        }
    }
    let send_only = program.tokens(&["send"]).await.access;
    assert_eq!(status_with(&world, &send_only, "/emails").await, StatusCode::FORBIDDEN);
    world.end().await;
}

#[tokio::test]
async fn a_code_works_once_for_its_client_and_verifier() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let code = program.code(&program.request(), &["read"]).await;
    let request = program.token_request(&code);
    let refused = async |name: &'static str, value: &'static str| {
        error(&post_form(&world, "/oauth/token", &with(&request, name, value)).await)
    };
    assert_eq!(refused("code_verifier", "").await, "invalid_request");
    assert_eq!(refused("code_verifier", "another-code-verifier-of-more-than-43-characters").await, "invalid_grant");
    assert_eq!(refused("client_id", "postrider-cli").await, "invalid_grant");
    assert_eq!(refused("redirect_uri", "https://client.example/other").await, "invalid_grant");
    assert_eq!(refused("resource", "https://api.example.test/mcp").await, "invalid_target");
    assert_eq!(refused("resource", "https://other.example").await, "invalid_target");
    assert_eq!(refused("grant_type", "password").await, "unsupported_grant_type");
    let tokens = Tokens::read(&program.exchange(&code).await);
    assert_eq!(status_with(&world, &tokens.access, "/account").await, StatusCode::OK);
    // The second use ends the grant.
    assert_eq!(error(&program.exchange(&code).await), "invalid_grant");
    assert_eq!(refusal(&world, &tokens.access).await, "revoked");
    assert_eq!(error(&program.refresh(&tokens.refresh).await), "invalid_grant");
    let late = program.code(&program.request(), &["read"]).await;
    world.services.clock.advance(Duration::from_secs(61));
    assert_eq!(error(&program.exchange(&late).await), "invalid_grant");
    world.end().await;
}

#[tokio::test]
async fn of_concurrent_uses_of_a_code_at_most_one_has_tokens() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let code = program.code(&program.request(), &["read"]).await;
    let answers = futures_util::future::join_all((0..8).map(|_| program.exchange(&code))).await;
    let granted: Vec<_> = answers.iter().filter(|answer| answer.status == StatusCode::OK).collect();
    assert_eq!(granted.len(), 1);
    assert_eq!(refusal(&world, &Tokens::read(granted[0]).access).await, "revoked");
    world.end().await;
}

#[tokio::test]
async fn a_refresh_token_works_once() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let first = program.tokens(&["read", "send"]).await;
    let second = Tokens::read(&program.refresh(&first.refresh).await);
    assert_ne!(first.refresh, second.refresh);
    let narrowed = [
        ("grant_type", "refresh_token"),
        ("client_id", program.id.as_str()),
        ("refresh_token", second.refresh.as_str()),
        ("scope", "read"),
    ];
    let wider = post_form(&world, "/oauth/token", &with(&narrowed, "scope", "read manage")).await;
    assert_eq!(error(&wider), "invalid_scope");
    let third = Tokens::read(&post_form(&world, "/oauth/token", &narrowed).await);
    assert_eq!(third.scope, "read");
    // The next refresh has the scopes of the grant again.
    let fourth = Tokens::read(&program.refresh(&third.refresh).await);
    assert_eq!(fourth.scope, "read send");
    assert_eq!(status_with(&world, &fourth.access, "/account").await, StatusCode::OK);
    // Somebody else uses a token that was used before: the grant ends.
    assert_eq!(error(&program.refresh(&first.refresh).await), "invalid_grant");
    for token in [&first.access, &fourth.access] {
        assert_eq!(refusal(&world, token).await, "revoked");
    }
    assert_eq!(error(&program.refresh(&fourth.refresh).await), "invalid_grant");
    // A token of another kind is no refresh token, and the reverse.
    let tokens = program.tokens(&["read"]).await;
    assert_eq!(error(&program.refresh(&tokens.access).await), "invalid_grant");
    assert_eq!(refusal(&world, &tokens.refresh).await, "malformed");
    world.services.clock.advance(Duration::from_secs(3_601));
    assert_eq!(refusal(&world, &tokens.access).await, "expired");
    world.end().await;
}

#[tokio::test]
async fn a_token_of_another_resource_is_refused() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let mcp = format!("{BASE_URL}/mcp");
    let code = program.code(&with(&program.request(), "resource", &mcp), &["read"]).await;
    let tokens = Tokens::read(&program.exchange(&code).await);
    assert_eq!(refusal(&world, &tokens.access).await, "wrong_resource");
    // A refresh does not change the resource.
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", program.id.as_str()),
        ("refresh_token", tokens.refresh.as_str()),
        ("resource", BASE_URL),
    ];
    assert_eq!(error(&post_form(&world, "/oauth/token", &fields).await), "invalid_target");
    let code = program.code(&with(&program.request(), "resource", ""), &["read"]).await;
    let tokens = Tokens::read(&program.exchange(&code).await);
    assert_eq!(status_with(&world, &tokens.access, "/account").await, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_wrong_client_or_redirect_uri_leads_nowhere() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let mut requests: Vec<Vec<(&str, &str)>> = vec![];
    for uri in [
        "",
        "https://client.example/callback/",
        "https://client.example/callback?x=1",
        "https://client.example/callback#x",
        "https://client.example.evil.example/callback",
        "https://evil.example/callback",
        "http://client.example/callback",
        "https://client.example/callback%2F",
        "http://127.0.0.1:5000/cb2",
        "http://127.0.0.1.evil.example/cb",
        "http://localhost:5000/cb",
    ] {
        requests.push(with(&program.request(), "redirect_uri", uri));
    }
    for id in ["", "client_01M8A1X0KA0004M74J9CNAPE42", "x", "https://127.0.0.1/x", "javascript://x"] {
        requests.push(with(&program.request(), "client_id", id));
    }
    let twice = [program.request(), vec![("redirect_uri", "https://evil.example/")]].concat();
    requests.push(twice);
    for request in requests {
        for answer in [program.ask(&request).await, program.decide(&request, &json!({"approve": true})).await] {
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{request:?}");
            assert!(!answer.json().to_string().contains("redirect_to") && !answer.headers.contains_key("location"));
        }
    }
    // Only the port of a loopback address may differ.
    let local = with(&program.request(), "redirect_uri", "http://127.0.0.1:50123/cb");
    assert_eq!(program.ask(&local).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_request_without_pkce_s256_gets_no_code() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let request = program.request();
    for (name, value, code) in [
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", VERIFIER, "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("scope", "root", "invalid_scope"),
        ("resource", "https://other.example", "invalid_target"),
    ] {
        let wrong = with(&request, name, value);
        let asked = program.ask(&wrong).await.json();
        assert_eq!(asked["error"]["code"], code, "{name}={value}");
        let back = asked["error"]["return_to"].as_str().unwrap();
        assert!(back.starts_with(&format!("{REDIRECT_URI}?error={code}&")) && back.contains("&iss="), "{back}");
        let decided = program.decide(&wrong, &json!({"approve": true})).await;
        assert_eq!(decided.status, StatusCode::BAD_REQUEST, "{name}={value}");
    }
    let denied = program.decide(&request, &json!({"approve": false})).await.json();
    assert!(denied["redirect_to"].as_str().unwrap().starts_with(&format!("{REDIRECT_URI}?error=access_denied&")));
    world.end().await;
}

#[tokio::test]
async fn consent_needs_the_session_and_its_csrf_token() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let path = format!("/auth/authorization-request?{}", encode(&program.request()));
    let approve = json!({"approve": true});
    let forged = world.call_with_session(&program.user.forged(), Method::POST, &path, &approve).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    assert_eq!(world.call_without_key(Method::POST, &path, &approve).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.call(Method::POST, &path, &approve).await.status, StatusCode::FORBIDDEN);
    for decision in [json!({}), json!({"approve": true, "scopes": []}), json!({"approve": true, "scopes": ["root"]})] {
        assert_eq!(program.decide(&program.request(), &decision).await.status, StatusCode::BAD_REQUEST, "{decision}");
    }
    let read = with(&program.request(), "scope", "read");
    let wider = program.decide(&read, &json!({"approve": true, "scopes": ["read", "send"]})).await;
    assert_eq!(wider.status, StatusCode::BAD_REQUEST);
    // An old session proves the identity again before it allows more than reading.
    world.services.clock.advance(Duration::from_secs(16 * 60));
    let old = program.decide(&program.request(), &approve).await;
    assert_eq!((old.status, old.code().as_str()), (StatusCode::FORBIDDEN, "reauthentication_required"));
    assert_eq!(program.decide(&read, &approve).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn grants_end_with_the_user_and_the_role() {
    let world = World::start().await;
    let users = UserService::new(&world.services);
    let (viewer, session) = user_with_role(&world, UserRole::Viewer).await;
    let reader = Program::of_user(&world, session).await;
    let refused = reader.decide(&reader.request(), &json!({"approve": true, "scopes": ["send"]})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let asked = reader.ask(&reader.request()).await.json();
    let permitted: Vec<_> =
        asked["scopes"].as_array().unwrap().iter().map(|scope| scope["permitted"].clone()).collect();
    assert_eq!(permitted, [true, false, false]);
    let read = reader.tokens(&["read"]).await;
    assert_eq!(status_with(&world, &read.access, "/emails").await, StatusCode::OK);
    let (developer, session) = user_with_role(&world, UserRole::Developer).await;
    let writer = Program::of_user(&world, session).await;
    let (written, pending) = (writer.tokens(&ALL).await, writer.code(&writer.request(), &ALL).await);
    users.change_role(developer.account, developer.id, UserRole::Viewer, UserRole::Owner).await.unwrap();
    assert_eq!(refusal(&world, &written.access).await, "revoked");
    assert_eq!(error(&writer.refresh(&written.refresh).await), "invalid_grant");
    assert_eq!(error(&writer.exchange(&pending).await), "invalid_grant");
    // A higher role does not bring them back.
    users.change_role(developer.account, developer.id, UserRole::Developer, UserRole::Owner).await.unwrap();
    assert_eq!(refusal(&world, &written.access).await, "revoked");
    users.remove_user(viewer.account, viewer.id, UserRole::Owner).await.unwrap();
    assert_eq!(refusal(&world, &read.access).await, "revoked");
    assert_eq!(error(&reader.refresh(&read.refresh).await), "invalid_grant");
    assert_eq!(world.get("/grants").await.json()["grants"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_grant_is_unknown_to_other_accounts_and_revoked_by_its_user() {
    let world = World::start().await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let (_, session) = user_with_role(&world, UserRole::Viewer).await;
    let program = Program::of_user(&world, session).await;
    let tokens = program.tokens(&["read"]).await;
    let id = world.get("/grants").await.json()["grants"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get_as(&other, "/grants").await.json()["grants"], json!([]));
    for (method, path) in [(Method::GET, "grants"), (Method::DELETE, "grants")] {
        let answer = world.call_as(&other, method, &format!("/{path}/{id}"), &Value::Null).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    let own = format!("/auth/grants/{id}");
    let owner = world.session(1).await;
    // The owner did not give it; as an owner, `DELETE /grants/{id}` is the way.
    let answer = world.call_with_session(&owner, Method::DELETE, &own, &Value::Null).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let refused =
        world.call_with_session(&program.user, Method::DELETE, &format!("/api/grants/{id}"), &Value::Null).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(world.call_with_session(&program.user, Method::DELETE, &own, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(refusal(&world, &tokens.access).await, "revoked");
    world.end().await;
}

#[tokio::test]
async fn tokens_are_revoked_by_their_client() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    let tokens = program.tokens(&["read"]).await;
    let revoke = async |token: &str, client: &str| {
        post_form(&world, "/oauth/revoke", &[("token", token), ("client_id", client)]).await.status
    };
    // Another client's id changes nothing, and an unknown token is no error (RFC 7009 2.2).
    for (token, client) in [(&tokens.refresh, "postrider-cli"), (&"x".to_owned(), program.id.as_str())] {
        assert_eq!(revoke(token, client).await, StatusCode::OK);
    }
    assert_eq!(status_with(&world, &tokens.access, "/account").await, StatusCode::OK);
    assert_eq!(revoke(&tokens.access, &program.id).await, StatusCode::OK);
    assert_eq!(refusal(&world, &tokens.access).await, "unknown");
    let fresh = Tokens::read(&program.refresh(&tokens.refresh).await);
    assert_eq!(revoke(&fresh.refresh, &program.id).await, StatusCode::OK);
    assert_eq!(refusal(&world, &fresh.access).await, "revoked");
    world.end().await;
}

#[tokio::test]
async fn registrations_are_checked_limited_and_forgotten() {
    let world = World::start().await;
    for (metadata, code) in [
        (json!([]), "invalid_client_metadata"),
        (json!({"client_name": "x"}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["http://client.example/cb"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["https://client.example/cb#x"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": [REDIRECT_URI], "grant_types": ["password"]}), "invalid_client_metadata"),
        (json!({"redirect_uris": [REDIRECT_URI], "response_types": ["token"]}), "invalid_client_metadata"),
    ] {
        assert_eq!(error(&register(&world, &metadata).await), code, "{metadata}");
    }
    let hostile = "\u{202e}<script>\r\n\u{0}".repeat(50);
    let named = register(&world, &json!({"client_name": hostile, "redirect_uris": [REDIRECT_URI]})).await.json();
    let name = named["client_name"].as_str().unwrap();
    assert!(name.chars().count() <= 80 && !name.chars().any(char::is_control), "{name:?}");
    // Whatever it asks for, a client has no secret.
    let asked = json!({"redirect_uris": [REDIRECT_URI], "token_endpoint_auth_method": "client_secret_basic"});
    let public = register(&world, &asked).await.json();
    assert_eq!(public["token_endpoint_auth_method"], "none");
    assert!(public.get("client_secret").is_none());
    let mut limited = None;
    for _ in 0..40 {
        let answer = register(&world, &json!({"redirect_uris": [REDIRECT_URI]})).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            limited = Some(answer);
            break;
        }
    }
    assert_eq!(limited.unwrap().code(), "rate_limit_exceeded");
    // A client without a grant is unknown after a day; one with a grant is not.
    world.services.clock.advance(Duration::from_secs(3_600));
    let (used, unused) = (Program::new(&world).await, Program::new(&world).await);
    used.tokens(&["read"]).await;
    world.services.clock.advance(Duration::from_secs(24 * 3_600));
    assert_eq!(unused.ask(&unused.request()).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(used.ask(&used.request()).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_device_waits_for_the_decision() {
    let world = World::start().await;
    let user = world.session(1).await;
    let begin = async || {
        let fields = [("client_id", "postrider-cli"), ("scope", "read send"), ("resource", BASE_URL)];
        post_form(&world, "/oauth/device", &fields).await.json()
    };
    let poll = async |device: &Value| {
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("client_id", "postrider-cli"),
            ("device_code", device["device_code"].as_str().unwrap()),
        ];
        post_form(&world, "/oauth/token", &fields).await
    };
    let path = |device: &Value| format!("/auth/device-requests/{}", device["user_code"].as_str().unwrap());
    let decide = async |device: &Value, decision: Value| {
        world.call_with_session(&user, Method::POST, &path(device), &decision).await
    };
    let device = begin().await;
    assert_eq!(device["verification_uri"], format!("{BASE_URL}/dashboard/device"));
    assert_eq!(error(&poll(&device).await), "authorization_pending");
    assert_eq!(error(&poll(&device).await), "slow_down");
    let lower = device["user_code"].as_str().unwrap().to_lowercase().replace('-', "");
    let shown =
        world.call_with_session(&user, Method::GET, &format!("/auth/device-requests/{lower}"), &Value::Null).await;
    assert_eq!(shown.json()["client"]["identity"], "built_in");
    assert_eq!(decide(&device, json!({"approve": true, "scopes": ["read"]})).await.status, StatusCode::OK);
    // It is decided: the code does not work again.
    assert_eq!(decide(&device, json!({"approve": false})).await.status, StatusCode::NOT_FOUND);
    let tokens = Tokens::read(&poll(&device).await);
    assert_eq!(tokens.scope, "read");
    assert_eq!(status_with(&world, &tokens.access, "/account").await, StatusCode::OK);
    assert_eq!(error(&poll(&device).await), "invalid_grant");
    let denied = begin().await;
    assert_eq!(decide(&denied, json!({"approve": false})).await.status, StatusCode::OK);
    assert_eq!(error(&poll(&denied).await), "access_denied");
    let late = begin().await;
    world.services.clock.advance(Duration::from_secs(601));
    assert_eq!(error(&poll(&late).await), "expired_token");
    assert_eq!(decide(&late, json!({"approve": true})).await.status, StatusCode::NOT_FOUND);
    // A client that did not register the grant type, and one that does not exist.
    let program = Program::new(&world).await;
    let other = post_form(&world, "/oauth/device", &[("client_id", &program.id)]).await;
    assert_eq!(error(&other), "unauthorized_client");
    assert_eq!(error(&post_form(&world, "/oauth/device", &[("client_id", "x")]).await), "invalid_client");
    world.end().await;
}

#[tokio::test]
async fn guesses_of_user_codes_are_limited() {
    let world = World::start().await;
    let user = world.session(1).await;
    let mut statuses = Vec::new();
    for n in 0..40 {
        let letters = "BCDFGHJKLMNPQRSTVWXZ".as_bytes();
        let code: String = (0..8).map(|place| char::from(letters[(n + place) % letters.len()])).collect();
        let path = format!("/auth/device-requests/{code}");
        statuses.push(world.call_with_session(&user, Method::GET, &path, &Value::Null).await.status);
    }
    assert_eq!(statuses[0], StatusCode::NOT_FOUND);
    assert_eq!(statuses[39], StatusCode::TOO_MANY_REQUESTS);
    world.end().await;
}
