//! `postrider admin affiliate run …`, `payout …`: drafting, approving, paying (affiliate-admin.md 4).

use std::path::PathBuf;

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{PROGRAM, PageArguments, encode_path_segment, json_object, list_path, read_text_file};

/// Payout runs.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Draft a run: all that was earned and can be paid
    Draft {
        /// Until when it was earned: ISO 8601 or Unix seconds; now
        #[arg(long, value_parser = time)]
        cutoff: Option<String>,
    },
    /// The runs, newest first
    List {
        /// Which page
        #[command(flatten)]
        page: PageArguments,
    },
    /// A run with its payouts, and with who is not in it
    Show {
        /// Its id
        id: String,
    },
    /// Approve a run as it was seen
    Approve {
        /// Its id
        id: String,
        /// Its `rev`, as it was seen
        #[arg(long)]
        rev: u64,
        /// What it comes to, as it was seen: CUR=CENTS, for each currency
        #[arg(long = "total", num_args = 1.., value_parser = total)]
        totals: Vec<(String, i64)>,
    },
    /// Cancel a run that is not approved
    Cancel {
        /// Its id
        id: String,
    },
    /// The files to pay by: one for each method, currency and part
    Csv {
        /// Its id
        id: String,
        /// Only of this method
        #[arg(long)]
        method: Option<String>,
        /// Only of this currency
        #[arg(long)]
        currency: Option<String>,
        /// paypal, wise or generic; what fits the method
        #[arg(long)]
        format: Option<String>,
    },
    /// Mark its payouts paid or failed, by the file of results of who paid them
    Results {
        /// Its id
        id: String,
        /// The file, in CSV; its first line names the columns
        file: PathBuf,
    },
}

/// Payouts.
#[derive(Debug, Subcommand)]
pub enum PayoutCommand {
    /// Say that a payout failed: its commissions return to the next run
    Fail {
        /// Its id
        id: String,
        /// Why
        #[arg(long)]
        reason: String,
    },
}

/// A time, as the endpoint takes it.
fn time(text: &str) -> Result<String, String> {
    let at = match text.parse::<i64>() {
        Ok(seconds) => Timestamp::from_second(seconds).map_err(|error| error.to_string()),
        Err(_) => text.parse().map_err(|_| "say a time like 2026-01-01T10:00:00Z, or Unix seconds".to_owned()),
    };
    at.map(|at| at.to_string())
}

fn total(text: &str) -> Result<(String, i64), String> {
    let (currency, cents) = text.split_once('=').ok_or("say CUR=CENTS, like usd=5000")?;
    let cents = cents.trim().parse().map_err(|_| "the cents must be a whole number")?;
    Ok((currency.trim().to_lowercase(), cents))
}

impl RunCommand {
    /// As [`super::AffiliateCommand::asks`].
    pub(super) fn to_request(&self) -> Result<(&'static str, String, Value), String> {
        let of = |id: &str, what: &str| format!("{PROGRAM}/payout-runs/{}{what}", encode_path_segment(id));
        Ok(match self {
            Self::Draft { cutoff } => {
                let body = json_object([("cutoff", cutoff.as_ref().map(|at| json!(at)))]);
                ("POST", format!("{PROGRAM}/payout-runs"), body)
            }
            Self::List { page } => ("GET", list_path("/payout-runs", None, page), json!({})),
            Self::Show { id } => ("GET", of(id, ""), json!({})),
            Self::Approve { id, rev, totals } => {
                let totals: Map<_, _> = totals.iter().map(|(name, cents)| (name.clone(), json!(cents))).collect();
                ("POST", of(id, "/approve"), json!({"rev": rev, "totals": totals}))
            }
            Self::Cancel { id } => ("POST", of(id, "/cancel"), json!({})),
            Self::Csv { id, method, currency, format } => {
                let given = [("method", method), ("currency", currency), ("format", format)];
                let pair = |(name, value): (&str, &Option<String>)| {
                    value.as_ref().map(|value| format!("{name}={}", encode_path_segment(value)))
                };
                let query: Vec<String> = given.into_iter().filter_map(pair).collect();
                ("GET", of(id, &format!("/files?{}", query.join("&"))), json!({}))
            }
            Self::Results { id, file } => ("POST", of(id, "/results"), json!(read_text_file(file)?)),
        })
    }
}

impl PayoutCommand {
    pub(super) fn to_request(&self) -> (&'static str, String, Value) {
        let Self::Fail { id, reason } = self;
        ("POST", format!("{PROGRAM}/payouts/{}/fail", encode_path_segment(id)), json!({"reason": reason}))
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
    fn commands_are_their_endpoints() {
        let csv =
            RunCommand::Csv { id: "prn_1".to_owned(), method: Some("paypal".to_owned()), currency: None, format: None };
        assert_eq!(csv.to_request().unwrap().1, format!("{PROGRAM}/payout-runs/prn_1/files?method=paypal"));
        let totals = vec![("usd".to_owned(), 5_000)];
        let approve = RunCommand::Approve { id: "prn_1".to_owned(), rev: 3, totals };
        assert_eq!(approve.to_request().unwrap().2, json!({"rev": 3, "totals": {"usd": 5_000}}));
    }
}
