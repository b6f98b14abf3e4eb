//! Pages below a partner: edit, payout method, decisions, links, deletion.

use super::campaigns::load_campaigns;
use super::partner::{PartnerInside, load_inside, load_partner, load_partner_version};
use super::partners::{PARTNERS_PATH, PartnerRow, partner_path, profile_fields};
use super::terms::CampaignsById;
use super::{conflict_at, filled, method_choices, object, without_field};
use crate::dashboard::kit::money::percent_value;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/partners/{id}/edit" => edit_page, reads ["get_affiliate", "update_affiliate"], forms {
        "edit" => edit, calls "update_affiliate";
    };
    "/affiliate/partners/{id}/payout-method" => payout_page, reads ["get_affiliate", "set_affiliate_payout_method"], forms {
        "payout-method" => set_payout_method, calls "set_affiliate_payout_method";
    };
    "/affiliate/partners/{id}/approve" => decision_page(&APPROVE), reads ["get_affiliate", "approve_affiliate"], forms {
        "decide" => decide(&APPROVE), calls "approve_affiliate";
    };
    "/affiliate/partners/{id}/reject" => decision_page(&REJECT), reads ["get_affiliate", "reject_affiliate"], forms {
        "decide" => decide(&REJECT), calls "reject_affiliate";
    };
    "/affiliate/partners/{id}/suspend" => decision_page(&SUSPEND), reads ["get_affiliate", "suspend_affiliate"], forms {
        "decide" => decide(&SUSPEND), calls "suspend_affiliate";
    };
    "/affiliate/partners/{id}/reactivate" => decision_page(&REACTIVATE), reads ["get_affiliate", "reactivate_affiliate"], forms {
        "decide" => decide(&REACTIVATE), calls "reactivate_affiliate";
    };
    "/affiliate/partners/{id}/links/new" => link_page, reads ["get_affiliate", "create_affiliate_link"], forms {
        "create" => create_link, calls "create_affiliate_link";
    };
    "/affiliate/partners/{id}/links/{link_id}/delete" => delete_link_page, reads ["get_affiliate", "delete_affiliate_link"], forms {
        "delete" => delete_link, calls "delete_affiliate_link";
    };
    "/affiliate/partners/{id}/delete" => delete_page, reads ["get_affiliate", "delete_affiliate"], forms {
        "delete" => delete, calls "delete_affiliate";
    };
};

fn page_below(title: &str, partner: &PartnerRow, body: impl Renderable, call: Call) -> View {
    Page::new(title, body).below(PARTNERS_PATH, "Partners").below(partner.path(), partner.name()).same_as(call).into()
}

fn edit_form(partner: &PartnerRow, inside: &PartnerInside, campaigns: &CampaignsById) -> Form<'static> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut fields: Vec<_> = profile_fields(partner, campaigns)
        .into_iter()
        .map(|field| match field.control {
            Control::Text => field.empty(Empty::Null),
            Control::Lines { .. } => field.empty(Empty::Kept),
            _ => field,
        })
        .collect();
    let own_rate = inside.commission_override.as_ref();
    let token = partner.links.iter().find(|link| link.is_primary).map(|link| link.token.clone()).unwrap_or_default();
    fields.extend([
        Field::new("commission_override", "Own rate in percent", Control::Percent)
            .value(own_rate.map_or_else(String::new, |rate| percent_value(rate.commission_bps)))
            .help(
                "Replaces the campaign's rates, including those for tiers and products. Leave empty for the \
                campaign's rates. Applies only to new commissions.",
            )
            .empty(Empty::Null),
        Field::text("token", "Token of the primary link")
            .value(token.clone())
            .help("If you change it, the old link no longer earns credit."),
        Field::text("parent_affiliate_id", "Recruited by")
            .value(text(&partner.parent_affiliate_id))
            .placeholder("aff_…")
            .help("The id of another partner, who earns the recruiter's share.")
            .empty(Empty::Null),
        Field::new("postback_url", "Postback URL", Control::Url)
            .value(text(&inside.postback_url))
            .help("The partner's own referrals and commissions are sent there.")
            .empty(Empty::Null),
        Field::new("email_opt_out", "Send no email", Control::Checkbox)
            .value(if inside.email_opt_out { "true" } else { "" })
            .help("Except for emails that the partner requests, and security notices."),
        Field::new("notes", "Notes", Control::Area { rows: 3 })
            .value(text(&inside.notes))
            .help("Only your team sees them.")
            .empty(Empty::Null),
        Field::hidden("token_before", token).ignored(),
    ]);
    Form::new("edit", "Save", fields)
}

async fn edit_page(context: &Context<'_>) -> Result<View, Failure> {
    let (partner, version) = &load_partner_version(context, context.id()).await?;
    let inside = load_inside(context, &partner.id).await?.unwrap_or_default();
    let mut form = edit_form(partner, &inside, &load_campaigns(context).await);
    form.fields.push(seen_version::field(version));
    let body = maud! { section.card { (form.within(context)) } };
    let call = Call::new("update_affiliate").id(&partner.id).json(object([]));
    Ok(page_below("Edit the partner", partner, body, call))
}

