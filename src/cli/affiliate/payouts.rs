//! `postrider admin affiliate run …`, `payout …`: drafting, approving and paying payout runs.

use std::path::PathBuf;

use clap::Subcommand;
use jiff::Timestamp;
use message::percent::encode_segment;
use serde_json::{Map, Value, json};

use super::{PROGRAM, PageArguments, json_object, list_path, read_text_file};

/// Commands of `admin affiliate run`.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Draft a run with all earned commissions that can be paid
    Draft {
        /// Include commissions earned until this time (ISO 8601 or Unix seconds) [default: now]
        #[arg(long, value_parser = time)]
        cutoff: Option<String>,
    },
    /// List runs, newest first
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a run, its payouts and skipped partners
    Show {
        /// Run id
        id: String,
    },
    /// Approve a run, if it is unchanged
    Approve {
        /// Run id
        id: String,
        /// `rev` of the run, as printed by `run show`
        #[arg(long)]
        rev: u64,
        /// Total in each currency, as printed by `run show`: CUR=CENTS
        #[arg(long = "total", num_args = 1.., value_parser = total)]
        totals: Vec<(String, i64)>,
    },
    /// Cancel a run that is not approved
    Cancel {
        /// Run id
        id: String,
    },
    /// Show a run's payment files: one for each method, currency and part
    Csv {
        /// Run id
        id: String,
        /// Only this payout method
        #[arg(long)]
        method: Option<String>,
        /// Only this currency
        #[arg(long)]
        currency: Option<String>,
        /// paypal, wise or generic [default: by method]
        #[arg(long)]
        format: Option<String>,
    },
    /// Mark payouts as paid or failed, from a results file
    Results {
        /// Run id
        id: String,
        /// CSV file; its first line names the columns
        file: PathBuf,
    },
}

/// Commands of `admin affiliate payout`.
#[derive(Debug, Subcommand)]
pub enum PayoutCommand {
    /// Mark a payout as failed: its commissions return to the next run
    Fail {
        /// Payout id
        id: String,
        /// Reason
        #[arg(long)]
        reason: String,
    },
}

/// Parses a time into ISO 8601, which the endpoint accepts.
fn time(text: &str) -> Result<String, String> {
    let at = match text.parse::<i64>() {
        Ok(seconds) => Timestamp::from_second(seconds).map_err(|error| error.to_string()),
        Err(_) => text.parse().map_err(|_| "use a time like 2026-01-01T10:00:00Z, or Unix seconds".to_owned()),
    };
    at.map(|at| at.to_string())
}

fn total(text: &str) -> Result<(String, i64), String> {
    let (currency, cents) = text.split_once('=').ok_or("use CUR=CENTS, like usd=5000")?;
    let cents = cents.trim().parse().map_err(|_| "cents must be a whole number")?;
    Ok((currency.trim().to_lowercase(), cents))
}

impl RunCommand {
    /// As [`super::AffiliateCommand::to_request`].
    pub(super) fn to_request(&self) -> Result<(&'static str, String, Value), String> {
        let path = |id: &str, suffix: &str| format!("{PROGRAM}/payout-runs/{}{suffix}", encode_segment(id));
        Ok(match self {
            Self::Draft { cutoff } => {
                let body = json_object([("cutoff", cutoff.as_ref().map(|at| json!(at)))]);
                ("POST", format!("{PROGRAM}/payout-runs"), body)
            }
            Self::List { page } => ("GET", list_path("/payout-runs", None, page), json!({})),
            Self::Show { id } => ("GET", path(id, ""), json!({})),
            Self::Approve { id, rev, totals } => {
                let totals: Map<_, _> = totals.iter().map(|(name, cents)| (name.clone(), json!(cents))).collect();
                ("POST", path(id, "/approve"), json!({"rev": rev, "totals": totals}))
            }
            Self::Cancel { id } => ("POST", path(id, "/cancel"), json!({})),
            Self::Csv { id, method, currency, format } => {
                let parameters = [("method", method), ("currency", currency), ("format", format)];
                let pair = |(name, value): (&str, &Option<String>)| {
                    value.as_ref().map(|value| format!("{name}={}", encode_segment(value)))
                };
                let query: Vec<String> = parameters.into_iter().filter_map(pair).collect();
                ("GET", path(id, &format!("/files?{}", query.join("&"))), json!({}))
            }
            Self::Results { id, file } => ("POST", path(id, "/results"), json!(read_text_file(file)?)),
        })
    }
}

impl PayoutCommand {
    pub(super) fn to_request(&self) -> (&'static str, String, Value) {
        let Self::Fail { id, reason } = self;
        ("POST", format!("{PROGRAM}/payouts/{}/fail", encode_segment(id)), json!({"reason": reason}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_totals_are_read() {
        assert_eq!(time("1767261600").unwrap(), "2026-01-01T10:00:00Z");
        assert_eq!(time("2026-01-01T11:00:00+01:00").unwrap(), "2026-01-01T10:00:00Z");
        assert!(time("yesterday").is_err());
        assert_eq!(total("USD=5000").unwrap(), ("usd".to_owned(), 5_000));
        assert!(total("usd").is_err() && total("usd=5.00").is_err());
    }

    #[test]
    fn commands_map_to_endpoints() {
        let csv =
            RunCommand::Csv { id: "prn_1".to_owned(), method: Some("paypal".to_owned()), currency: None, format: None };
        assert_eq!(csv.to_request().unwrap().1, format!("{PROGRAM}/payout-runs/prn_1/files?method=paypal"));
        let totals = vec![("usd".to_owned(), 5_000)];
        let approve = RunCommand::Approve { id: "prn_1".to_owned(), rev: 3, totals };
        assert_eq!(approve.to_request().unwrap().2, json!({"rev": 3, "totals": {"usd": 5_000}}));
    }
}
