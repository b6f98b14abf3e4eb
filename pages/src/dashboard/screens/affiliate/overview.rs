//! The overview of the program: the steps of its set-up, or its state once it has been live.

use futures_util::future::join;

use super::program::{
    AffiliateProgram, ProgramState, install_snippet, load_default_campaign, load_program, program_call,
};
use super::terms::Campaign;
use super::{PATH, processor, sentence, setup};
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate" => show, reads ["get_affiliate_program"], forms {
        "enable" => setup::enable, calls "enable_affiliate_program";
        "connect" => processor::connect(PATH), calls "connect_affiliate_processor";
        "test" => processor::test, calls "test_affiliate_processor";
        "campaign" => setup::set_campaign, calls "set_default_affiliate_campaign";
        "go-live" => go_live, calls "start_affiliate_program";
    };
    "/affiliate/pause" => pause_page, reads ["get_affiliate_program"], forms {
        "pause" => pause, calls "pause_affiliate_program";
    };
    "/affiliate/install" => install, reads ["get_affiliate_program"];
};

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let Some(state) = if_found(load_program(context).await)? else { return Ok(setup::first_step(context)) };
    if state.program.status == "setup" {
        return Ok(setup::steps(context, &state).await);
    }
    let (waiting, campaign) = join(OwnerTasks::load(context), load_default_campaign(context, &state.program)).await;
    let overview = program_overview(context, &state, &waiting, campaign.as_ref());
    let page = Page::new("Affiliate program", overview)
        .lead("Partners refer customers through their links, and earn a commission on what those customers pay.")
        .actions(program_actions(context, &state.program));
    Ok(page.same_as(program_call()).into())
}

/// The form of a button without fields.
pub fn button_form(name: &'static str, label: &'static str) -> Form<'static> {
    Form::new(name, label, Vec::new())
}

fn program_actions(context: &Context<'_>, program: &AffiliateProgram) -> impl Renderable {
    let go_live = button_form("go-live", "Go live again");
    maud! {
        @if context.allows("update_affiliate_program") {
            a.button href={ (PATH) "/settings" } { "Settings" }
        }
        @if program.status == "paused" {
            @if context.allows("start_affiliate_program") { (go_live.within(context)) }
        } @else if context.allows("pause_affiliate_program") {
            a.button href={ (PATH) "/pause" } { "Pause" }
        }
    }
}

/// The tasks that wait for the owner.
#[derive(Debug, Default)]
struct OwnerTasks {
    has_reviews: bool,
    has_applications: bool,
    draft_id: Option<String>,
}

#[answer]
struct StatusOnly {
    id: String,
    status: String,
}

impl OwnerTasks {
    async fn load(context: &Context<'_>) -> Self {
        let read = |call: Call| async move {
            context.read_list_allowed::<StatusOnly>("data", &call).await.unwrap_or_default().entries
        };
        let reviews = read(Call::new("list_affiliate_reviews").query("status", "open").query("limit", "1")).await;
        let applications = read(Call::new("list_affiliates").query("status", "pending").query("limit", "1")).await;
        let runs = read(Call::new("list_affiliate_payout_runs").query("limit", "5")).await;
        Self {
            has_reviews: !reviews.is_empty(),
            has_applications: !applications.is_empty(),
            draft_id: runs.into_iter().find(|run| run.status == "draft").map(|run| run.id),
        }
    }

    fn is_empty(&self, state: &ProgramState) -> bool {
        let failed = state.processor.as_ref().map_or(0, |processor| processor.failed_events);
        !self.has_reviews && !self.has_applications && self.draft_id.is_none() && failed == 0
    }
}

fn program_overview(
    context: &Context<'_>,
    state: &ProgramState,
    waiting: &OwnerTasks,
    campaign: Option<&Campaign>,
) -> impl Renderable {
    let program = &state.program;
    maud! {
        @if program.status == "paused" {
            (Notice { tone: Tone::Warning, text: "The program is paused: visits and new referrals are not recorded. Existing customers still earn commissions." })
        }
        @if program.mode == "test" {
            (Notice { tone: Tone::Active, text: "Test mode: only the processor's test payments count." })
        }
        (waiting_view(context, waiting, state))
        div.columns {
            section.card {
                h2 { "Program" }
                (program_facts(program))
                p { a href={ (PATH) "/install" } { "Install the script on your website" } }
            }
            section.card {
                h2 { "Default commission" }
                @match campaign {
                    Some(campaign) => {
                        ul.plain { @for sentence in campaign.sentences(&program.currency) { li { (sentence) } } }
                        p { a href={ (PATH) "/campaigns/" (encode(&campaign.id)) } { (campaign.name) } }
                    }
                    None => { p.soft { "There is no default campaign." } }
                }
            }
            section.card {
                h2 { "Payment processor" }
                (processor::processor_card(context, state, true))
            }
            section.card {
                h2 { "Ledger" }
                p.soft { "Every amount can be checked against the processor's reports." }
                ul.plain {
                    @if context.allows("audit_affiliate_program") { li { a href={ (PATH) "/audit" } { "Audit the ledger" } } }
                    @if context.allows("begin_affiliate_backfill") { li { a href={ (PATH) "/backfill" } { "Import earlier payments" } } }
                    @if context.allows("import_affiliates") { li { a href={ (PATH) "/partners/import" } { "Import partners" } } }
                    @if context.allows("list_affiliate_reviews") { li { a href={ (PATH) "/reviews?status=" } { "All reviews" } } }
                }
            }
        }
    }
}

