//! The user's own sign-in: password, one-time passwords, sessions, sign-out.

use crate::dashboard::kit::qr_code::qr_code;
use crate::dashboard::kit::row_button::row_button;
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/security";

pub const PAGES: &[PageRow] = page_rows! {
    "/security" => show, reads ["get_session", "list_sessions"], forms {
        "password" => set_password, calls "set_password";
        "totp" => begin_totp, calls "begin_totp";
        "totp-code" => confirm_totp, calls "confirm_totp";
        "totp-off" => disable_totp, calls "disable_totp";
        "recovery" => replace_recovery_codes, calls "replace_recovery_codes";
        "end" => end_session, calls "end_session";
        "end-others" => end_others, calls "end_other_sessions";
        "sign-out" => sign_out, calls "sign_out";
    };
};

#[derive(Debug, Deserialize)]
struct OwnSession {
    user: OwnUser,
}

#[derive(Debug, Deserialize)]
struct OwnUser {
    email: String,
    role: String,
    has_password: bool,
    #[serde(default)]
    has_totp: bool,
}

#[derive(Debug, Deserialize)]
struct Session {
    id: String,
    current: bool,
    method: Option<String>,
    ip: Option<String>,
    user_agent: Option<String>,
    created_at: String,
    last_used_at: Option<String>,
}

impl Session {
    /// "Firefox on Windows", as far as the browser says it.
    fn browser(&self) -> String {
        let Some(agent) = self.user_agent.as_deref().filter(|agent| !agent.is_empty()) else { return "Unknown".into() };
        // Browsers name those that they are compatible with, so the order matters.
        let browsers = [
            ("Edg/", "Edge"),
            ("OPR/", "Opera"),
            ("Firefox/", "Firefox"),
            ("Chrome/", "Chrome"),
            ("Safari/", "Safari"),
        ];
        let systems = [
            ("Android", "Android"),
            ("iPhone", "iPhone"),
            ("iPad", "iPad"),
            ("Windows", "Windows"),
            ("Mac OS X", "macOS"),
            ("Linux", "Linux"),
        ];
        let find =
            |names: &[(&str, &'static str)]| names.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name);
        match (find(&browsers), find(&systems)) {
            (Some(browser), Some(system)) => format!("{browser} on {system}"),
            (Some(browser), None) => browser.into(),
            (None, _) => agent.chars().take(60).collect(),
        }
    }
}

fn password_form(has_password: bool) -> Form<'static> {
    let current = Field::new("current_password", "Current password", Control::Password)
        .autocomplete("current-password")
        .help("Not required within 15 minutes of signing in with an emailed link.");
    let new = Field::new("password", "New password", Control::Password)
        .required()
        .autocomplete("new-password")
        .help("At least 10 characters. Your other sessions will end.");
    Form::new("password", "Set the password", if has_password { vec![current, new] } else { vec![new] })
}

fn totp_code_form() -> Form<'static> {
    let code = Field::text("code", "Code shown in the app").required().autocomplete("one-time-code");
    Form::new("totp-code", "Turn on", vec![code])
}

fn totp_off_form(has_password: bool) -> Form<'static> {
    let (name, label) = if has_password { ("password", "Your password") } else { ("code", "A one-time password") };
    let proof = Field::new(name, label, Control::Password).required().autocomplete("current-password");
    Form::new("totp-off", "Turn off", vec![proof]).danger()
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let OwnSession { user } = context.read_field("session", &Call::new("get_session")).await?;
    let sessions: Vec<Session> = context.read_field("sessions", &Call::new("list_sessions")).await?;
    let password = password_form(user.has_password);
    let (begin, off) = (Form::new("totp", "Set up", Vec::new()), totp_off_form(user.has_password));
    let code = totp_code_form();
    let is_code_refused = context.failure_of("totp-code").is_some();
    let recovery = Form::new("recovery", "Create new recovery codes", vec![form_key::field(context)]).secondary();
    let others = Form::new("end-others", "End all other sessions", Vec::new()).secondary();
    let body = maud! {
        div.columns {
            section.card {
                h2 { "Password" }
                @if !user.has_password { p.soft { "You have no password: you sign in with an emailed link." } }
                (password.within(context))
            }
            section.card {
                h2 { "One-time passwords" }
                @if user.has_totp {
                    p { (Badge::new("On", Tone::Good)) " Signing in requires a code from your authenticator app." }
                    (recovery.within(context))
                    (off.within(context))
                } @else if is_code_refused {
                    p { "Enter the code that the app shows now. To see a secret again, restart the setup." }
                    (code.within(context))
                    (begin.within(context))
                } @else {
                    p { (Badge::new("Off", Tone::Neutral)) " A code from an authenticator app protects your account \
                        even if someone knows your password." }
                    (begin.within(context))
                }
            }
        }
        section {
            h2 { "Sessions" }
            (sessions_table(context, &sessions))
            @if sessions.len() > 1 { (others.within(context)) }
        }
    };
    let lead = format!("{} · {}", user.email, user.role);
    Ok(Page::new("Your sign-in", body).lead(lead).into())
}

