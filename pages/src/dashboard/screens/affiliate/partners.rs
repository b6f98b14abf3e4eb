//! Partners: the list with its filters, and adding one.

use super::campaigns::{campaign_choices, load_campaigns};
use super::terms::CampaignsById;
use super::{PATH, conflict_at, method_name, set_up_first};
use crate::dashboard::prelude::*;

/// The path of the list; partners are below it.
pub const PARTNERS_PATH: &str = "/dashboard/affiliate/partners";
const STATUSES: &[&str] = &["active", "pending", "invited", "suspended", "rejected"];

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/partners" => list, reads ["list_affiliates"];
    "/affiliate/partners/new" => new_page, reads ["create_affiliate"], forms {
        "create" => create, calls "create_affiliate";
    };
};

/// A partner of the API.
#[answer]
pub struct PartnerRow {
    pub id: String,
    pub email: String,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub website: Option<String>,
    pub country: Option<String>,
    pub status: String,
    pub source: String,
    pub campaign_id: String,
    pub parent_affiliate_id: Option<String>,
    pub tags: Vec<String>,
    pub payout_method: Option<String>,
    pub payout_ready: bool,
    pub approved_at: Option<String>,
    pub links: Vec<PartnerLinkRow>,
    pub created_at: Option<String>,
}

#[answer]
pub struct PartnerLinkRow {
    pub id: String,
    pub token: String,
    pub url: String,
    pub destination_url: Option<String>,
    pub label: Option<String>,
    pub is_primary: bool,
    pub created_at: Option<String>,
}

/// The answer with one partner.
#[derive(Debug, Deserialize)]
pub struct OnePartner {
    pub affiliate: PartnerRow,
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl PartnerRow {
    /// The name, or else the email address.
    pub fn name(&self) -> String {
        let parts = [self.first_name.as_deref(), self.last_name.as_deref()];
        let name = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if name.trim().is_empty() { self.email.clone() } else { name }
    }

    pub fn path(&self) -> String {
        partner_path(&self.id)
    }
}

/// The path of a partner's page.
pub fn partner_path(id: &str) -> String {
    format!("{PARTNERS_PATH}/{}", encode(id))
}

fn filters(campaigns: &CampaignsById) -> Vec<Filter> {
    let choices = campaigns.values().map(|one| (one.id.clone(), one.name.clone()));
    vec![
        Filter::text("email", "Email address", "ada@example.org"),
        Filter::words("status", "Status", STATUSES),
        Filter::select_or_all("campaign_id", "Campaign", "All", choices),
    ]
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call = Call::new("list_affiliates").filters(query, &["status", "campaign_id", "email", "cursor"]);
    let Some(found) = &if_found(context.read_filtered::<PartnerRow>("data", &call).await)? else {
        return Ok(set_up_first("Partners"));
    };
    let campaigns = load_campaigns(context).await;
    let bar = FilterBar { context, filters: &filters(&campaigns) };
    let table = partner_table(&found.entries, &campaigns);
    let may_create = context.allows("create_affiliate");
    let empty = EmptyState {
        title: if bar.is_active() { "No matching partners" } else { "No partners yet" },
        text: "Partners share their links and earn a commission on what the resulting customers pay. Add the first \
            partner, or import partners from another program.",
        action: may_create.then_some(("/dashboard/affiliate/partners/new", "Add a partner")),
    };
    let body = bar.with_list(found, &table, empty);
    let page = Page::new("Partners", body).actions(maud! {
        @if context.allows("import_affiliates") { a.button href={ (PARTNERS_PATH) "/import" } { "Import" } }
        @if context.allows("list_affiliate_reviews") { a.button href={ (PATH) "/reviews" } { "Reviews" } }
        @if may_create { a.button.primary href={ (PARTNERS_PATH) "/new" } { "Add a partner" } }
    });
    Ok(page.same_as(call).live().into())
}

fn partner_table(partners: &[PartnerRow], campaigns: &CampaignsById) -> Table {
    Table::of("Partners", partners)
        .column("Partner", |partner| {
            maud! {
                a href=(partner.path()) { (partner.name()) }
                @if partner.name() != partner.email { br; span.small.soft { (partner.email) } }
            }
        })
        .column("Status", |partner| Badge::of(&partner.status))
        .column("Campaign", |partner| {
            campaigns.get(&partner.campaign_id).map_or(partner.campaign_id.as_str(), |one| one.name.as_str())
        })
        .column("Link", |partner| {
            let token = partner.links.iter().find(|link| link.is_primary).map(|link| link.token.as_str());
            or_dash(token.map(|token| maud! { code { (token) } }))
        })
        .column("Payout", payout_state)
        .column("Joined", |partner| time_or_dash(partner.created_at.as_deref()))
        .into()
}

/// The payout method, and whether it can be used.
pub fn payout_state(partner: &PartnerRow) -> impl Renderable {
    maud! {
        @match &partner.payout_method {
            Some(method) => { (method_name(method)) @if !partner.payout_ready { br; span.small.soft { "not ready" } } }
            None => { span.soft { "Not set" } }
        }
    }
}

/// Text fields of a partner that can be created and edited.
pub fn profile_fields(partner: &PartnerRow, campaigns: &CampaignsById) -> Vec<Field> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let chosen = (!partner.campaign_id.is_empty()).then_some(partner.campaign_id.as_str());
    vec![
        Field::text("first_name", "First name").value(text(&partner.first_name)),
        Field::text("last_name", "Last name").value(text(&partner.last_name)),
        Field::text("company", "Company").value(text(&partner.company)),
        Field::text("website", "Website").value(text(&partner.website)).placeholder("ada.example"),
        Field::text("country", "Country").value(text(&partner.country)).placeholder("GB").help("Two letters."),
        Field::new("campaign_id", "Campaign", Control::Select(campaign_choices(campaigns, chosen)))
            .value(&partner.campaign_id),
        Field::new("tags", "Tags", Control::Lines { rows: 2 })
            .value(partner.tags.join("\n"))
            .help("One per line, up to 20. Only your team sees them."),
    ]
}

