//! Campaigns: the commissions that partners earn by.

use super::campaign_fields::{campaign_fields, read_campaign};
use super::overview::button_form;
use super::program::program_currency;
use super::terms::{Campaign, CampaignsById};
use super::{PATH, days_text, object, set_up_first};
use crate::dashboard::prelude::*;

const CAMPAIGNS_PATH: &str = "/dashboard/affiliate/campaigns";

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/campaigns" => list, reads ["list_affiliate_campaigns"];
    "/affiliate/campaigns/new" => new_page, reads ["create_affiliate_campaign"], forms {
        "create" => create, calls "create_affiliate_campaign";
    };
    "/affiliate/campaigns/{id}" => detail, reads ["get_affiliate_campaign"], forms {
        "archive" => archive, calls "update_affiliate_campaign";
        "restore" => change(json!({"archived_at": null})), calls "update_affiliate_campaign";
        "make-default" => change(json!({"make_default": true})), calls "update_affiliate_campaign";
    };
    "/affiliate/campaigns/{id}/edit" => edit_page, reads ["get_affiliate_campaign", "update_affiliate_campaign"], forms {
        "edit" => edit, calls "update_affiliate_campaign";
    };
};

/// Reads all campaigns, also archived ones; none if the role may not, or the program is not set up.
pub async fn load_campaigns(context: &Context<'_>) -> CampaignsById {
    let call = Call::new("list_affiliate_campaigns").query("include_archived", "true");
    let found: List<Campaign> = context.read_list_allowed("data", &call).await.unwrap_or_default();
    found.entries.into_iter().map(|campaign| (campaign.id.clone(), campaign)).collect()
}

/// Choices of campaigns that take partners, and the one that is chosen now.
pub fn campaign_choices(campaigns: &CampaignsById, chosen: Option<&str>) -> Vec<(String, String)> {
    let open = campaigns.values().filter(|one| one.archived_at.is_none() || Some(one.id.as_str()) == chosen);
    let name = |one: &Campaign| if one.is_default { format!("{} (default)", one.name) } else { one.name.clone() };
    open.map(|one| (one.id.clone(), name(one))).collect()
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let all = choices(&[("", "In use"), ("true", "Also archived")]);
    let filters = [Filter::select("include_archived", "Campaigns", all)];
    let call = Call::new("list_affiliate_campaigns").query("include_archived", context.query().get("include_archived"));
    let Some(found) = if_found(context.read_list::<Campaign>("data", &call).await)? else {
        return Ok(set_up_first("Campaigns"));
    };
    let currency = program_currency(context).await;
    let table = Table::of("Campaigns", &found.entries)
        .column("Campaign", |campaign| {
            maud! {
                a href={ (CAMPAIGNS_PATH) "/" (encode(&campaign.id)) } { (campaign.name) } " "
                (campaign_badges(campaign))
            }
        })
        .column("Commission", |campaign| campaign.short_terms(&currency))
        .column("Held for", |campaign| days_text(campaign.hold_days))
        .column("Who can join", |campaign| sentence_case(&campaign.visibility))
        .number("Partners", |campaign| grouped(campaign.affiliate_count.unwrap_or_default()));
    let may_create = context.allows("create_affiliate_campaign");
    let empty = EmptyState {
        title: "No campaigns",
        text: "A campaign defines a commission: its rate, how long it is paid, and how long it is held for refunds.",
        action: may_create.then_some(("/dashboard/affiliate/campaigns/new", "Create a campaign")),
    };
    let bar = FilterBar { context, filters: &filters };
    let body = maud! {
        (bar)
        div data-fragment="list" { @if table.is_empty() { (empty) } @else { (table) } }
    };
    let page = Page::new("Campaigns", body)
        .lead("A campaign defines what its partners earn. New rates apply only to new commissions.")
        .actions(maud! { @if may_create { a.button.primary href={ (CAMPAIGNS_PATH) "/new" } { "New campaign" } } });
    Ok(page.same_as(call).into())
}

fn campaign_badges(campaign: &Campaign) -> impl Renderable {
    maud! {
        @if campaign.is_default { (Badge::new("Default", Tone::Active)) }
        @if campaign.archived_at.is_some() { " " (Badge::new("Archived", Tone::Neutral)) }
    }
}

