//! One account: plan, reach, suspension, a session of its owner, and the reset of a user.

use super::accounts::{CustomerAccount, LIST, account_path, plan_field, secrets_page};
use crate::console::PATH;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/accounts/{id}" => show, reads ["account_show"], forms {
        "plan" => change_plan, calls "account_update";
        "production" => change_reach, calls "account_update";
        "session" => create_session, calls "session_create";
    };
    "/accounts/{id}/suspension" => show_suspension, reads ["account_show"], forms {
        "suspension" => change_suspension, calls "account_update";
    };
    "/accounts/{id}/reset" => show_reset, reads ["account_show"], forms {
        "reset" => reset, calls "user_reset";
    };
};

/// The answer of `account show`.
#[answer]
struct AccountState {
    account: CustomerAccount,
    nearest_to_full: Option<NearestQuota>,
    queued: QueuedMailCount,
    pool_ordered: Option<String>,
}

#[answer]
struct NearestQuota {
    limit: String,
    used: u64,
    cap: u64,
}

#[answer]
struct QueuedMailCount {
    recipients: u64,
    /// Acceptance time of the oldest recipient that was counted.
    oldest: Option<String>,
    /// The queue was too long to be read whole: there may be more recipients.
    has_more: bool,
}

impl QueuedMailCount {
    /// `at least 12 recipients`.
    fn words(&self) -> String {
        let count = counted(self.recipients, "recipient");
        match (self.recipients, self.has_more) {
            (0, true) => "the recipients (not counted)".to_owned(),
            (_, true) => format!("at least {count}"),
            (_, false) => count,
        }
    }

    /// The count with the time of the oldest recipient; `None` if nothing is queued.
    fn summary(&self) -> Option<impl Renderable> {
        let is_counted = self.recipients > 0;
        let words =
            if is_counted { sentence_case(&self.words()) } else { "Not counted: the queue is too long".to_owned() };
        let of_these = if self.has_more { " of these" } else { "" };
        let oldest = time_or_dash(self.oldest.as_deref());
        (is_counted || self.has_more).then(|| {
            maud! { (words) @if is_counted { "; the oldest" (of_these) " was accepted " (oldest) } }
        })
    }
}

fn show_call(context: &Context<'_>) -> Call {
    Call::new("account_show").json(json!({"account": context.id()}))
}

async fn read_state(context: &Context<'_>) -> Result<AccountState, Failure> {
    context.read(&show_call(context)).await
}

fn update(context: &Context<'_>, field: &str, value: Value) -> Call {
    Call::new("account_update").json(json!({"account": context.id(), field: value}))
}

