//! `/portal/…`: signing in to the partner portal.

use affiliate::service::AffiliateService;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::affiliate_program::{PROGRAM, owner, set_up};
use crate::affiliates::partner;
use crate::world::{BASE_URL, TestResponse, TestSession, World};

/// A partner's browser.
pub(crate) struct Browser<'a> {
    pub(crate) world: &'a World,
    pub(crate) cookie: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// Encodes form fields.
fn encoded(fields: &[(&str, &str)]) -> String {
    let text = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join("&")
}

impl<'a> Browser<'a> {
    /// A browser without a session.
    pub(crate) fn new(world: &'a World) -> Self {
        Self { world, cookie: String::new(), headers: Vec::new() }
    }

    /// A browser with a partner's session.
    pub(crate) async fn of(world: &'a World, partner: &Value) -> Self {
        let url = login_link(world, partner).await;
        let mut browser = Self::new(world);
        let entered = browser.get(&url).await;
        assert_eq!(entered.status, StatusCode::FOUND, "{entered:?}");
        browser.take_cookie(&entered.headers);
        browser
    }

    pub(crate) fn take_cookie(&mut self, headers: &HeaderMap) {
        let set = headers["set-cookie"].to_str().unwrap();
        set.split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    async fn send(&self, method: Method, path: &str, body: String) -> TestResponse {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("cookie", format!("theme=dark; {}", self.cookie))
            .header("content-type", "application/x-www-form-urlencoded");
        if !self.headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "api.example.test");
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.world.send(request.body(Full::new(body.into())).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path.strip_prefix(BASE_URL).unwrap_or(path), String::new()).await
    }

    pub(crate) async fn head(&self, path: &str) -> TestResponse {
        self.send(Method::HEAD, path.strip_prefix(BASE_URL).unwrap_or(path), String::new()).await
    }

    /// Posts fields without a CSRF token.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> TestResponse {
        let path = path.strip_prefix(BASE_URL).unwrap_or(path);
        self.send(Method::POST, path, encoded(fields)).await
    }

    /// Submits a form of a page with the page's CSRF token.
    pub(crate) async fn submit(&self, form: &str, fields: &[(&str, &str)]) -> TestResponse {
        let csrf = self.csrf().await;
        let fields: Vec<_> = fields.iter().copied().chain([("csrf", csrf.as_str())]).collect();
        self.post(&format!("/portal/{form}"), &fields).await
    }

    /// The CSRF token of the pages.
    pub(crate) async fn csrf(&self) -> String {
        let page = text(&self.get("/portal/home").await);
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

pub(crate) fn text(response: &TestResponse) -> String {
    String::from_utf8(response.body.to_vec()).unwrap()
}

pub(crate) async fn login_link(world: &World, partner: &Value) -> String {
    let path = format!("/affiliates/{}/login-link", partner["id"].as_str().unwrap());
    let made = world.call(Method::POST, &path, &json!({})).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    made.json()["url"].as_str().unwrap().to_owned()
}

pub(crate) fn affiliate_service(world: &World) -> AffiliateService {
    world.affiliate.clone()
}

pub(crate) async fn update_program(world: &World, session: &TestSession, settings: Value) {
    let set = owner(world, session, Method::PATCH, "", settings).await;
    assert_eq!(set.status, StatusCode::OK, "{PROGRAM}: {set:?}");
}

#[tokio::test]
async fn login_link_works_once_within_a_minute() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "first_name": "Ada"})).await;
    let path = format!("/affiliates/{}/login-link", ada["id"].as_str().unwrap());
    let made = world.call(Method::POST, &path, &json!({})).await.json();
    assert_eq!(made["object"], "affiliate_login_link");
    let url = made["url"].as_str().unwrap();
    let token = url.strip_prefix(&format!("{BASE_URL}/portal/enter/")).unwrap();
    assert_eq!(token.len(), 43);
    let remaining = made["expires_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let remaining = remaining.duration_since(world.services.clock.now()).as_secs();
    assert!((55..=60).contains(&remaining), "{remaining}");

    let browser = Browser::new(&world);
    // A prefetch does not use up the link.
    assert_eq!(browser.head(url).await.status, StatusCode::NO_CONTENT);
    for (name, value) in [("sec-purpose", "prefetch;prerender"), ("purpose", "prefetch"), ("x-moz", "prefetch")] {
        let ahead = Browser { headers: vec![(name, value.to_owned())], ..Browser::new(&world) };
        let prefetched = ahead.get(url).await;
        assert_eq!(prefetched.status, StatusCode::NO_CONTENT);
        assert!(!prefetched.headers.contains_key("set-cookie"));
    }
    let entered = browser.get(url).await;
    assert_eq!((entered.status, &entered.headers["location"]), (StatusCode::FOUND, &"/portal/home".parse().unwrap()));
    assert_eq!(entered.headers["referrer-policy"], "no-referrer");
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-postrider_portal="), "{cookie}");
    assert!(cookie.ends_with("; Max-Age=43200; Path=/; HttpOnly; Secure; SameSite=Lax"), "{cookie}");
    for _ in 0..2 {
        let again = browser.get(url).await;
        assert_eq!(again.status, StatusCode::GONE);
        assert!(!again.headers.contains_key("set-cookie") && text(&again).contains("This link has expired"));
        assert_eq!(again.headers["referrer-policy"], "same-origin");
        assert_eq!(browser.head(url).await.status, StatusCode::GONE);
    }
    // A new link replaces the previous one, and each expires after a minute.
    let (first, second) = (login_link(&world, &ada).await, login_link(&world, &ada).await);
    assert_eq!(browser.get(&first).await.status, StatusCode::GONE);
    world.services.clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(browser.get(&second).await.status, StatusCode::GONE);
    for nonsense in ["x", &"A".repeat(43), "..", "%00"] {
        let response = browser.get(&format!("/portal/enter/{nonsense}")).await;
        assert_eq!(response.status, StatusCode::GONE, "{nonsense}");
    }
    world.end().await;
}