/// The body of an edit: the own rate as an object, and the token only if it changes.
fn edit_body(form: &Form<'_>, context: &Context<'_>) -> Result<Value, Failure> {
    let mut body = form.read(context.form())?;
    if let Some(points) = body["commission_override"].as_i64() {
        body["commission_override"] = json!({"commission_type": "percent", "commission_bps": points});
    }
    let is_same = body["token"] == context.form().get("token_before");
    if let Some(fields) = body.as_object_mut()
        && is_same
    {
        fields.remove("token");
    }
    Ok(body)
}

async fn edit(context: &Context<'_>) -> Result<Outcome, Failure> {
    let form = edit_form(&PartnerRow::default(), &PartnerInside::default(), &CampaignsById::new());
    let body = edit_body(&form, context)?;
    context.change_seen(Call::new("update_affiliate").id(context.id()).json(body)).await?;
    Ok(Outcome::done(partner_path(context.id()), "changed"))
}

fn payout_form(partner: &PartnerRow, destination: String) -> Form<'static> {
    let fields = vec![
        Field::new("method", "Method", Control::Select(method_choices()))
            .value(partner.payout_method.clone().unwrap_or_else(|| "paypal".into())),
        Field::new("destination", "Destination", Control::Area { rows: 3 }).required().value(destination).help(
            "PayPal and Wise: an email address. Bank: the account's details. Stripe: the connected account, acct_…. \
                 Other: whatever you need to pay the partner.",
        ),
    ];
    Form::new("payout-method", "Save", fields)
}

async fn payout_page(context: &Context<'_>) -> Result<View, Failure> {
    let (partner, version) = &load_partner_version(context, context.id()).await?;
    let inside = load_inside(context, &partner.id).await?.unwrap_or_default();
    let mut form = payout_form(partner, inside.payout_destination.unwrap_or_default());
    form.fields.push(seen_version::field(version));
    let text = "A payout in a draft goes to the new destination. Approved payouts do not change.";
    let body = maud! { section.card { (Notice { tone: Tone::Active, text }) (form.within(context)) } };
    let call = Call::new("set_affiliate_payout_method").id(&partner.id).json(object([]));
    Ok(page_below("Payout method", partner, body, call))
}

async fn set_payout_method(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = payout_form(&PartnerRow::default(), String::new()).read(context.form())?;
    if let Some(text) = body["destination"].as_str() {
        body["destination"] = Value::from(text.trim());
    }
    context.change_seen(Call::new("set_affiliate_payout_method").id(context.id()).json(body)).await?;
    Ok(Outcome::done(partner_path(context.id()), "changed"))
}

struct PartnerDecision {
    operation: &'static str,
    title: &'static str,
    button: &'static str,
    effects: &'static [&'static str],
    done: &'static str,
    takes_reason: bool,
    /// The label of the choice to write an email.
    email: Option<&'static str>,
    danger: bool,
}

static APPROVE: PartnerDecision = PartnerDecision {
    operation: "approve_affiliate",
    title: "Approve",
    button: "Approve the partner",
    effects: &[
        "The partner becomes active.",
        "Its links earn credit for visits and referrals from now on.",
        "It can sign in to the portal.",
    ],
    done: "approved",
    takes_reason: false,
    email: Some("Notify the partner by email"),
    danger: false,
};
static REJECT: PartnerDecision = PartnerDecision {
    operation: "reject_affiliate",
    title: "Reject",
    button: "Reject the partner",
    effects: &["The application is rejected.", "The links do not work.", "You can still approve the partner later."],
    done: "rejected",
    takes_reason: true,
    email: Some("Notify the partner by email"),
    danger: true,
};
static SUSPEND: PartnerDecision = PartnerDecision {
    operation: "suspend_affiliate",
    title: "Suspend",
    button: "Suspend the partner",
    effects: &[
        "The links no longer earn credit, and new referrals are refused.",
        "Payout runs skip the partner. What the partner has earned stays in the ledger.",
        "The program's settings decide whether existing customers continue to earn commissions.",
        "You can reactivate the partner at any time.",
    ],
    done: "suspended",
    takes_reason: true,
    email: None,
    danger: true,
};
static REACTIVATE: PartnerDecision = PartnerDecision {
    operation: "reactivate_affiliate",
    title: "Reactivate",
    button: "Reactivate the partner",
    effects: &["The partner becomes active again.", "Its links work again, and payout runs include it."],
    done: "reactivated",
    takes_reason: false,
    email: None,
    danger: false,
};

