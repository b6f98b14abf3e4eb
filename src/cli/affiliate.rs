//! `postrider admin affiliate`: an owner's operations on the affiliate program, asked over the operator's socket.
//!
//! ```text
//! command ─► method, path, body ─► admin.sock ─► the endpoint's own code ─► status, body ─► standard output
//! ```
//!
//! What is printed is what the endpoint answers (affiliate-admin.md 1): exit status 0 when it was done, 1 when it was
//! refused, 2 when the command is none.

mod payouts;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use self::payouts::{PayoutCommand, RunCommand};
use crate::admin::{AdminError, AdminRequest};

/// Where the endpoints are.
const PROGRAM: &str = "/dashboard/api/affiliate-program";

/// How often is looked whether something has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Whose program, and what is done with it.
#[derive(Debug, Args)]
pub struct AffiliateArguments {
    /// The account's id or its owner's address; may be left out where there is one account
    #[arg(long, global = true)]
    pub account: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub command: AffiliateCommand,
}

/// What can be done with a program.
#[derive(Debug, Subcommand)]
pub enum AffiliateCommand {
    /// Enable the program: it is set up from now on
    Enable {
        /// Where the customer's website is; links lead there
        #[arg(long)]
        website: String,
        /// The currency of flat amounts, bounties and caps
        #[arg(long)]
        currency: String,
        /// test or live
        #[arg(long)]
        mode: Option<String>,
    },
    /// The program, its processor and what is missing
    Show,
    /// Change settings, all that are given or none
    Set {
        /// KEY=VALUE; the value as JSON if it is some, else a text
        #[arg(required = true, value_parser = setting)]
        settings: Vec<(String, Value)>,
    },
    /// Campaigns
    #[command(subcommand)]
    Campaign(CampaignCommand),
    /// The payment processor
    #[command(subcommand)]
    Processor(ProcessorCommand),
    /// Let the program go live
    GoLive,
    /// Pause the program: no visits, no new referrals
    Pause,
    /// Partners
    #[command(subcommand)]
    Partner(PartnerCommand),
    /// Commissions
    #[command(subcommand)]
    Commission(CommissionCommand),
    /// Payout runs
    #[command(subcommand)]
    Run(RunCommand),
    /// Payouts
    #[command(subcommand)]
    Payout(PayoutCommand),
    /// Referrals that stand out
    #[command(subcommand)]
    Review(ReviewCommand),
    /// Import partners from a list in CSV
    Import {
        /// The file; its first line names the columns
        file: PathBuf,
        /// Only say what would become of it
        #[arg(long)]
        dry_run: bool,
        /// Write to the partners
        #[arg(long)]
        send_invites: bool,
    },
    /// Read what the payment processor knows of the past into the ledger, and wait for the end of it
    Backfill {
        /// From when on (ISO 8601 or Unix seconds); from the beginning otherwise
        #[arg(long)]
        since: Option<String>,
        /// Tell nobody of what is written: no webhooks, no mail
        #[arg(long)]
        silent: bool,
    },
    /// Look whether the books are as they must be; the exit status is 1 when they are not
    Audit,
}

/// Campaigns.
#[derive(Debug, Subcommand)]
pub enum CampaignCommand {
    /// Make the default campaign, or change it
    Default {
        /// The campaign's fields: a JSON object
        #[arg(value_parser = object)]
        fields: Value,
    },
}

/// The payment processor.
#[derive(Debug, Subcommand)]
pub enum ProcessorCommand {
    /// Connect it, in place of the one before
    Connect {
        /// What its events are signed with; twice while one takes the other's place
        #[arg(long, required = true)]
        webhook_secret: Vec<String>,
        /// A second secret
        #[arg(long)]
        webhook_secret2: Option<String>,
        /// The address of its API
        #[arg(long)]
        api_base: Option<String>,
        /// A key to ask it with; without one it is only listened to
        #[arg(long)]
        key: Option<String>,
        /// The account there, when there is no key
        #[arg(long)]
        processor_account: Option<String>,
    },
    /// Ask it whether the key is good
    Test,
    /// Its events that came in, newest first
    Events {
        /// Only those that are failed, done or ignored
        #[arg(long)]
        status: Option<String>,
        /// Which page
        #[command(flatten)]
        page: PageArguments,
    },
    /// Try an event again that failed
    Replay {
        /// The processor's id of it
        event: String,
    },
}

/// Which page of a list.
#[derive(Debug, Args)]
pub struct PageArguments {
    /// Entries of a page
    #[arg(long)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before
    #[arg(long)]
    pub cursor: Option<String>,
}

/// Commissions.
#[derive(Debug, Subcommand)]
pub enum CommissionCommand {
    /// Bring a commission back that was taken back
    Reinstate {
        /// Its id
        id: String,
    },
}

/// Referrals that stand out.
#[derive(Debug, Subcommand)]
pub enum ReviewCommand {
    /// List them, newest first
    List {
        /// Only those that are open, allowed or rejected
        #[arg(long)]
        status: Option<String>,
        /// Which page
        #[command(flatten)]
        page: PageArguments,
    },
    /// Say that a referral is fine
    Allow {
        /// The referral's id
        referral: String,
    },
    /// Say that a referral is none, and take back what it earned
    Reject {
        /// The referral's id
        referral: String,
    },
}