fn program_facts(program: &AffiliateProgram) -> Facts {
    let portal = program.portal_domain.as_ref().map(|host| {
        let (host, error) = (host.clone(), program.portal_domain_error.as_deref().map(sentence));
        maud! { (host) @if let Some(error) = &error { span.error { " " (error) } } }
    });
    let mail = program.mail_error.as_deref().map(sentence);
    Facts::new()
        .row("Status", Badge::of(&program.status))
        .row("Website", maud! { a href=(program.website_url) rel="noreferrer" { (program.website_url) } })
        .row("Currency", program.currency.to_uppercase())
        .row("Credit", attribution_text(&program.attribution))
        .row("Publishable key", maud! { code { (program.publishable_key) } })
        .optional("Portal", portal)
        .optional("Email to partners", mail)
}

/// The rule by which a visit gets the credit.
pub fn attribution_text(word: &str) -> &'static str {
    if word == "last_click" { "The last link that the visitor used" } else { "The first link that the visitor used" }
}

fn waiting_view(context: &Context<'_>, waiting: &OwnerTasks, state: &ProgramState) -> Fragment {
    if waiting.is_empty(state) {
        return Fragment::default();
    }
    let failed = state.processor.as_ref().map_or(0, |processor| processor.failed_events);
    let may_approve = context.allows("approve_affiliate_payout_run");
    let run_text =
        if may_approve { "A payout run is waiting for your approval" } else { "A payout run is waiting for approval" };
    Fragment::new(maud! {
        section.card {
            h2 { "Waiting for a decision" }
            ul.plain {
                @if waiting.has_reviews { li { a href={ (PATH) "/reviews" } { "Referrals are held for review" } } }
                @if waiting.has_applications {
                    li { a href={ (PATH) "/partners?status=pending" } { "Partners are waiting for approval" } }
                }
                @if let Some(id) = &waiting.draft_id {
                    li { a href={ (PATH) "/payouts/runs/" (encode(id)) } { (run_text) } }
                }
                @if failed > 0 {
                    li {
                        a href={ (PATH) "/processor/events?status=failed" } {
                            @if failed == 1 { "1 event of the processor failed" } @else { (failed) " events of the processor failed" }
                        }
                    }
                }
            }
        }
    })
}

async fn go_live(context: &Context<'_>) -> Result<Outcome, Failure> {
    match context.perform(&Call::new("start_affiliate_program")).await {
        Ok(_) => Ok(Outcome::done(PATH, "went_live")),
        Err(mut failure) => {
            let missing = failure.details["missing"].as_array().into_iter().flatten();
            let words: Vec<_> = missing.filter_map(serde_json::Value::as_str).map(setup::missing_text).collect();
            if !words.is_empty() {
                failure.message = format!("Before the program can go live: {}", words.join("; "));
            }
            Err(failure)
        }
    }
}

async fn pause_page(context: &Context<'_>) -> Result<View, Failure> {
    let form = button_form("pause", "Pause the program").danger();
    let body = maud! {
        div.card {
            p { "While the program is paused:" }
            ul {
                li { "visits through partners' links are not recorded" }
                li { "new referrals are refused, including those from checkouts" }
                li { "customers who were referred before still earn their partners commissions" }
                li { "payout runs can be drafted, approved and paid" }
            }
            p { "You can go live again at any time." }
            (form.within(context))
        }
    };
    Ok(Page::new("Pause the program", body)
        .below(PATH, "Affiliate program")
        .same_as(Call::new("pause_affiliate_program"))
        .into())
}

async fn pause(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("pause_affiliate_program"), PATH, "paused").await
}

async fn install(context: &Context<'_>) -> Result<View, Failure> {
    let state = load_program(context).await?;
    let snippet = install_snippet(context, &state.program);
    let (origins, website) = (&state.program.allowed_origins, &state.program.website_url);
    let body = maud! {
        section.card { (snippet) }
        section.card {
            h2 { "Pages that can record visits" }
            @if origins.is_empty() {
                p { "Only pages of " code { (website) } " may." }
            } @else {
                ul { @for origin in origins { li { code { (origin) } } } }
            }
            @if context.allows("update_affiliate_program") {
                p { a href={ (PATH) "/settings" } { "Change the allowed origins" } }
            }
        }
    };
    let page = Page::new("Install the script", body)
        .below(PATH, "Affiliate program")
        .lead("The script remembers which partner's link brought a visitor, and passes it to your checkout.");
    Ok(page.same_as(program_call()).into())
}
