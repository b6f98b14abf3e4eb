//! One partner: profile, links, numbers, payouts, postbacks, and what can be done with it.

use futures_util::future::join;

use super::campaigns::load_campaigns;
use super::partner_totals::PartnerTotals;
use super::partners::{OnePartner, PARTNERS_PATH, PartnerRow, partner_path, payout_state};
use super::program::{copy_text, program_currency};
use super::terms::{Campaign, CampaignsById};
use super::{PATH, PartnerNames};
use crate::dashboard::kit::money::percent_text;
use crate::dashboard::kit::row_button::row_button;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/partners/{id}" => show, reads ["get_affiliate"], forms {
        "login-link" => create_login_link, calls "create_affiliate_login_link";
    };
};

/// The owner's view of a partner.
#[answer]
pub struct PartnerInside {
    pub notes: Option<String>,
    pub payout_destination: Option<String>,
    pub postback_url: Option<String>,
    pub postback_secret: Option<String>,
    pub email_opt_out: bool,
    pub commission_override: Option<CommissionOverride>,
}

/// A partner's own rate.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CommissionOverride {
    pub commission_bps: i64,
}

pub async fn load_partner(context: &Context<'_>, id: &str) -> Result<PartnerRow, Failure> {
    let found: OnePartner = context.read(&Call::new("get_affiliate").id(id)).await?;
    Ok(found.affiliate)
}

/// Reads a partner with its version, for forms that change it.
pub async fn load_partner_version(context: &Context<'_>, id: &str) -> Result<(PartnerRow, String), Failure> {
    let (found, version): (OnePartner, _) = context.read_version(&Call::new("get_affiliate").id(id)).await?;
    Ok((found.affiliate, version))
}

/// Reads what only the owner may see; `None` if the role may not.
pub async fn load_inside(context: &Context<'_>, id: &str) -> Result<Option<PartnerInside>, Failure> {
    if !context.allows("get_affiliate_inside") {
        return Ok(None);
    }
    context.read(&Call::new("get_affiliate_inside").id(id)).await.map(Some)
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let inside = &load_inside(context, &partner.id).await?;
    let (campaigns, totals) = join(load_campaigns(context), PartnerTotals::load(context, &partner.id)).await;
    let currency = program_currency(context).await;
    let parents = PartnerNames::load(context, partner.parent_affiliate_id.iter().map(String::as_str)).await;
    let postbacks = load_postbacks(context, &partner.id, inside.as_ref()).await;
    let view = PartnerView {
        context,
        partner,
        inside: inside.as_ref(),
        campaigns: &campaigns,
        currency: &currency,
        parents: &parents,
    };
    let totals = totals?;
    let body = maud! {
        (status_notice(partner))
        section.card { h2 { "Statistics" } (totals.view()) (view.lists()) }
        section { h2 { "Links" } (view.links()) }
        div.columns {
            section.card { h2 { "Profile" } (view.profile()) }
            section.card { h2 { "Commission" } (commission_card(&view)) }
            section.card { h2 { "Payout" } (payout_card(&view)) }
            section.card { h2 { "Portal" } (portal_card(&view)) }
        }
        @if let Some(inside) = &inside { section { h2 { "Postbacks" } (postback_section(partner, inside, &postbacks)) } }
    };
    let call = Call::new("get_affiliate").id(&partner.id);
    let page = Page::new(partner.name(), body)
        .below(PARTNERS_PATH, "Partners")
        .lead(partner.email.clone())
        .actions(partner_actions(context, partner));
    Ok(page.same_as(call).live().into())
}

fn status_notice(partner: &PartnerRow) -> Option<Notice<'static>> {
    let (tone, text) = match partner.status.as_str() {
        "pending" => {
            (Tone::Warning, "This partner has applied and is waiting for approval. The links do not work yet.")
        }
        "invited" => {
            (Tone::Active, "This partner has been invited but has not accepted yet. The links do not work yet.")
        }
        "suspended" => {
            (Tone::Bad, "This partner is suspended: the links earn no credit, and payout runs skip the partner.")
        }
        "rejected" => (Tone::Bad, "This partner's application was rejected."),
        _ => return None,
    };
    Some(Notice { tone, text })
}

