//! Set-up of the program in four steps: turn it on, connect the processor, set the commission, go live.

use super::PATH;
use super::campaign_fields::{campaign_fields, read_campaign};
use super::overview::button_form;
use super::processor::{connect_form, processor_card};
use super::program::{
    AffiliateProgram, ProgramState, install_snippet, load_default_campaign, load_program, program_call,
};
use super::terms::Campaign;
use crate::dashboard::page::render;
use crate::dashboard::prelude::*;

const LEAD: &str = "Partners refer customers through their links, and earn a commission on what those customers pay. \
    Set up the program in four steps.";

/// The step that is missing, for people.
pub fn missing_text(step: &str) -> &'static str {
    match step {
        "processor" => "connect the payment processor",
        "campaign" => "set the default commission",
        _ => "finish the setup",
    }
}

/// A step of the set-up.
fn setup_step(number: u8, title: &'static str, is_done: bool, content: String) -> impl Renderable {
    let badge = if is_done { Badge::new("Done", Tone::Good) } else { Badge::new("To do", Tone::Neutral) };
    maud! {
        section.card.setup-step {
            h2 { span.setup-number aria-hidden="true" { (number) } (title) " " (badge) }
            (crate::dashboard::context::raw(&content))
        }
    }
}

fn enable_form() -> Form<'static> {
    let website = Field::new("website_url", "Website", Control::Url)
        .required()
        .placeholder("https://shop.example")
        .help("The website that partners' links lead to.");
    let currency = Field::text("currency", "Currency").required().value("usd").help(
        "Three letters. Flat amounts, bounties and caps are in this currency; shares of sales stay in the \
            currency of the sale.",
    );
    let mode = Field::new(
        "mode",
        "Payments that count",
        Control::Radio(choices(&[("live", "Live payments"), ("test", "Test payments, to try out the program")])),
    )
    .value("live");
    Form::new("enable", "Turn the program on", vec![website, currency, mode])
}

/// The page before there is a program.
pub fn first_step(context: &Context<'_>) -> View {
    let form = enable_form();
    let first = setup_step(
        1,
        "Turn the program on",
        false,
        if context.allows("enable_affiliate_program") {
            render(form.within(context))
        } else {
            render(maud! { p { "Only an owner or admin of the account can turn on the program." } })
        },
    );
    let body = maud! {
        (first)
        section.card {
            h2 { "Then" }
            ol.plain-steps start="2" {
                li { "Connect the payment processor, so that paid invoices become commissions." }
                li { "Set the commission." }
                li { "Put the script on your website and go live." }
            }
        }
    };
    Page::new("Affiliate program", body).lead(LEAD).same_as(Call::new("enable_affiliate_program")).into()
}

/// The page while the set-up is not finished.
pub async fn steps(context: &Context<'_>, state: &ProgramState) -> View {
    let campaign = load_default_campaign(context, &state.program).await;
    let is_missing = |step: &str| state.missing.iter().any(|missing| missing == step);
    let program = &state.program;
    let steps = [
        setup_step(1, "Turn the program on", true, render(enabled_step(context, program))),
        setup_step(
            2,
            "Connect the payment processor",
            !is_missing("processor"),
            render(processor_step(context, state)),
        ),
        setup_step(
            3,
            "Set the commission",
            !is_missing("campaign"),
            render(campaign_step(context, program, campaign.as_ref(), !is_missing("campaign"))),
        ),
        setup_step(4, "Go live", false, render(live_step(context, state))),
    ];
    let body = maud! { @for step in &steps { (step) } };
    Page::new("Affiliate program", body).lead(LEAD).same_as(program_call()).into()
}

fn enabled_step(context: &Context<'_>, program: &AffiliateProgram) -> impl Renderable {
    let mode = if program.mode == "test" { "Test payments" } else { "Live payments" };
    maud! {
        p {
            "Links lead to " code { (program.website_url) } ". " (mode) " count, and the currency is "
            (program.currency.to_uppercase()) ". "
            @if context.allows("update_affiliate_program") { a href={ (PATH) "/settings" } { "Change this" } }
        }
    }
}

fn processor_step(context: &Context<'_>, state: &ProgramState) -> impl Renderable {
    let form = connect_form();
    maud! {
        @if state.processor.is_some() {
            (processor_card(context, state, true))
        } @else if context.allows("connect_affiliate_processor") {
            (super::processor::event_address(&state.webhook_url))
            (form.within(context))
        } @else {
            p { "Only an owner or admin of the account can connect it." }
        }
    }
}

fn campaign_step(
    context: &Context<'_>,
    program: &AffiliateProgram,
    campaign: Option<&Campaign>,
    is_set: bool,
) -> impl Renderable {
    let form = campaign_form(&program.currency, campaign);
    maud! {
        @if let Some(campaign) = campaign {
            ul.plain { @for sentence in campaign.sentences(&program.currency) { li { (sentence) } } }
        } @else if is_set {
            p { "The default commission is set. Its terms are shown once the processor is connected." }
        }
        @if context.allows("set_default_affiliate_campaign") {
            @if is_set && context.failure_of("campaign").is_none() {
                details { summary { "Change the commission" } (form.within(context)) }
            } @else {
                (form.within(context))
            }
        }
    }
}

/// The short form of the default campaign; everything else is on its own page.
fn campaign_form(currency: &str, campaign: Option<&Campaign>) -> Form<'static> {
    let simple = [
        "name",
        "commission_type",
        "commission_bps",
        "commission_flat_cents",
        "commission_duration",
        "recurring_months",
        "hold_days",
        "cookie_days",
    ];
    let initial = Campaign { name: "Partners".into(), ..Campaign::initial() };
    let mut fields = campaign_fields(currency, campaign.unwrap_or(&initial));
    fields.retain(|field| simple.contains(&field.name.as_ref()));
    Form::new("campaign", "Save the commission", fields)
}

fn live_step<'a>(context: &'a Context<'a>, state: &'a ProgramState) -> impl Renderable {
    let snippet = install_snippet(context, &state.program);
    let form = button_form("go-live", "Go live");
    maud! {
        details { summary { "The script for your website" } (snippet) }
        @if state.missing.is_empty() {
            p { "From then on visits and referrals are recorded, and paid invoices become commissions. You can pause the program at any time." }
            @if context.allows("start_affiliate_program") { (form.within(context)) }
        } @else {
            p { "First:" }
            ul { @for step in &state.missing { li { (missing_text(step)) } } }
        }
    }
}

/// Turns the program on.
pub async fn enable(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = enable_form().read(context.form())?;
    context.act(&Call::new("enable_affiliate_program").json(body), PATH, "changed").await
}

/// Sets the default campaign.
pub async fn set_campaign(context: &Context<'_>) -> Result<Outcome, Failure> {
    let state = load_program(context).await?;
    let form = campaign_form(&state.program.currency, None);
    let body = read_campaign(&form, context.form(), &state.program.currency)?;
    context.act(&Call::new("set_default_affiliate_campaign").json(body), PATH, "changed").await
}