fn sessions_table(context: &Context<'_>, sessions: &[Session]) -> Table {
    Table::of("Your sessions", sessions)
        .column(
            "Browser",
            |session| maud! { span title=(session.user_agent.as_deref().unwrap_or_default()) { (session.browser()) } },
        )
        .column("Address", |session| maud! { span.nowrap { (session.ip.as_deref().unwrap_or("–")) } })
        .column("Signed in", |session| {
            let method = session.method.as_deref().map(sentence_case).unwrap_or_default();
            maud! { (time_or_dash(Some(&session.created_at))) @if !method.is_empty() { " · " (method) } }
        })
        .column("Last used", |session| time_or_dash(session.last_used_at.as_deref()))
        .column("End", |session| {
            let end = row_button(context, "end", "End", ("id", &session.id));
            maud! { @if session.current { (Badge::new("This one", Tone::Active)) } @else { (end) } }
        })
        .into()
}

async fn set_password(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = password_form(true).read(context.form())?;
    context.act(&Call::new("set_password").json(body), PATH, "changed").await
}

/// Shows a new secret once. The form below it confirms the secret.
async fn begin_totp(context: &Context<'_>) -> Result<Outcome, Failure> {
    #[derive(Deserialize)]
    struct Secret {
        secret: String,
        otpauth_uri: String,
    }
    let created: Secret = context.read(&Call::new("begin_totp")).await?;
    let code = totp_code_form();
    let body = maud! {
        div.card {
            ol.steps {
                li { p { "Scan the code with an authenticator app." } (qr_code(&created.otpauth_uri, "Secret of your one-time passwords")) }
                li {
                    p { "Or type the secret: " }
                    p.secret { code { (created.secret) } (copy_button(&created.secret, "the secret")) }
                }
                li { p { "Enter the code that the app shows." } (code.within(context)) }
            }
        }
    };
    Ok(Outcome::once(Page::new("Set up one-time passwords", body).below(PATH, "Your sign-in")))
}

async fn confirm_totp(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = totp_code_form().read(context.form())?;
    let call = Call::new("confirm_totp").json(body);
    recovery_codes(context, call, "One-time passwords are on").await.map(Outcome::once)
}

async fn replace_recovery_codes(context: &Context<'_>) -> Result<Outcome, Failure> {
    let replace = recovery_codes(context, Call::new("replace_recovery_codes"), "New recovery codes");
    form_key::once(context, (PATH, "Your sign-in"), replace).await
}

/// The page that shows new recovery codes.
async fn recovery_codes(context: &Context<'_>, call: Call, title: &str) -> Result<Page, Failure> {
    let codes: Vec<String> = context.read_field("recovery_codes", &call).await?;
    let text = codes.join("\n");
    let body = maud! {
        (Notice { tone: Tone::Warning, text: "Save these recovery codes now: they are shown only once. Each can be \
            used once, instead of a code from the app." })
        div.card {
            (Code::new("Recovery codes", &text))
            p { a.button.primary href=(PATH) { "I have saved them" } }
        }
    };
    Ok(Page::new(title, body).below(PATH, "Your sign-in").location(PATH))
}

async fn disable_totp(context: &Context<'_>) -> Result<Outcome, Failure> {
    let has_password = context.form().find("password").is_some();
    let body = totp_off_form(has_password).read(context.form())?;
    context.act(&Call::new("disable_totp").json(body), PATH, "changed").await
}

async fn end_session(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("end_session").id(context.form().get("id")), PATH, "ended").await
}

async fn end_others(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("end_other_sessions"), PATH, "ended").await
}

async fn sign_out(context: &Context<'_>) -> Result<Outcome, Failure> {
    let reply = context.perform(&Call::new("sign_out")).await?;
    Ok(Outcome::SignedIn { path: "/dashboard/sign-in?done=signed_out".into(), cookies: reply.cookies })
}