fn partner_actions(context: &Context<'_>, partner: &PartnerRow) -> impl Renderable {
    let path = partner.path();
    let status = partner.status.as_str();
    // The status from which an action leads on, and whether it is the main one.
    let is_open = matches!(status, "pending" | "invited");
    maud! {
        @if context.allows("update_affiliate") { a.button href={ (path) "/edit" } { "Edit" } }
        @if matches!(status, "active" | "pending" | "invited") && context.allows("suspend_affiliate") {
            a.button href={ (path) "/suspend" } { "Suspend" }
        }
        @if is_open && context.allows("reject_affiliate") { a.button href={ (path) "/reject" } { "Reject" } }
        @if (is_open || status == "rejected") && context.allows("approve_affiliate") {
            a.button.primary href={ (path) "/approve" } { "Approve" }
        }
        @if status == "suspended" && context.allows("reactivate_affiliate") {
            a.button.primary href={ (path) "/reactivate" } { "Reactivate" }
        }
        @if context.allows("delete_affiliate") { a.button href={ (path) "/delete" } { "Delete" } }
    }
}

struct PartnerView<'p> {
    context: &'p Context<'p>,
    partner: &'p PartnerRow,
    inside: Option<&'p PartnerInside>,
    campaigns: &'p CampaignsById,
    currency: &'p str,
    parents: &'p PartnerNames,
}

impl PartnerView<'_> {
    fn campaign(&self) -> Option<&Campaign> {
        self.campaigns.get(&self.partner.campaign_id)
    }

    fn lists(&self) -> impl Renderable {
        let id = encode(&self.partner.id);
        let (ledger, path) = (self.context.allows("list_affiliate_ledger"), partner_path(&self.partner.id));
        maud! {
            p.links-row {
                a href={ (PATH) "/referrals?affiliate_id=" (id) } { "Referrals" }
                a href={ (PATH) "/commissions?affiliate_id=" (id) } { "Commissions" }
                @if ledger { a href={ (path) "/ledger" } { "Ledger" } }
                a href={ (PATH) "/payouts/all?affiliate_id=" (id) } { "Payouts" }
            }
        }
    }

    fn profile(&self) -> Facts {
        let partner = self.partner;
        let parent = partner.parent_affiliate_id.as_deref().map(|id| maud! { (self.parents.link(id)) });
        let notes = self.inside.and_then(|inside| inside.notes.clone());
        let tags = partner.tags.clone();
        Facts::new()
            .row("Status", Badge::of(&partner.status))
            .optional("Company", partner.company.clone())
            .optional("Website", partner.website.clone())
            .optional("Country", partner.country.clone())
            .optional("Recruited by", parent)
            .optional("Tags", (!tags.is_empty()).then(|| maud! { @for tag in &tags { span.badge { (tag) } " " } }))
            .row("Added by", source_text(&partner.source))
            .row("Joined", time_or_dash(partner.created_at.as_deref()))
            .row("Approved", time_or_dash(partner.approved_at.as_deref()))
            .optional("Notes", notes)
            .row("Id", maud! { code { (partner.id) } })
    }

    fn links(&self) -> impl Renderable {
        let (context, path) = (self.context, self.partner.path());
        let base = path.as_str();
        let may_delete = context.allows("delete_affiliate_link");
        let table = Table::of("Links", &self.partner.links)
            .column("Address", |link| maud! { a href=(link.url) rel="noreferrer" { (link.url) } })
            .column("Token", |link| maud! { code { (link.token) } })
            .column("Label", |link| {
                maud! {
                    @if link.is_primary { (Badge::new("Primary", Tone::Active)) }
                    @if let Some(label) = &link.label { " " (label) }
                }
            })
            .column("Created", |link| time_or_dash(link.created_at.as_deref()))
            .column("", |link| {
                maud! {
                    @if may_delete && !link.is_primary {
                        a href={ (base) "/links/" (encode(&link.id)) "/delete" } { "Delete" }
                    }
                }
            });
        let may_create = context.allows("create_affiliate_link");
        maud! {
            (table)
            @if may_create { p { a.button href={ (path) "/links/new" } { "Add a link" } } }
        }
    }
}

/// How a partner came into the program.
fn source_text(source: &str) -> String {
    match source {
        "api" => "API or dashboard".into(),
        "portal" => "Application in the portal".into(),
        other => sentence_case(other),
    }
}