#[tokio::test]
async fn concurrent_uses_of_a_link_sign_in_once() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let url = login_link(&world, &ada).await;
    let browsers: Vec<_> = (0..20).map(|_| Browser::new(&world)).collect();
    let responses = futures_util::future::join_all(browsers.iter().map(|browser| browser.get(&url))).await;
    let mut statuses: Vec<u16> = responses.iter().map(|response| response.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses[0], 302);
    assert!(statuses[1..].iter().all(|status| *status == 410), "{statuses:?}");
    world.end().await;
}

#[tokio::test]
async fn login_links_are_for_a_programs_own_partners() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "status": "pending", "token": "ada"})).await;
    let path = format!("/affiliates/{}/login-link", ada["id"].as_str().unwrap());
    let other = world.account(2, model::credential::ApiKeyScope::Full).await;
    set_up(&world, 2).await;
    assert_eq!(world.call_as(&other, Method::POST, &path, &json!({})).await.status, StatusCode::NOT_FOUND);
    let nobody = world.call(Method::POST, "/affiliates/aff_x/login-link", &json!({})).await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    // A rejected partner has no access: no new link, no earlier link, no session.
    let (url, browser) = (login_link(&world, &ada).await, Browser::of(&world, &ada).await);
    let pending = text(&browser.get("/portal/home").await);
    assert!(pending.contains("Your application is under review"), "{pending}");
    let url = if browser.get(&url).await.status == StatusCode::GONE { login_link(&world, &ada).await } else { url };
    world.call(Method::POST, &path.replace("login-link", "reject"), &json!({})).await;
    let refused = world.call(Method::POST, &path, &json!({})).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
    assert_eq!(browser.get(&url).await.status, StatusCode::GONE);
    let out = browser.get("/portal/home").await;
    assert_eq!(out.status, StatusCode::UNAUTHORIZED);
    assert!(text(&out).contains("sign-in?key=pk_"), "{}", text(&out));
    world.end().await;
}

#[tokio::test]
async fn session_ends_by_expiry_sign_out_and_deletion() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let (first, other) = (Browser::of(&world, &ada).await, Browser::of(&world, &ada).await);
    let signed_out = first.submit("sign-out", &[]).await;
    assert_eq!(signed_out.status, StatusCode::SEE_OTHER);
    assert!(signed_out.headers["location"].to_str().unwrap().starts_with("sign-in?key=pk_"));
    assert!(signed_out.headers["set-cookie"].to_str().unwrap().contains("; Max-Age=0;"));
    assert_eq!(first.get("/portal/links").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(other.get("/portal/links").await.status, StatusCode::OK);
    world.services.clock.advance(std::time::Duration::from_secs(12 * 3600));
    assert_eq!(other.get("/portal/links").await.status, StatusCode::UNAUTHORIZED);
    let last = Browser::of(&world, &ada).await;
    world.call(Method::DELETE, &format!("/affiliates/{}", ada["id"].as_str().unwrap()), &json!({})).await;
    assert_eq!(last.get("/portal/home").await.status, StatusCode::UNAUTHORIZED);
    world.end().await;
}

