//! The dashboard: every page and form as every role, signed out, without the CSRF token, with hostile strings, and with
//! ids of another account.

use std::net::SocketAddr;

use accounts::users::UserService;
use api::access::role_table::role_allows;
use api::operation::Operation;
use api::operations::operation_table;
use model::account::Plan;
use model::id::AccountId;
use model::user::UserRole;
use pages::dashboard::table::{PageAccess, PageRow, pages};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::world::{OWNER, TestWorld};

const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}fdp.exe";

/// A browser without JavaScript.
struct Browser {
    api: SocketAddr,
    cookie: String,
    csrf: String,
}

#[derive(Debug)]
struct PageResponse {
    status: u16,
    head: String,
    body: String,
}

impl PageResponse {
    fn location(&self) -> &str {
        self.head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_default()
    }
}

impl Browser {
    fn signed_out(world: &TestWorld) -> Self {
        Self { api: world.api, cookie: String::new(), csrf: String::new() }
    }

    /// Signs a user of this role in.
    async fn sign_in(world: &TestWorld, account: AccountId, role: UserRole) -> Self {
        let users = UserService::new(&world.server.queue.services);
        let account = store::account::get(&world.server.store, account).await.unwrap().unwrap();
        let owner = users.owner(&account).await.unwrap();
        let user = match role {
            UserRole::Owner => owner,
            role => {
                let email = format!("{}@team.example", role.word()).parse().unwrap();
                let invited = users.invite(&account, email, role, UserRole::Owner).await.unwrap();
                users.accept_invitation(&invited).await.unwrap()
            }
        };
        let (token, _) = users.sign_in(&user).await.unwrap();
        let cookie = api::auth::cookie::cookie_pair(&token);
        Self { api: world.api, cookie, csrf: token.csrf() }
    }

    async fn send(&self, method: &str, path: &str, body: &str) -> PageResponse {
        let mut stream = TcpStream::connect(self.api).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nCookie: {}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.cookie,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        PageResponse { status, head: head.replace("\r\n", "\n"), body: body.to_owned() }
    }

    async fn get(&self, path: &str) -> PageResponse {
        self.send("GET", path, "").await
    }

    async fn post(&self, path: &str, form: &str) -> PageResponse {
        self.send("POST", path, &format!("csrf={}&form={form}", self.csrf)).await
    }
}

/// The path of a page with parameters that no object has.
fn example_path(row: &PageRow) -> String {
    let parts =
        row.path.split('/').map(|part| if part.starts_with('{') { "msg_01M8B3X1C0000111BYPG4CM23J" } else { part });
    format!("/dashboard{}", parts.collect::<Vec<_>>().join("/"))
}

/// The role table of the API.
struct RoleTable(Vec<Operation>);

