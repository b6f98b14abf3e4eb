//! The program and its payment processor, as the API shows them to the owner.

use std::collections::BTreeMap;

use super::terms::Campaign;
use crate::dashboard::kit::text::input_value;
use crate::dashboard::prelude::*;

/// The program with its processor, and what is missing before it can go live.
#[derive(Debug, Clone, Deserialize)]
pub struct ProgramState {
    pub program: AffiliateProgram,
    pub processor: Option<PaymentProcessor>,
    /// URL for the processor's events.
    pub webhook_url: String,
    #[serde(default)]
    pub missing: Vec<String>,
}

#[answer]
pub struct AffiliateProgram {
    pub id: String,
    pub status: String,
    pub mode: String,
    pub website_url: String,
    pub currency: String,
    pub attribution: String,
    pub new_customers_only: bool,
    pub metadata_key: String,
    pub exclude_key: String,
    pub default_campaign_id: Option<String>,
    pub min_payout: BTreeMap<String, i64>,
    pub allowed_methods: Vec<String>,
    pub payout_after_refund: String,
    pub count_invoiceless_payments: bool,
    pub share_customer_email: bool,
    pub suspended_accrue: bool,
    pub allowed_origins: Vec<String>,
    pub banned_referrers: Vec<String>,
    pub publishable_key: String,
    pub portal_domain: Option<String>,
    pub portal_domain_error: Option<String>,
    pub terms_url: Option<String>,
    pub mail_from: Option<String>,
    pub mail_error: Option<String>,
    pub velocity_per_hour: i64,
    pub max_bounties_per_day: i64,
}

#[answer]
pub struct PaymentProcessor {
    pub api_base: String,
    pub account_id: Option<String>,
    pub livemode: Option<bool>,
    pub has_key: bool,
    pub webhook_secrets_count: u32,
    pub webhook_url: String,
    pub last_event_at: Option<String>,
    pub failed_events: u64,
}

pub fn program_call() -> Call {
    Call::new("get_affiliate_program")
}

/// Reads the program.
///
/// # Errors
/// There is none (404), or the operation failed.
pub async fn load_program(context: &Context<'_>) -> Result<ProgramState, Failure> {
    context.read(&program_call()).await
}

/// The currency of the program; US dollars if the role may not read it.
pub async fn program_currency(context: &Context<'_>) -> String {
    if !context.allows("get_affiliate_program") {
        return "usd".into();
    }
    load_program(context).await.map_or_else(|_| "usd".into(), |state| state.program.currency)
}

/// Reads the default campaign; `None` if there is none yet. Before the program is set up completely the API shows no
/// campaigns.
pub async fn load_default_campaign(context: &Context<'_>, program: &AffiliateProgram) -> Option<Campaign> {
    let call = Call::new("get_affiliate_campaign").id(program.default_campaign_id.as_deref()?);
    context.read_field("campaign", &call).await.ok()
}

/// Text to copy, with a button for it.
pub fn copy_text(text: &str) -> impl Renderable {
    maud! {
        div.secret {
            code { (text) }
            button.button type="button" data-copy=(input_value(text)) hidden { "Copy" }
        }
    }
}

/// Makes `stx` usable before the script has loaded.
const QUEUE: &str = r#"<script>
  !function (w, q, s, over) {
    if (w.stx) return;
    s = w.stx = { q: q, referral: "", affiliate: null };
    ["ready", "consent", "identify", "referralSignup"].forEach(function (name) {
      s[name] = function (value) { q.push([name, value]); over && end(); };
    });
    s.ready.then = function (yes, no) { return new Promise(s.ready).then(yes, no); };
    function end() {
      over = 1;
      q.splice(0).forEach(function (call) { call[0] == "ready" ? setTimeout(call[1], 0, s) : q.push(call); });
    }
    setTimeout(end, 3000);
    w.addEventListener("error", function (e) { /\/stx\.js/.test(e.target.src) && end(); }, true);
  }(window, []);
</script>"#;

/// The tags of the browser script, for the pages of the website.
pub fn install_snippet(context: &Context<'_>, program: &AffiliateProgram) -> impl Renderable {
    let (base, key) = (context.backend.base_url(), &program.publishable_key);
    let text = format!("{QUEUE}\n<script async src=\"{base}/stx.js\" data-key=\"{key}\"></script>");
    maud! {
        p { "Put these two tags into the " code { "<head>" } " of every page of your website." }
        pre tabindex="0" { code { (text) } }
        div.buttons {
            button.button type="button" data-copy=(input_value(&text)) hidden { "Copy" }
        }
        p {
            "Then hand " code { "stx.referral" } " to the checkout as " code { "client_reference_id" }
            ". " a href="/docs/stx" { "How the script works" }
        }
    }
}