async fn load(context: &Context<'_>) -> Result<Campaign, Failure> {
    context.read_field("campaign", &Call::new("get_affiliate_campaign").id(context.id())).await
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let campaign = &load(context).await?;
    let currency = program_currency(context).await;
    let may_change = context.allows("update_affiliate_campaign");
    let facts = Facts::new()
        .row("Who can join", sentence_case(&campaign.visibility))
        .row("Applications", if campaign.auto_approve { "Approved automatically" } else { "Require your approval" })
        .row("Created", time_or_dash(campaign.created_at.as_deref()))
        .row("Changed", time_or_dash(campaign.updated_at.as_deref()))
        .row("Id", maud! { code { (campaign.id) } });
    let body = maud! {
        p { (campaign_badges(campaign)) }
        section.card {
            h2 { "What a partner earns" }
            ul.plain { @for sentence in campaign.sentences(&currency) { li { (sentence) } } }
        }
        section.card { h2 { "Details" } (facts) }
        p { a href={ (PATH) "/partners?campaign_id=" (encode(&campaign.id)) } { "Partners of this campaign" } }
        @if may_change { (campaign_actions(context, campaign)) }
    };
    let call = Call::new("get_affiliate_campaign").id(&campaign.id);
    let page = Page::new(&campaign.name, body).below(CAMPAIGNS_PATH, "Campaigns").actions(maud! {
        @if may_change { a.button href={ (CAMPAIGNS_PATH) "/" (encode(&campaign.id)) "/edit" } { "Edit" } }
    });
    Ok(page.same_as(call).into())
}

fn campaign_actions(context: &Context<'_>, campaign: &Campaign) -> impl Renderable {
    let (make_default, archive, restore) = (
        button_form("make-default", "Make it the default"),
        button_form("archive", "Archive"),
        button_form("restore", "Restore"),
    );
    maud! {
        @if campaign.archived_at.is_some() {
            section.card { h2 { "Archived" } p { "It accepts no new partners. Its existing partners still earn from \
                it." } (restore.within(context)) }
        } @else if !campaign.is_default {
            div.columns {
                section.card { h2 { "Default" } p { "New partners join the default campaign unless they choose \
                    another." } (make_default.within(context)) }
                section.card { h2 { "Archive" } p { "An archived campaign accepts no new partners. Its existing \
                    partners still earn from it." } (archive.within(context)) }
            }
        }
    }
}

async fn archive(context: &Context<'_>) -> Result<Outcome, Failure> {
    change(context, json!({"archived_at": context.now().to_string()})).await
}

async fn change(context: &Context<'_>, body: Value) -> Result<Outcome, Failure> {
    context.change_seen(Call::new("update_affiliate_campaign").id(context.id()).json(body)).await?;
    Ok(Outcome::done(format!("{CAMPAIGNS_PATH}/{}", encode(context.id())), "changed"))
}

fn create_form(currency: &str) -> Form<'static> {
    let initial = Campaign { visibility: "public".into(), ..Campaign::initial() };
    let mut fields = campaign_fields(currency, &initial);
    fields.push(Field::new("make_default", "Make it the default for new partners", Control::Checkbox));
    Form::new("create", "Create the campaign", fields)
}

async fn new_page(context: &Context<'_>) -> Result<View, Failure> {
    let currency = program_currency(context).await;
    let mut form = create_form(&currency);
    form.fields.push(form_key::field(context));
    let body = maud! { section.card { (form.within(context)) } };
    let page = Page::new("New campaign", body).below(CAMPAIGNS_PATH, "Campaigns");
    Ok(page.same_as(Call::new("create_affiliate_campaign")).into())
}

async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let currency = program_currency(context).await;
    let body = read_campaign(&create_form(&currency), context.form(), &currency)?;
    let idempotency_key = form_key::request_key(context, &[body.to_string().as_bytes()]);
    let call = Call { idempotency_key, ..Call::new("create_affiliate_campaign").json(body) };
    let campaign: Campaign = context.read_field("campaign", &call).await?;
    Ok(Outcome::done(format!("{CAMPAIGNS_PATH}/{}", encode(&campaign.id)), "created"))
}

async fn edit_page(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_affiliate_campaign").id(context.id());
    let (campaign, version): (Campaign, _) = context.read_field_version("campaign", &call).await?;
    let campaign = &campaign;
    let currency = program_currency(context).await;
    let mut form = Form::new("edit", "Save", campaign_fields(&currency, campaign));
    form.fields.push(seen_version::field(&version));
    let path = format!("{CAMPAIGNS_PATH}/{}", encode(&campaign.id));
    let body = maud! {
        section.card {
            h2 { "Current terms" }
            ul.plain { @for sentence in campaign.sentences(&currency) { li { (sentence) } } }
            p.soft.small { "A change applies only to new commissions. Existing commissions do not change." }
        }
        section.card { (form.within(context)) }
    };
    let call = Call::new("update_affiliate_campaign").id(&campaign.id).json(object([]));
    let page = Page::new("Edit the campaign", body).below(CAMPAIGNS_PATH, "Campaigns").below(path, &campaign.name);
    Ok(page.same_as(call).into())
}

async fn edit(context: &Context<'_>) -> Result<Outcome, Failure> {
    let currency = program_currency(context).await;
    let form = Form::new("edit", "Save", campaign_fields(&currency, &Campaign::default()));
    let body = read_campaign(&form, context.form(), &currency)?;
    change(context, body).await
}