impl RoleTable {
    fn allows(&self, role: UserRole, operation: &str) -> bool {
        let found = self.0.iter().find(|known| known.id == operation);
        role_allows(role, found.unwrap_or_else(|| panic!("there is no operation {operation}")))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_sees_the_pages_that_its_operations_allow() {
    let world = TestWorld::start().await;
    let table = RoleTable(operation_table());
    for role in UserRole::ALL {
        let browser = Browser::sign_in(&world, world.account, role).await;
        for row in pages() {
            let path = example_path(row);
            let answer = browser.get(&path).await;
            let is_allowed = row.reads.iter().all(|operation| table.allows(role, operation));
            // A page that is nothing but a form is refused to those who may not send it.
            let is_useless = !row.forms.is_empty() && row.forms.iter().all(|form| !table.allows(role, form.operation));
            let expected: &[u16] = match (is_allowed, row.access) {
                (_, PageAccess::Public) => &[200, 303, 404],
                (false, _) => &[403],
                (true, _) if is_useless => &[200, 303, 403, 404],
                // A program that is not set up, an object that does not exist.
                (true, _) if row.path.contains('{') || row.path.contains("affiliate") => &[200, 303, 404],
                (true, _) => &[200, 303],
            };
            assert!(expected.contains(&answer.status), "{path} as {}: {} {}", role.word(), answer.status, answer.body);
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_need_the_role_and_the_token() {
    let world = TestWorld::start().await;
    let table = RoleTable(operation_table());
    let mut browsers = Vec::new();
    for role in UserRole::ALL {
        browsers.push((role, Browser::sign_in(&world, world.account, role).await));
    }
    for row in pages().filter(|row| row.access == PageAccess::SignedIn) {
        let path = example_path(row);
        for form in row.forms.iter().filter(|form| form.operation != "sign_out") {
            for (role, browser) in &browsers {
                if !table.allows(*role, form.operation) {
                    // The object of the page does not exist, so the page may not be shown again.
                    let answer = browser.post(&path, form.name).await;
                    assert!(
                        [403, 404].contains(&answer.status),
                        "{path} {} as {}: {}",
                        form.name,
                        role.word(),
                        answer.body
                    );
                }
            }
            let (_, owner) = browsers.last().unwrap();
            let forged = owner.send("POST", &path, &format!("form={}&csrf=forged", form.name)).await;
            assert!([403, 404].contains(&forged.status), "{path} {}: {} {}", form.name, forged.status, forged.body);
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_out_pages_lead_to_the_sign_in_page() {
    let world = TestWorld::start().await;
    let browser = Browser::signed_out(&world);
    for row in pages() {
        let path = example_path(row);
        let answer = browser.get(&path).await;
        match row.access {
            PageAccess::Public => assert!([200, 303].contains(&answer.status), "{path}: {answer:?}"),
            PageAccess::SignedIn => {
                assert_eq!(answer.status, 303, "{path}: {answer:?}");
                assert!(answer.location().starts_with("/dashboard/sign-in"), "{path}: {answer:?}");
                let posted = browser.post(&path, "x").await;
                assert!(posted.location().starts_with("/dashboard/sign-in?"), "{path}: {posted:?}");
                assert!(posted.location().ends_with("done=session_ended"), "{path}: {posted:?}");
                let long = browser.post(&path, &format!("html={}", "x".repeat(100_000))).await;
                assert_eq!(long.location(), posted.location(), "{path}: {long:?}");
            }
        }
    }
    let sign_in = browser.get("/dashboard/sign-in").await;
    assert!(
        sign_in.head.contains("require-trusted-types-for 'script'") && sign_in.head.contains("no-store"),
        "{sign_in:?}"
    );
    assert_eq!(browser.get("/").await.location(), "/dashboard");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_of_strangers_are_text_and_other_accounts_are_unknown() {
    let world = TestWorld::start().await;
    let owner = Browser::sign_in(&world, world.account, UserRole::Owner).await;
    let email = json!({"from": "ada@acme.example", "to": ["grace@dest.example"], "subject": HOSTILE, "html": HOSTILE,
                       "tags": [{"name": "flow", "value": "x"}]});
    let (status, sent) = world.call("POST", "/emails", &email.to_string()).await;
    assert_eq!(status, 200, "{sent}");
    let (status, answer) =
        world.call("POST", "/webhooks", r#"{"url":"https://hooks.example/x","events":["email.sent"]}"#).await;
    assert!([200, 201].contains(&status), "{answer}");
    let id = sent["id"].as_str().unwrap();
    for path in ["/dashboard/emails", &format!("/dashboard/emails/{id}"), "/dashboard"] {
        let page = owner.get(path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("<script>alert") && !page.body.contains('\u{202e}'), "{path}");
    }
    assert!(owner.get("/dashboard/emails").await.body.contains("&lt;script&gt;alert(1)"));
    let provisioning = &world.server.provisioning;
    let other =
        provisioning.create_account("other@elsewhere.example".parse().unwrap(), Plan::Dedicated, true).await.unwrap();
    let stranger = Browser::sign_in(&world, other.account.id, UserRole::Owner).await;
    assert_eq!(stranger.get(&format!("/dashboard/emails/{id}")).await.status, 404);
    assert!(!stranger.get("/dashboard/emails").await.body.contains(id));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_shown_beside_the_form_and_a_right_one_leads_on() {
    let world = TestWorld::start().await;
    let browser = Browser::signed_out(&world);
    let path = "/dashboard/sign-in?next=%2Fdashboard%2Femails";
    let form = |password: &str| format!("form=password&email={}&password={password}", OWNER.replace('@', "%40"));
    let refused = browser.send("POST", path, &form("wrong-password")).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    assert!(
        refused.body.contains("role=\"alert\"")
            && refused.body.contains(OWNER)
            && !refused.body.contains("wrong-password")
    );
    let outside = "/dashboard/../c/token";
    for evil in ["//evil.example", "https://evil.example/dashboard", "/dashboard%5C..", "/emails", outside] {
        let owner = Browser::sign_in(&world, world.account, UserRole::Owner).await;
        let answer = owner.get(&format!("/dashboard/sign-in?next={evil}")).await;
        assert_eq!(answer.location(), "/dashboard", "{evil}");
    }
    world.close().await;
}