/// Partners.
#[derive(Debug, Subcommand)]
pub enum PartnerCommand {
    /// A partner with what the API writes and never shows
    Show {
        /// Its id
        id: String,
    },
    /// List what was posted to a partner's own address in the last thirty days, newest first
    Postbacks {
        /// Its id
        id: String,
        /// Which page
        #[command(flatten)]
        page: PageArguments,
    },
    /// Make a suspended partner active again
    Reactivate {
        /// Its id
        id: String,
    },
    /// Set where a partner's money goes
    PayoutMethod {
        /// Its id
        id: String,
        /// paypal, wise, bank, other or stripe
        method: String,
        /// An address, an account, or words
        destination: String,
    },
}

fn setting(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("say KEY=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    Ok((key.to_owned(), value))
}

/// The text in a file; or why it cannot be read, which is said like any other refusal.
fn read_text_file(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(error) => Err(format!("is no JSON: {error}")),
    }
}

/// A name in a path, escaped: whatever is written there, it stays one segment (RFC 3986 3.3).
pub(super) fn encode_path_segment(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut path, byte| {
        // Writing to a String does not fail.
        let _ = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => write!(path, "{}", char::from(byte)),
            other => write!(path, "%{other:02X}"),
        };
        path
    })
}

/// An object of what was given.
fn json_object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

impl AffiliateCommand {
    /// The method, the path and the body of the endpoint.
    ///
    /// # Errors
    /// A file cannot be read: why.
    fn to_request(&self) -> Result<(&'static str, String, Value), String> {
        let at = |path: &str| format!("{PROGRAM}{path}");
        let nothing = || json!({});
        Ok(match self {
            Self::Enable { website, currency, mode } => {
                let body = json_object([
                    ("website_url", Some(json!(website))),
                    ("currency", Some(json!(currency))),
                    ("mode", mode.as_ref().map(|mode| json!(mode))),
                ]);
                ("POST", at(""), body)
            }
            Self::Show => ("GET", at(""), nothing()),
            Self::Set { settings } => ("PATCH", at(""), Value::Object(settings.iter().cloned().collect::<Map<_, _>>())),
            Self::Campaign(CampaignCommand::Default { fields }) => ("PUT", at("/campaigns/default"), fields.clone()),
            Self::Processor(command) => command.to_request(),
            Self::GoLive => ("POST", at("/go-live"), nothing()),
            Self::Pause => ("POST", at("/pause"), nothing()),
            Self::Partner(command) => command.to_request(),
            Self::Commission(CommissionCommand::Reinstate { id }) => {
                ("POST", at(&format!("/commissions/{}/reinstate", encode_path_segment(id))), nothing())
            }
            Self::Run(command) => command.to_request()?,
            Self::Payout(command) => command.to_request(),
            Self::Review(command) => command.to_request(),
            Self::Import { file, dry_run, send_invites } => {
                let path = format!("/imports?dry_run={dry_run}&send_invites={send_invites}");
                ("POST", at(&path), json!(read_text_file(file)?))
            }
            Self::Backfill { since, silent } => {
                let since = since.as_ref().map(|since| json!(since));
                ("POST", at("/backfill"), json_object([("since", since), ("silent", Some(json!(silent)))]))
            }
            Self::Audit => ("GET", at("/audit"), nothing()),
        })
    }
}

/// The path of a list, with its query.
fn list_path(path: &str, status: Option<&str>, page: &PageArguments) -> String {
    let limit = page.limit.map(|limit| limit.to_string());
    let given = [("status", status), ("limit", limit.as_deref()), ("cursor", page.cursor.as_deref())];
    let query: Vec<String> =
        given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encode_path_segment(value?)))).collect();
    format!("{PROGRAM}{path}?{}", query.join("&"))
}

impl ReviewCommand {
    fn to_request(&self) -> (&'static str, String, Value) {
        let of = |id: &str, what: &str| format!("{PROGRAM}/reviews/{}/{what}", encode_path_segment(id));
        match self {
            Self::List { status, page } => ("GET", list_path("/reviews", status.as_deref(), page), json!({})),
            Self::Allow { referral } => ("POST", of(referral, "allow"), json!({})),
            Self::Reject { referral } => ("POST", of(referral, "reject"), json!({})),
        }
    }
}

impl ProcessorCommand {
    fn to_request(&self) -> (&'static str, String, Value) {
        match self {
            Self::Connect { webhook_secret, webhook_secret2, api_base, key, processor_account } => {
                let secrets: Vec<&String> = webhook_secret.iter().chain(webhook_secret2).collect();
                let body = json_object([
                    ("webhook_secrets", Some(json!(secrets))),
                    ("api_base", api_base.as_ref().map(|base| json!(base))),
                    ("restricted_key", key.as_ref().map(|key| json!(key))),
                    ("account_id", processor_account.as_ref().map(|account| json!(account))),
                ]);
                ("PUT", format!("{PROGRAM}/processor"), body)
            }
            Self::Test => ("POST", format!("{PROGRAM}/processor/test"), json!({})),
            Self::Events { status, page } => {
                ("GET", list_path("/processor/events", status.as_deref(), page), json!({}))
            }
            Self::Replay { event } => {
                ("POST", format!("{PROGRAM}/processor/events/{}/replay", encode_path_segment(event)), json!({}))
            }
        }
    }
}