#[tokio::test]
async fn invalid_cookies_are_refused() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let browser = Browser::of(&world, &ada).await;
    let right = browser.cookie.clone();
    let (name, value) = right.split_once('=').unwrap();
    let long = "A".repeat(4000);
    let flipped = format!("{}{}", &value[..value.len() - 2], if value.ends_with("AA") { "BB" } else { "AA" });
    for invalid in [
        String::new(),
        format!("{name}="),
        format!("{name}={long}"),
        format!("{name}={flipped}"),
        format!("{name}={}", &value[1..]),
        format!("postrider_portal={value}"),
        format!("{name}x={value}"),
        format!("{name}=\"><script>"),
        world.session(1).await.cookie,
        format!("{name}={}", world.session(1).await.cookie.split_once('=').unwrap().1),
    ] {
        let hostile = Browser { cookie: invalid.clone(), ..Browser::new(&world) };
        for page in ["home", "links", "referrals", "earnings", "payouts", "settings"] {
            let response = hostile.get(&format!("/portal/{page}")).await;
            assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{invalid}");
            assert!(!text(&response).contains("<script"), "{invalid}");
        }
        assert_eq!(hostile.post("/portal/add-link", &[("token", "x1")]).await.status, StatusCode::UNAUTHORIZED);
    }
    // A partner's cookie does not authenticate an owner.
    let as_owner = TestSession { cookie: right.replace("postrider_portal", "postrider_session"), csrf: None };
    let response = owner(&world, &as_owner, Method::GET, "", json!({})).await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    world.end().await;
}