fn commission_card(view: &PartnerView<'_>) -> impl Renderable {
    let own = view.inside.and_then(|inside| inside.commission_override.as_ref());
    maud! {
        @if let Some(own) = own {
            p { strong { (percent_text(own.commission_bps)) } " of each payment: the partner's own rate, instead of \
                the campaign's." }
        }
        @match view.campaign() {
            Some(campaign) => {
                p.soft.small { "Campaign " a href={ (PATH) "/campaigns/" (encode(&campaign.id)) } { (campaign.name) } }
                ul.plain { @for sentence in campaign.sentences(view.currency) { li { (sentence) } } }
            }
            None => { p.soft { "The campaign cannot be shown." } }
        }
    }
}

fn payout_card(view: &PartnerView<'_>) -> impl Renderable {
    let destination = view.inside.and_then(|inside| inside.payout_destination.clone());
    let facts = Facts::new()
        .row("Method", payout_state(view.partner))
        .optional("Destination", destination)
        .row("Ready", if view.partner.payout_ready { "Yes" } else { "No: payout runs skip this partner" });
    maud! {
        (facts)
        @if view.context.allows("set_affiliate_payout_method") {
            p { a.button href={ (view.partner.path()) "/payout-method" } { "Set the payout method" } }
        }
    }
}

fn portal_card(view: &PartnerView<'_>) -> impl Renderable {
    let context = view.context;
    let opted_out = view.inside.is_some_and(|inside| inside.email_opt_out);
    maud! {
        p { "Partners see their links and earnings in the portal." @if opted_out { " This partner gets only requested \
            emails." } }
        @if context.allows("create_affiliate_login_link") && view.partner.status != "rejected" {
            (row_button(context, "login-link", "Create a sign-in link", ("now", "1")))
            p.small.soft { "The link works once, within a minute. Anyone who opens it is signed in as the partner." }
        }
    }
}

#[answer]
struct PartnerPostback {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    attempts_count: u32,
    response_status: Option<u16>,
    error: Option<String>,
    created_at: Option<String>,
    next_attempt_at: Option<String>,
}

async fn load_postbacks(context: &Context<'_>, id: &str, inside: Option<&PartnerInside>) -> Vec<PartnerPostback> {
    if inside.is_none_or(|inside| inside.postback_url.is_none()) {
        return Vec::new();
    }
    let call = Call::new("list_affiliate_postbacks").id(id).query("limit", "10");
    context.read_list_allowed("data", &call).await.unwrap_or_default().entries
}

fn postback_section(partner: &PartnerRow, inside: &PartnerInside, sent: &[PartnerPostback]) -> Fragment {
    let Some(url) = &inside.postback_url else {
        return Fragment::new(maud! {
            p.soft {
                "This partner has no postback URL. "
                a href={ (partner.path()) "/edit" } { "Set one" }
                " to send the partner's own referrals and commissions to it."
            }
        });
    };
    let table = Table::of("Postbacks", sent)
        .column("Event", |postback| maud! { code { (postback.kind) } })
        .column("Status", |postback| Badge::of(&postback.status))
        .number("Attempts", |postback| postback.attempts_count)
        .column("Response", |postback| match (postback.response_status, &postback.error) {
            (Some(status), _) => status.to_string(),
            (None, Some(error)) => error.clone(),
            (None, None) => "–".into(),
        })
        .column("Created", |postback| time_or_dash(postback.created_at.as_deref()))
        .column("Next attempt", |postback| time_or_dash(postback.next_attempt_at.as_deref()));
    Fragment::new(maud! {
        p { "Sent to " code { (url) } }
        @if let Some(secret) = &inside.postback_secret {
            details { summary { "Signing secret" } (copy_text(secret)) }
        }
        @if table.is_empty() { p.soft { "Nothing has been sent yet." } } @else { (table) }
    })
}

#[derive(Debug, Deserialize)]
struct LoginLink {
    url: String,
    expires_at: Option<String>,
}

async fn create_login_link(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("create_affiliate_login_link").id(context.id());
    let link: LoginLink = context.read(&call).await?;
    let path = partner_path(context.id());
    let body = maud! {
        div.card {
            p { "Open this link within a minute, or send it to the partner in a way that arrives as quickly. It works \
                once and is not shown again." }
            (copy_text(&link.url))
            p.soft.small { "Expires " (time_or_dash(link.expires_at.as_deref())) }
            div.buttons {
                a.button.primary href=(link.url) rel="noreferrer" { "Open the portal as this partner" }
                a.button href=(path) { "Back to the partner" }
            }
        }
    };
    let page = Page::new("Sign-in link", body).below(PARTNERS_PATH, "Partners").same_as(call);
    Ok(Outcome::once(page))
}