fn create_form(campaigns: &CampaignsById) -> Form<'static> {
    let default = campaigns.values().find(|one| one.is_default).map(|one| one.id.clone()).unwrap_or_default();
    let statuses = choices(&[
        ("active", "Active: the link works at once"),
        ("invited", "Invited: active once the partner accepts"),
        ("pending", "Pending: waiting for approval"),
    ]);
    let mut fields = vec![
        Field::new("email", "Email address", Control::Email).required(),
        Field::new("status", "Status", Control::Radio(statuses)).value("active"),
        Field::new("send_invite", "Notify the partner by email", Control::Checkbox)
            .value("true")
            .help("A welcome, an invitation, or a confirmation of the application, depending on the status."),
        Field::text("token", "Link token")
            .placeholder("ada")
            .help("The end of the partner's link: ?via=ada. Leave empty to derive it from the name."),
        Field::new("paypal_email", "PayPal address", Control::Email)
            .help("Where PayPal payouts are sent. The partner can set it later."),
    ];
    fields.extend(profile_fields(&PartnerRow { campaign_id: default, ..PartnerRow::default() }, campaigns));
    fields.push(Field::new("notes", "Notes", Control::Area { rows: 3 }).help("Only your team sees them."));
    Form::new("create", "Add the partner", fields)
}

async fn new_page(context: &Context<'_>) -> Result<View, Failure> {
    let campaigns = load_campaigns(context).await;
    if campaigns.is_empty() {
        return Ok(set_up_first("Add a partner"));
    }
    let form = create_form(&campaigns);
    let body = maud! { section.card { (form.within(context)) } };
    let page = Page::new("Add a partner", body).below(PARTNERS_PATH, "Partners");
    Ok(page.same_as(Call::new("create_affiliate")).into())
}

async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = create_form(&load_campaigns(context).await).read(context.form())?;
    let created: Result<OnePartner, Failure> = context.read(&Call::new("create_affiliate").json(body)).await;
    let created = created.map_err(|failure| {
        let name = if failure.message.contains("email") { "email" } else { "token" };
        conflict_at(failure, name)
    })?;
    let done = if created.warnings.is_empty() { "created" } else { "not_mailed" };
    Ok(Outcome::done(created.affiliate.path(), done))
}