#[tokio::test]
async fn forms_without_a_csrf_token_are_refused() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let bob = partner(&world, json!({"email": "bob@example.org"})).await;
    let (browser, bobs) = (Browser::of(&world, &ada).await, Browser::of(&world, &bob).await);
    let foreign_csrf = bobs.csrf().await;
    assert_ne!(foreign_csrf, browser.csrf().await);
    for form in api::portal::request::FORMS.iter().filter(|form| !["sign-in", "join"].contains(form)) {
        for csrf in ["", "x", foreign_csrf.as_str()] {
            let path = format!("/portal/{form}");
            let forged = browser.post(&path, &[("token", "new-one"), ("csrf", csrf)]).await;
            assert_eq!(forged.status, StatusCode::FORBIDDEN, "{form} {csrf}");
        }
        let csrf = browser.csrf().await;
        let foreign = Browser {
            headers: vec![("sec-fetch-site", "cross-site".to_owned())],
            cookie: browser.cookie.clone(),
            ..Browser::new(&world)
        };
        let fields = [("token", "new-one"), ("csrf", csrf.as_str())];
        assert_eq!(foreign.post(&format!("/portal/{form}"), &fields).await.status, StatusCode::FORBIDDEN);
    }
    let view = world.get(&format!("/affiliates/{}", ada["id"].as_str().unwrap())).await.json();
    assert_eq!(view["affiliate"]["links"].as_array().unwrap().len(), 1);
    assert_eq!(browser.get("/portal/home").await.status, StatusCode::OK, "the session was not ended");
    for (path, status) in [("/portal/nothing", 404), ("/portal/payouts/pay_x", 404)] {
        assert_eq!(browser.get(path).await.status.as_u16(), status);
    }
    assert_eq!(browser.post("/portal/nothing", &[]).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

/// A program's own host serves only that program's portal.
#[tokio::test]
async fn a_program_may_have_a_host_of_its_own() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    world.create_domain(1, "shop.example").await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    update_program(&world, &session, json!({"portal_domain": "partners.shop.example"})).await;
    let url = login_link(&world, &ada).await;
    let path = url.strip_prefix("https://partners.shop.example").unwrap();
    let at = |host: &str| vec![("host", host.to_owned())];
    let mut own = Browser { headers: at("partners.shop.example:443"), ..Browser::new(&world) };
    let entered = own.get(path).await;
    assert_eq!(entered.status, StatusCode::FOUND);
    own.take_cookie(&entered.headers);
    assert_eq!(own.get("/portal/home").await.status, StatusCode::OK);
    // Without a key the host selects the program.
    let page = text(&own.get("/portal/sign-in").await);
    assert!(page.contains("Partner portal of shop.example"), "{page}");
    assert_eq!(Browser::new(&world).get("/portal/sign-in").await.status, StatusCode::NOT_FOUND);
    // Another account's program cannot use the host, and its partners cannot sign in there.
    let key = world.account(2, model::credential::ApiKeyScope::Full).await;
    let other = set_up(&world, 2).await;
    let duplicate = owner(&world, &other, Method::PATCH, "", json!({"portal_domain": "Partners.Shop.example"})).await;
    assert_eq!(duplicate.status, StatusCode::BAD_REQUEST);
    assert!(duplicate.json()["error"]["details"]["fields"]["portal_domain"].is_string(), "{duplicate:?}");
    let eve = json!({"email": "eve@example.org"});
    let eve = world.call_as(&key, Method::POST, "/affiliates", &eve).await.json()["affiliate"].clone();
    let path = format!("/affiliates/{}/login-link", eve["id"].as_str().unwrap());
    let url = world.call_as(&key, Method::POST, &path, &json!({})).await.json();
    let mut eves = Browser::new(&world);
    let entered = eves.get(url["url"].as_str().unwrap()).await;
    eves.take_cookie(&entered.headers);
    assert_eq!(eves.get("/portal/home").await.status, StatusCode::OK);
    eves.headers = at("partners.shop.example");
    assert_eq!(eves.get("/portal/home").await.status, StatusCode::UNAUTHORIZED);
    // No program can use the service's own host.
    let own = json!({"portal_domain": "api.example.test"});
    let refused = owner(&world, &other, Method::PATCH, "", own).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{refused:?}");
    assert_eq!(Browser::new(&world).get("/portal/sign-in").await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn pages_load_nothing_from_elsewhere() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let browser = Browser::of(&world, &ada).await;
    assert_eq!(browser.get("/portal").await.headers["location"], "portal/home");
    let style = browser.get("/portal/style.css?v=1").await;
    assert_eq!(
        (style.status, &style.headers["content-type"]),
        (StatusCode::OK, &"text/css; charset=utf-8".parse().unwrap())
    );
    for page in ["home", "links", "referrals", "earnings", "payouts", "settings"] {
        let response = browser.get(&format!("/portal/{page}")).await;
        let policy = response.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self';") && !policy.contains("unsafe"));
        assert_eq!(
            (&response.headers["cache-control"], &response.headers["x-frame-options"]),
            (&"no-store".parse().unwrap(), &"DENY".parse().unwrap())
        );
        let text = text(&response);
        for not in ["<script", "style=\"", " onclick", "http-equiv", "@import"] {
            assert!(!text.contains(not), "{page}: {not}");
        }
        assert_eq!(text.matches("<h1>").count(), 1, "{page}");
        assert!(text.contains("<html lang=\"en\">") && text.contains("aria-current=\"page\""), "{page}");
    }
    world.end().await;
}

/// A later purchase in a browser where a partner signed in is the partner's own purchase.
#[tokio::test]
async fn sign_in_links_the_browser_to_the_partner() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let known = async |visitor: &str| {
        store::affiliate::self_referral_guard::is_own_browser(
            &world.services.store,
            world.tenant().await.account().id,
            ada["id"].as_str().unwrap().parse().unwrap(),
            visitor,
        )
        .await
        .unwrap()
    };
    let browser = Browser { cookie: "stx_vid=0123456789abcdef".to_owned(), ..Browser::new(&world) };
    // A prefetch is not a sign-in.
    let url = login_link(&world, &ada).await;
    browser.head(&url).await;
    assert!(!known("0123456789abcdef").await);
    assert_eq!(browser.get(&url).await.status, StatusCode::FOUND);
    assert!(known("0123456789abcdef").await && !known("fedcba9876543210").await);
    world.end().await;
}