impl AccountState {
    fn facts(&self) -> Facts {
        let account = &self.account;
        let quota = self.nearest_to_full.as_ref();
        Facts::new()
            .row("State", account.state())
            .row("Owner", &account.email)
            .row("Plan", sentence_case(&account.plan))
            .row("May send to", account.reach())
            .row("Created", time_or_dash(account.created_at.as_deref()))
            .row("Pool", self.pool_ordered.as_deref().unwrap_or("The plan's pool"))
            .optional("Payment method", account.payment_method.as_ref().and_then(Value::as_str))
            .optional(
                "Nearest to its limit",
                quota.map(|quota| {
                    format!("{}: {} of {}", sentence_case(&quota.limit), grouped(quota.used), grouped(quota.cap))
                }),
            )
            .optional("In the queue", self.queued.summary())
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let state = read_state(context).await?;
    let account = &state.account;
    let own = account_path(&account.id);
    let plan = Form::new("plan", "Change the plan", vec![plan_field("").value(&account.plan)]).secondary();
    let (reach_label, reach) =
        if account.production { ("Own addresses only", "off") } else { ("Allow any recipient", "on") };
    let reach = Form::new("production", reach_label, vec![Field::hidden("production", reach)]).secondary();
    let session = Form::new("session", "Sign in as its owner", Vec::new()).secondary();
    let query = encode(&account.id);
    let body = maud_borrow! {
        div.sections {
            div.card { (state.facts()) }
            div.columns {
                section { h2 { "Plan" } div.card { (plan.within(context)) } }
                section {
                    h2 { "Recipients" }
                    div.card {
                        p.soft { "Without a payment method on file, an account can send only to its own addresses." }
                        (reach.within(context))
                    }
                }
                section {
                    h2 { "Session" }
                    div.card {
                        p.soft { "Creates a session for the owner that ends after 15 minutes, and a link that opens \
                            the dashboard." }
                        (session.within(context))
                    }
                }
                section {
                    h2 { "More" }
                    div.card {
                        ul.plain {
                            li { a href={ (PATH) "/mail?account=" (query) } { "Its queued mail" } }
                            li { a href={ (PATH) "/emails?account=" (query) } { "All its emails" } }
                            li { a href={ (PATH) "/pools/assign?account=" (query) } { "Assign it to a pool" } }
                            li { a href={ (own) "/reset" } { "Reset a user" } }
                        }
                    }
                }
            }
        }
    };
    let label = if account.suspended { "Lift the suspension…" } else { "Suspend…" };
    let actions = maud_borrow! { a.button href={ (own) "/suspension" } { (label) } };
    let page = Page::new(&account.email, body).below(LIST, "Accounts").lead(&account.id).actions(actions);
    let session = Call::new("session_create").json(json!({"account": account.id}));
    let page = page.same_as(show_call(context)).same_as(update(context, "plan", json!(account.plan)));
    Ok(page.same_as(update(context, "production", json!(!account.production))).same_as(session).into())
}

async fn change_plan(context: &Context<'_>) -> Result<Outcome, Failure> {
    let plan = context.form().get("plan");
    context.act(&update(context, "plan", json!(plan)), account_path(context.id()), "changed").await
}

async fn change_reach(context: &Context<'_>) -> Result<Outcome, Failure> {
    let is_on = context.form().get("production") == "on";
    let call = update(context, "production", json!(is_on));
    context.act(&call, account_path(context.id()), if is_on { "production_on" } else { "production_off" }).await
}

#[answer]
struct CreatedSession {
    url: String,
    cookie: String,
    csrf_token: String,
}

async fn create_session(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("session_create").json(json!({"account": context.id()}));
    let created: CreatedSession = context.read(&call).await?;
    let secrets = [
        ("Single-use link to the dashboard", created.url),
        ("Cookie for scripts", created.cookie),
        ("x-csrf-token for scripts", created.csrf_token),
    ];
    Ok(Outcome::once(secrets_page("Session of the owner", &secrets, context.id())))
}

fn suspension_form(is_suspended: bool) -> Form<'static> {
    if is_suspended {
        return Form::new("suspension", "Lift the suspension", vec![Field::hidden("suspended", "off")]);
    }
    Form::new("suspension", "Suspend", vec![Field::hidden("suspended", "on")]).danger()
}

async fn show_suspension(context: &Context<'_>) -> Result<View, Failure> {
    let state = read_state(context).await?;
    let account = &state.account;
    let form = suspension_form(account.suspended);
    let text = if account.suspended {
        format!("New mail is accepted again, and {} in the queue will be delivered.", state.queued.words())
    } else {
        let queued = state.queued.words();
        format!(
            "New mail from the account is refused, and {queued} in the queue are held until the suspension is lifted. \
             Held mail still expires."
        )
    };
    let body = maud_borrow! { div.card { p { (text) } (form.within(context)) } };
    let title = if account.suspended { "Lift the suspension" } else { "Suspend the account" };
    let page = Page::new(title, body).below(LIST, "Accounts").below(account_path(&account.id), &account.email);
    Ok(page.same_as(update(context, "suspended", json!(!account.suspended))).into())
}

async fn change_suspension(context: &Context<'_>) -> Result<Outcome, Failure> {
    let is_suspended = context.form().get("suspended") == "on";
    context.perform(&update(context, "suspended", json!(is_suspended))).await?;
    let done = if is_suspended { "account_suspended" } else { "account_resumed" };
    Ok(Outcome::done(account_path(context.id()), done))
}

async fn show_reset(context: &Context<'_>) -> Result<View, Failure> {
    let state = read_state(context).await?;
    let email = &state.account.email;
    let field = Field::new("email", "User's email address", Control::Email).required().value(email);
    let form = Form::new("reset", "Reset", vec![field]).danger();
    let body = maud_borrow! {
        div.card {
            p { "The user's password and one-time passwords are removed, and their sessions end. You get a single-use \
                sign-in link for them, valid for one hour." }
            (form.within(context))
        }
    };
    let page = Page::new("Reset a user", body).below(LIST, "Accounts").below(account_path(&state.account.id), email);
    Ok(page.same_as(Call::new("user_reset").json(json!({"email": email}))).into())
}

#[answer]
struct ResetUser {
    email: String,
    sessions_ended: u64,
    link: String,
}

async fn reset(context: &Context<'_>) -> Result<Outcome, Failure> {
    let email = context.form().get("email").trim();
    let reset: ResetUser = context.read(&Call::new("user_reset").json(json!({"email": email}))).await?;
    let page = secrets_page(
        &format!("{} has been reset", reset.email),
        &[("Single-use sign-in link", reset.link)],
        context.id(),
    );
    Ok(Outcome::once(page.lead(format!("Sessions ended: {}.", grouped(reset.sessions_ended)))))
}