impl PartnerCommand {
    fn to_request(&self) -> (&'static str, String, Value) {
        let of = |id: &str| format!("{PROGRAM}/partners/{}", encode_path_segment(id));
        match self {
            Self::Show { id } => ("GET", of(id), json!({})),
            Self::Postbacks { id, page } => {
                ("GET", list_path(&format!("/partners/{}/postbacks", encode_path_segment(id)), None, page), json!({}))
            }
            Self::Reactivate { id } => ("POST", format!("{}/reactivate", of(id)), json!({})),
            Self::PayoutMethod { id, method, destination } => {
                let body = json!({"method": method, "destination": destination});
                ("PUT", format!("{}/payout-method", of(id)), body)
            }
        }
    }
}

/// Waits for the end of a back-fill; how far it is goes to standard error.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, which is asked again")]
fn wait_for_backfill(begun: (Value, bool), ask: &dyn Fn(&str) -> (Value, bool)) -> (Value, bool) {
    let (mut shown, mut is_done) = begun;
    let mut told = None;
    while is_done && shown["backfill"]["status"] == "running" {
        let seen = (shown["backfill"]["invoices_seen"].clone(), shown["backfill"]["lines_written"].clone());
        if told.as_ref() != Some(&seen) {
            eprintln!("{} invoices read, {} commissions written", seen.0, seen.1);
            told = Some(seen);
        }
        std::thread::sleep(POLL_INTERVAL);
        let id = shown["backfill"]["id"].as_str().unwrap_or_default().to_owned();
        (shown, is_done) = ask(&id);
    }
    let is_read = shown["backfill"]["status"] == "done";
    (shown, is_done && is_read)
}

/// Asks, and prints what is answered.
#[must_use]
pub fn run(
    arguments: &AffiliateArguments,
    as_json: bool,
    ask: &dyn Fn(&AdminRequest) -> Result<Value, AdminError>,
) -> ExitCode {
    let as_owner = |(method, target, body): (&str, String, Value)| {
        let account = arguments.account.clone();
        match ask(&AdminRequest::Owner { account, method: method.to_owned(), target, body }) {
            Ok(answer) => (answer["body"].clone(), answer["status"].as_u64().is_some_and(|status| status < 400)),
            Err(refused) => (json!({"error": refused}), false),
        }
    };
    let (mut shown, mut is_done) = match arguments.command.to_request() {
        Ok(question) => as_owner(question),
        Err(why) => (json!({"error": AdminError::from(why)}), false),
    };
    if matches!(arguments.command, AffiliateCommand::Backfill { .. }) {
        (shown, is_done) = wait_for_backfill((shown, is_done), &|id| {
            as_owner(("GET", format!("{PROGRAM}/backfill/{}", encode_path_segment(id)), json!({})))
        });
    }
    // Nobody listening to the answer is no reason to fail what was done.
    let _ = match (as_json, is_done) {
        (true, _) => writeln!(std::io::stdout(), "{shown}"),
        (false, true) => write!(std::io::stdout(), "{}", super::run::render_readable(&shown)),
        (false, false) => {
            write!(std::io::stderr(), "postrider: {}", super::run::render_readable(&shown["error"]))
        }
    };
    // An audit is done, and the books may be broken.
    if is_done && shown["ok"] != json!(false) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_json_if_they_are_some() {
        for (text, value) in [
            ("currency=usd", json!("usd")),
            ("new_customers_only=false", json!(false)),
            ("min_payout={\"usd\":5000}", json!({"usd": 5000})),
            ("terms_url=https://a.example/?a=b", json!("https://a.example/?a=b")),
            ("mail_from=null", Value::Null),
        ] {
            assert_eq!(setting(text).unwrap().1, value, "{text}");
        }
        assert!(setting("currency").is_err());
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused_like_anything_else() {
        let file = PathBuf::from("/nowhere/partners.csv");
        let command = AffiliateCommand::Import { file, dry_run: true, send_invites: false };
        let arguments = AffiliateArguments { account: None, command };
        let nobody = |_: &AdminRequest| -> Result<Value, AdminError> { panic!("nobody is asked") };
        assert_eq!(run(&arguments, true, &nobody), ExitCode::FAILURE);
        assert!(arguments.command.to_request().unwrap_err().starts_with("/nowhere/partners.csv: "));
    }

    #[test]
    fn a_name_stays_one_segment_of_the_path() {
        assert_eq!(encode_path_segment("aff_01"), "aff_01");
        assert_eq!(encode_path_segment("../a?b#c"), "%2E%2E%2Fa%3Fb%23c");
    }
}