impl PartnerDecision {
    fn form(&self) -> Form<'static> {
        let reason = Field::new("reason", "Reason", Control::Area { rows: 2 });
        let reason = match self.email {
            Some(_) => reason.help("The email to the partner includes it."),
            None => reason.help("For your team."),
        };
        let email = self.email.map(|label| Field::new("send_email", label, Control::Checkbox).value("true"));
        let form =
            Form::new("decide", self.button, self.takes_reason.then_some(reason).into_iter().chain(email).collect());
        if self.danger { form.danger() } else { form }
    }

    fn call(&self, id: &str) -> Call {
        Call::new(self.operation).id(id)
    }
}

async fn decision_page(context: &Context<'_>, decision: &PartnerDecision) -> Result<View, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let form = decision.form();
    let body = maud! {
        section.card {
            p { strong { (partner.name()) } " · " (partner.email) }
            ul { @for effect in decision.effects { li { (effect) } } }
            (form.within(context))
        }
    };
    Ok(page_below(decision.title, partner, body, decision.call(&partner.id)))
}

async fn decide(context: &Context<'_>, decision: &PartnerDecision) -> Result<Outcome, Failure> {
    let form = decision.form();
    let body = form.read(context.form())?;
    let call = decision.call(context.id());
    let call = if form.fields.is_empty() { call } else { call.json(body) };
    context.perform(&call).await.map_err(|failure| without_field(failure, "status"))?;
    Ok(Outcome::done(partner_path(context.id()), decision.done))
}

fn link_form() -> Form<'static> {
    let fields = vec![
        Field::text("token", "Token").required().placeholder("ada-podcast").help(
            "The end of the URL: ?via=ada-podcast. From 2 to 40 letters, digits, dashes and underscores. It \
                 cannot be changed later.",
        ),
        Field::text("destination_url", "Leads to")
            .placeholder("/pricing")
            .help("A path or a URL on your website. Leave empty for the home page."),
        Field::text("label", "Label").placeholder("Podcast"),
    ];
    Form::new("create", "Add the link", fields)
}

async fn link_page(context: &Context<'_>) -> Result<View, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let form = link_form();
    let body = maud! { section.card { (form.within(context)) } };
    Ok(page_below("Add a link", partner, body, Call::new("create_affiliate_link").id(&partner.id).json(object([]))))
}

async fn create_link(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = link_form().read(context.form())?;
    let call = Call::new("create_affiliate_link").id(context.id()).json(body);
    context.perform(&call).await.map_err(|failure| conflict_at(failure, "token"))?;
    Ok(Outcome::done(partner_path(context.id()), "created"))
}

fn link_call(context: &Context<'_>) -> Call {
    Call::new("delete_affiliate_link").id(context.id()).parameter("link_id", context.parameter("link_id"))
}

async fn delete_link_page(context: &Context<'_>) -> Result<View, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let link = partner.links.iter().find(|link| link.id == context.parameter("link_id"));
    let link = link.ok_or_else(Failure::not_found)?;
    let form = confirm_form("Delete the link", "token", "Token of the link");
    let body = maud! {
        section.card {
            p { code { (link.url) } }
            ul {
                li { "New visits through this link no longer earn credit." }
                li { "Visits and referrals that came through it stay with the partner." }
            }
            p { "Enter the token " strong { (link.token) } " to confirm." }
            (form.within(context))
        }
    };
    Ok(page_below("Delete the link", partner, body, link_call(context)))
}

/// A form that asks for a name before it deletes.
fn confirm_form(button: &'static str, name: &'static str, label: &'static str) -> Form<'static> {
    Form::new("delete", button, vec![Field::text(name, label).required().ignored()]).danger()
}

fn check_name(context: &Context<'_>, field: &'static str, expected: &str) -> Result<(), Failure> {
    if filled(context.form(), field).as_deref() == Some(expected) {
        return Ok(());
    }
    Err(Failure::field(field, format!("Enter {expected} to confirm")))
}

async fn delete_link(context: &Context<'_>) -> Result<Outcome, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let link = partner.links.iter().find(|link| link.id == context.parameter("link_id"));
    check_name(context, "token", &link.ok_or_else(Failure::not_found)?.token)?;
    context.act(&link_call(context), partner.path(), "deleted").await
}

async fn delete_page(context: &Context<'_>) -> Result<View, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let form = confirm_form("Delete the partner", "email", "Email address of the partner");
    let body = maud! {
        section.card {
            ul {
                li { "The partner, its links and its sign-in to the portal are deleted." }
                li { "Commissions that are not paid are reversed." }
                li { "The email address can be used again at once, the link tokens after 90 days." }
                li { "Partners recruited by this one no longer have a recruiter." }
            }
            p { "A partner who has been paid cannot be deleted: suspend the partner instead." }
            p { "Enter " strong { (partner.email) } " to confirm." }
            (form.within(context))
        }
    };
    Ok(page_below("Delete the partner", partner, body, Call::new("delete_affiliate").id(&partner.id)))
}

async fn delete(context: &Context<'_>) -> Result<Outcome, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    check_name(context, "email", &partner.email)?;
    context.act(&Call::new("delete_affiliate").id(&partner.id), PARTNERS_PATH, "deleted").await
}
