//! `postrider admin affiliate`: calls an owner's operations on the affiliate program through the admin socket.
//!
//! ```text
//! command ─► method, path, body ─► admin.sock ─► the API endpoint's handler ─► status, body ─► standard output
//! ```
//!
//! Prints the endpoint's response. Exit status: 0 on success, 1 if the request was refused,
//! 2 for invalid arguments.

mod payouts;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use message::percent::encode_segment;
use serde_json::{Map, Value, json};

use self::payouts::{PayoutCommand, RunCommand};
use crate::admin::{AdminError, AdminRequest};

/// Path of the program's endpoints.
const PROGRAM: &str = "/dashboard/api/affiliate-program";

/// Interval at which a running backfill is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Arguments of `admin affiliate`.
#[derive(Debug, Args)]
pub struct AffiliateArguments {
    /// Account id or owner's address; optional if only one account exists
    #[arg(long, global = true)]
    pub account: Option<String>,
    /// Command to run
    #[command(subcommand)]
    pub command: AffiliateCommand,
}

/// Commands of `admin affiliate`.
#[derive(Debug, Subcommand)]
pub enum AffiliateCommand {
    /// Enable the program
    Enable {
        /// URL of the customer's website; partner links lead there
        #[arg(long)]
        website: String,
        /// Currency of flat amounts, bounties and caps
        #[arg(long)]
        currency: String,
        /// test or live
        #[arg(long)]
        mode: Option<String>,
    },
    /// Show the program, its payment processor and what is missing for launch
    Show,
    /// Change settings (all or nothing)
    Set {
        /// KEY=VALUE; VALUE is JSON or plain text
        #[arg(required = true, value_parser = setting)]
        settings: Vec<(String, Value)>,
    },
    /// Manage campaigns
    #[command(subcommand)]
    Campaign(CampaignCommand),
    /// Manage the payment processor
    #[command(subcommand)]
    Processor(ProcessorCommand),
    /// Launch the program
    GoLive,
    /// Pause the program: visits and new referrals are not recorded
    Pause,
    /// Manage partners
    #[command(subcommand)]
    Partner(PartnerCommand),
    /// Manage commissions
    #[command(subcommand)]
    Commission(CommissionCommand),
    /// Manage payout runs
    #[command(subcommand)]
    Run(RunCommand),
    /// Manage payouts
    #[command(subcommand)]
    Payout(PayoutCommand),
    /// Manage referrals held for review
    #[command(subcommand)]
    Review(ReviewCommand),
    /// Import partners from a CSV file
    Import {
        /// CSV file; its first line names the columns
        file: PathBuf,
        /// Preview without changing anything
        #[arg(long)]
        dry_run: bool,
        /// Send invitations to the imported partners
        #[arg(long)]
        send_invites: bool,
    },
    /// Import the payment processor's history into the ledger, and wait for it to finish
    Backfill {
        /// Start time (ISO 8601 or Unix seconds) [default: the beginning]
        #[arg(long)]
        since: Option<String>,
        /// Send no webhooks and no email for imported objects
        #[arg(long)]
        silent: bool,
    },
    /// Audit the ledger; the exit status is 1 if it is inconsistent
    Audit,
}

/// Commands of `admin affiliate campaign`.
#[derive(Debug, Subcommand)]
pub enum CampaignCommand {
    /// Create or change the default campaign
    Default {
        /// Fields of the campaign as a JSON object
        #[arg(value_parser = object)]
        fields: Value,
    },
}

