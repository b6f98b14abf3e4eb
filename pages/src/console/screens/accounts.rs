//! Accounts: the list, and a new one.

use crate::dashboard::prelude::*;

pub(super) const LIST: &str = "/console/accounts";
const PAGE_SIZE: u64 = 50;
const PLANS: &[&str] = &["free", "pro", "scale", "dedicated"];

pub const PAGES: &[PageRow] = page_rows! {
    "/accounts" => show, reads ["account_list"], forms {
        "find" => find, calls "account_show";
    };
    "/accounts/new" => show_new, forms {
        "create" => create, calls "account_create";
    };
};

#[answer]
pub(super) struct CustomerAccount {
    pub(super) id: String,
    /// Address of the owner.
    pub(super) email: String,
    pub(super) plan: String,
    pub(super) production: bool,
    pub(super) payment_method: Option<Value>,
    pub(super) suspended: bool,
    pub(super) created_at: Option<String>,
}

impl CustomerAccount {
    pub(super) fn state(&self) -> Badge {
        if self.suspended { Badge::new("Suspended", Tone::Bad) } else { Badge::new("Active", Tone::Good) }
    }

    pub(super) fn reach(&self) -> Badge {
        if self.production {
            Badge::new("Any recipient", Tone::Good)
        } else {
            Badge::new("Own addresses only", Tone::Warning)
        }
    }
}

pub(super) fn account_path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}

pub(super) fn plan_field(empty: &str) -> Field {
    let plans = PLANS.iter().map(|plan| ((*plan).to_owned(), sentence_case(plan)));
    let empty = (!empty.is_empty()).then(|| (String::new(), empty.to_owned()));
    Field::new("plan", "Plan", Control::Select(empty.into_iter().chain(plans).collect()))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let cursor = Some(context.query().get("cursor")).filter(|cursor| !cursor.is_empty());
    let call = Call::new("account_list").json(json!({"page": {"limit": PAGE_SIZE, "cursor": cursor}}));
    let list: List<CustomerAccount> = context.read_list("accounts", &call).await?;
    let table = Table::of("Accounts", &list.entries)
        .column("Owner", |account| link(account_path(&account.id), &account.email))
        .column("Plan", |account| sentence_case(&account.plan))
        .column("State", |account| account.state())
        .column("May send to", |account| account.reach())
        .column("Created", |account| time_or_dash(account.created_at.as_deref()))
        .column("Id", |account| maud_borrow! { span.small.soft { (account.id) } });
    let find = Form::new("find", "Open", vec![Field::text("account", "Account id or owner's address").required()]);
    let body = maud_borrow! {
        details.card open[context.failure_of("find").is_some()] {
            summary { "Find an account" }
            (find.within(context))
        }
        @if table.is_empty() {
            (EmptyState { title: "No accounts yet", text: "An account has its own domains, keys, users and \
                plan.", action: Some(("/console/accounts/new", "Create an account")) })
        } @else {
            (table)
        }
        (Pager { context, next_cursor: list.next_cursor.as_deref() })
    };
    let actions = maud! { a.button.primary href="/console/accounts/new" { "Create an account" } };
    Ok(Page::new("Accounts", body).actions(actions).same_as(call).into())
}

async fn find(context: &Context<'_>) -> Result<Outcome, Failure> {
    let name = context.form().get("account").trim();
    let call = Call::new("account_show").json(json!({"account": name}));
    let found = context.read_field::<CustomerAccount>("account", &call).await;
    let account = found.map_err(|failure| Failure::field("account", failure.message))?;
    Ok(Outcome::SeeOther(account_path(&account.id)))
}

fn new_form() -> Form<'static> {
    let fields = vec![
        Field::new("email", "Owner's email address", Control::Email).required(),
        plan_field("The configured default"),
        Field::new("production", "May send to any recipient", Control::Checkbox)
            .help("A payment method is on file, or you vouch for the account."),
    ];
    Form::new("create", "Create", fields)
}

async fn show_new(context: &Context<'_>) -> Result<View, Failure> {
    let form = new_form();
    let body = maud_borrow! {
        div.card {
            p.soft { "The account gets an API key, an SMTP password, and a sign-in link for its owner, valid for 24 \
                hours. They are shown only once." }
            (form.within(context))
        }
    };
    let call =
        Call::new("account_create").json(json!({"email": "owner@example.com", "plan": "pro", "production": true}));
    Ok(Page::new("Create an account", body).below(LIST, "Accounts").same_as(call).into())
}

#[answer]
struct CreatedAccount {
    account: CustomerAccount,
    api_key: Value,
    smtp_credential: Value,
    sign_in: Value,
}

async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = new_form().read(context.form())?;
    let created: CreatedAccount = context.read(&Call::new("account_create").json(body)).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let secrets = [
        ("Sign-in link of the owner", text(&created.sign_in["link"])),
        ("API key", text(&created.api_key["secret"])),
        ("SMTP user name", text(&created.smtp_credential["username"])),
        ("SMTP password", text(&created.smtp_credential["password"])),
    ];
    let title = format!("Account of {}", created.account.email);
    Ok(Outcome::once(secrets_page(&title, &secrets, &created.account.id)))
}

/// A page with secrets that is shown once.
pub(super) fn secrets_page(title: &str, secrets: &[(&'static str, String)], account: &str) -> Page {
    let shown: Vec<_> = secrets.iter().filter(|(_, secret)| !secret.is_empty()).collect();
    let body = maud_borrow! {
        (Notice { tone: Tone::Warning, text: "Copy these now and pass them on securely: they are never shown again." })
        @for (label, secret) in &shown {
            div.card {
                h2 { (label) }
                p.secret { code { (secret) } (copy_button(secret, label)) }
            }
        }
        p { a.button href=(account_path(account)) { "Go to the account" } }
    };
    Page::new(title, body).below(LIST, "Accounts").location(account_path(account))
}