/// Commands of `admin affiliate processor`.
#[derive(Debug, Subcommand)]
pub enum ProcessorCommand {
    /// Connect a payment processor, replacing the current one
    Connect {
        /// Signing secret of its webhook events; repeat it during a rotation
        #[arg(long, required = true)]
        webhook_secret: Vec<String>,
        /// Second signing secret
        #[arg(long)]
        webhook_secret2: Option<String>,
        /// Base URL of its API
        #[arg(long)]
        api_base: Option<String>,
        /// API key; without one, only its webhook events are processed
        #[arg(long)]
        key: Option<String>,
        /// Account id at the processor, if there is no key
        #[arg(long)]
        processor_account: Option<String>,
    },
    /// Test the API key
    Test,
    /// List received events, newest first
    Events {
        /// Only events with this status: failed, done or ignored
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Process a failed event again
    Replay {
        /// The processor's event id
        event: String,
    },
}

/// Page of a list.
#[derive(Debug, Args)]
pub struct PageArguments {
    /// Maximum number of entries
    #[arg(long)]
    pub limit: Option<u32>,
    /// Continue with `next_cursor` of the previous page
    #[arg(long)]
    pub cursor: Option<String>,
}

/// Commands of `admin affiliate commission`.
#[derive(Debug, Subcommand)]
pub enum CommissionCommand {
    /// Reinstate a reversed commission
    Reinstate {
        /// Commission id
        id: String,
    },
}

/// Commands of `admin affiliate review`.
#[derive(Debug, Subcommand)]
pub enum ReviewCommand {
    /// List referrals held for review, newest first
    List {
        /// Only this status: open, allowed or rejected
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Approve a referral
    Allow {
        /// Referral id
        referral: String,
    },
    /// Reject a referral and reverse its commissions
    Reject {
        /// Referral id
        referral: String,
    },
}

/// Commands of `admin affiliate partner`.
#[derive(Debug, Subcommand)]
pub enum PartnerCommand {
    /// Show a partner including its postback secret
    Show {
        /// Partner id
        id: String,
    },
    /// List a partner's postback deliveries of the last 30 days, newest first
    Postbacks {
        /// Partner id
        id: String,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Reactivate a suspended partner
    Reactivate {
        /// Partner id
        id: String,
    },
    /// Set a partner's payout method
    PayoutMethod {
        /// Partner id
        id: String,
        /// paypal, wise, bank, other or stripe
        method: String,
        /// Payout destination: an email address, an account, or free text
        destination: String,
    },
}

fn setting(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("use KEY=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    Ok((key.to_owned(), value))
}

/// Reads a text file. The error names the file.
fn read_text_file(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

/// Builds an object of the fields that are present.
fn json_object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

impl AffiliateCommand {
    /// Method, path and body of the endpoint's request.
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
                ("POST", at(&format!("/commissions/{}/reinstate", encode_segment(id))), nothing())
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

/// Path and query of a list.
fn list_path(path: &str, status: Option<&str>, page: &PageArguments) -> String {
    let limit = page.limit.map(|limit| limit.to_string());
    let parameters = [("status", status), ("limit", limit.as_deref()), ("cursor", page.cursor.as_deref())];
    let query: Vec<String> =
        parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encode_segment(value?)))).collect();
    format!("{PROGRAM}{path}?{}", query.join("&"))
}

impl ReviewCommand {
    fn to_request(&self) -> (&'static str, String, Value) {
        let path = |id: &str, action: &str| format!("{PROGRAM}/reviews/{}/{action}", encode_segment(id));
        match self {
            Self::List { status, page } => ("GET", list_path("/reviews", status.as_deref(), page), json!({})),
            Self::Allow { referral } => ("POST", path(referral, "allow"), json!({})),
            Self::Reject { referral } => ("POST", path(referral, "reject"), json!({})),
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
                ("POST", format!("{PROGRAM}/processor/events/{}/replay", encode_segment(event)), json!({}))
            }
        }
    }
}

impl PartnerCommand {
    fn to_request(&self) -> (&'static str, String, Value) {
        let path = |id: &str| format!("{PROGRAM}/partners/{}", encode_segment(id));
        match self {
            Self::Show { id } => ("GET", path(id), json!({})),
            Self::Postbacks { id, page } => {
                ("GET", list_path(&format!("/partners/{}/postbacks", encode_segment(id)), None, page), json!({}))
            }
            Self::Reactivate { id } => ("POST", format!("{}/reactivate", path(id)), json!({})),
            Self::PayoutMethod { id, method, destination } => {
                let body = json!({"method": method, "destination": destination});
                ("PUT", format!("{}/payout-method", path(id)), body)
            }
        }
    }
}

/// The response to a request in an owner's name.
struct OwnerResponse {
    body: Value,
    is_success: bool,
}

impl OwnerResponse {
    fn from_error(error: &AdminError) -> Self {
        Self { body: json!({"error": error}), is_success: false }
    }
}

/// Polls a backfill until it ends. Progress is printed to standard error.
#[expect(clippy::disallowed_methods, reason = "polls another process synchronously")]
fn wait_for_backfill(mut response: OwnerResponse, fetch: &dyn Fn(&str) -> OwnerResponse) -> OwnerResponse {
    let mut last_printed = None;
    while response.is_success && response.body["backfill"]["status"] == "running" {
        let backfill = &response.body["backfill"];
        let counts = (backfill["invoices_seen"].clone(), backfill["lines_written"].clone());
        if last_printed.as_ref() != Some(&counts) {
            eprintln!("{} invoices read, {} commissions written", counts.0, counts.1);
            last_printed = Some(counts);
        }
        std::thread::sleep(POLL_INTERVAL);
        let id = response.body["backfill"]["id"].as_str().unwrap_or_default().to_owned();
        response = fetch(&id);
    }
    response.is_success &= response.body["backfill"]["status"] == "done";
    response
}

/// The error of a response on one line. Details that the message does not name are below it.
fn error_text(error: &Value) -> String {
    let facts: Vec<&str> = ["code", "request_id"].iter().filter_map(|name| error[*name].as_str()).collect();
    let mut text = format!("{} ({})\n", error["message"].as_str().unwrap_or_default(), facts.join(", "));
    let details = match &error["details"]["fields"] {
        Value::Null => Some(&error["details"]),
        // The message names the field.
        Value::Object(fields) if fields.len() == 1 => None,
        fields => Some(fields),
    };
    if let Some(details) = details.filter(|details| details.is_object()) {
        super::readable::render_readable(details).lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

/// Sends the request and prints the response.
pub fn run(
    arguments: &AffiliateArguments,
    as_json: bool,
    send_request: &dyn Fn(&AdminRequest) -> Result<Value, AdminError>,
) -> ExitCode {
    let as_owner = |(method, target, body): (&str, String, Value)| {
        let account = arguments.account.clone();
        match send_request(&AdminRequest::Owner { account, method: method.to_owned(), target, body }) {
            Ok(response) => OwnerResponse {
                body: response["body"].clone(),
                is_success: response["status"].as_u64().is_some_and(|status| status < 400),
            },
            Err(error) => OwnerResponse::from_error(&error),
        }
    };
    let mut response = match arguments.command.to_request() {
        Ok(request) => as_owner(request),
        Err(error) => OwnerResponse::from_error(&AdminError::from(error)),
    };
    if matches!(arguments.command, AffiliateCommand::Backfill { .. }) {
        response = wait_for_backfill(response, &|id| {
            as_owner(("GET", format!("{PROGRAM}/backfill/{}", encode_segment(id)), json!({})))
        });
    }
    let OwnerResponse { body: result, is_success: is_done } = response;
    // The command has been carried out, even if stdout is closed.
    let _ = match (as_json, is_done) {
        (true, _) => writeln!(std::io::stdout(), "{result}"),
        (false, true) => write!(std::io::stdout(), "{}", super::readable::render_readable(&result)),
        (false, false) => write!(std::io::stderr(), "postrider: {}", error_text(&result["error"])),
    };
    // An audit that finds a broken ledger succeeds as a request.
    let is_failed = result["ok"] == json!(false) || result["complete"] == json!(false);
    if is_done && !is_failed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_json_or_plain_text() {
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
    fn an_error_is_one_sentence() {
        let mut error = json!({"message": "No such payout", "code": "not_found", "doc_url": "https://a.example/"});
        assert_eq!(error_text(&error), "No such payout (not_found)\n");
        error["request_id"] = json!("req_1");
        error["details"] = json!({"a": "is wrong", "fields": {"a": "is wrong"}});
        assert_eq!(error_text(&error), "No such payout (not_found, req_1)\n");
        error["details"]["fields"]["b"] = json!("too");
        assert_eq!(error_text(&error), "No such payout (not_found, req_1)\n  a: is wrong\n  b: too\n");
        error["details"] = json!({"missing": ["campaign"]});
        assert_eq!(error_text(&error), "No such payout (not_found, req_1)\n  missing:\n    - campaign\n");
    }

    #[test]
    fn an_unreadable_import_file_is_reported() {
        let file = PathBuf::from("/nowhere/partners.csv");
        let command = AffiliateCommand::Import { file, dry_run: true, send_invites: false };
        let arguments = AffiliateArguments { account: None, command };
        let refuse_request = |_: &AdminRequest| -> Result<Value, AdminError> { panic!("no request expected") };
        assert_eq!(run(&arguments, true, &refuse_request), ExitCode::FAILURE);
        assert!(arguments.command.to_request().unwrap_err().starts_with("/nowhere/partners.csv: "));
    }
}
