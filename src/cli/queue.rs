//! `postrider admin queue`: lists the queue, and runs commands on it.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use jiff::Timestamp;
use message::address::DomainName;
use model::destination::RouteOverride;
use model::slug::SmarthostName;
use model::task::TaskClass;
use queue::admin::queue_command::QueueCommand;
use serde_json::Value;

use super::listing::next;
use super::table::{Column, list, table};
use crate::admin::{AdminError, AdminRequest, QueueFilter, QueueSearch, row_limit};
use crate::config::read_duration;

/// Commands of `admin queue`.
#[derive(Debug, Subcommand)]
pub enum QueueSubcommand {
    /// List queued email and destination status
    #[command(group(ArgGroup::new("selection").multiple(true)))]
    List {
        /// Maximum number of tasks
        #[arg(long, default_value_t = 100, value_parser = row_limit())]
        limit: usize,
        #[command(flatten)]
        filter: FilterArguments,
        #[command(flatten)]
        search: QueueSearch,
        /// Continue with `next_cursor` of the previous page
        #[arg(long)]
        cursor: Option<String>,
    },
    /// List the destinations with the longest queues: waiting, age, what limits them, last response
    Top {
        /// Maximum number of destinations
        #[arg(long, default_value_t = 20, value_parser = row_limit())]
        limit: usize,
    },
    /// Trace an email
    Show {
        /// Email id
        email: String,
    },
    /// Retry now
    Retry(QueueSelection),
    /// Hold email
    Hold(QueueSelection),
    /// Resume held email
    Release(QueueSelection),
    /// Remove from the queue: the recipients become cancelled
    Drop(QueueSelection),
    /// Give up delivery: the recipients become failed (`email.failed`); SMTP senders get a bounce
    Fail(QueueSelection),
    /// Send by a different route
    Reroute {
        #[command(flatten)]
        route: RouteArguments,
        #[command(flatten)]
        selection: QueueSelection,
    },
}

/// Selects one email by id, or all that match a filter.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("selection").required(true).multiple(true)))]
pub struct QueueSelection {
    /// Email id
    #[arg(group = "selection", conflicts_with_all = ["to", "account", "from", "class", "older", "before", "attempts", "held", "all"])]
    email: Option<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Everything in the queue
    #[arg(long, group = "selection")]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Only print the number of matching recipients
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// Confirmation before a command on several emails.
pub struct Confirmation<'a> {
    /// Name of the command.
    word: &'static str,
    selection: &'a QueueSelection,
}

impl Confirmation<'_> {
    /// Counts the recipients that match, and asks for confirmation on a terminal. Returns none if the command is to be
    /// run, or the count to print instead (`--dry-run`).
    ///
    /// # Errors
    /// The operator declined, `--yes` is missing without a terminal, or counting failed.
    pub fn confirm(
        &self,
        count: impl FnOnce(&AdminRequest) -> Result<Value, AdminError>,
    ) -> Result<Option<Value>, AdminError> {
        let Self { word, selection } = self;
        if selection.yes {
            return Ok(None);
        }
        let is_terminal = std::io::stdin().is_terminal();
        if selection.all && !is_terminal && !selection.dry_run {
            return Err(format!("`queue {word} --all` without a terminal needs `--yes`; `--dry-run` counts").into());
        }
        let count_result = count(&AdminRequest::QueueCount { filter: selection.filter.to_filter(), rows_max: None })?;
        if selection.dry_run {
            return Ok(Some(count_result));
        }
        let recipients = count_result["recipients"].as_u64().unwrap_or(0);
        if recipients <= 1 || !is_terminal {
            return Ok(None);
        }
        eprint!("{word}: {}. Continue? [y/N] ", count_with_noun(&count_result["recipients"], "recipient"));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(None),
            _ => Err("cancelled: nothing was changed".into()),
        }
    }
}

impl QueueSubcommand {
    /// Returns the confirmation that the command needs; none for one email, and for `release`.
    pub fn confirmation(&self) -> Option<Confirmation<'_>> {
        let (word, selection) = match self {
            Self::Retry(selection) => ("retry", selection),
            Self::Hold(selection) => ("hold", selection),
            Self::Drop(selection) => ("drop", selection),
            Self::Fail(selection) => ("fail", selection),
            Self::Reroute { selection, .. } => ("reroute", selection),
            Self::Release(selection) if selection.dry_run => ("release", selection),
            Self::Release(_) | Self::List { .. } | Self::Top { .. } | Self::Show { .. } => return None,
        };
        selection.email.is_none().then_some(Confirmation { word, selection })
    }
}

/// Filter of queued mail.
#[derive(Debug, Args)]
pub struct FilterArguments {
    /// Only mail to this recipient domain
    #[arg(long, group = "selection", value_name = "DOMAIN")]
    to: Option<DomainName>,
    /// Only this account (id or owner's address)
    #[arg(long, group = "selection")]
    account: Option<String>,
    /// Only this sending domain
    #[arg(long, group = "selection", value_name = "DOMAIN")]
    from: Option<DomainName>,
    /// Only this class: expiring, transactional, product or newsletter
    #[arg(long, group = "selection", value_parser = class)]
    class: Option<TaskClass>,
    /// Only mail accepted longer ago than this (`90m`, `2h`, `3d`)
    #[arg(long, group = "selection", value_parser = read_duration)]
    older: Option<Duration>,
    /// Only mail accepted before this time (`2026-11-26T12:00:00Z`)
    #[arg(long, group = "selection", value_name = "TIME")]
    before: Option<Timestamp>,
    /// Only mail with at least this many attempts
    #[arg(long, group = "selection")]
    attempts: Option<u32>,
    /// Only held mail
    #[arg(long, group = "selection")]
    held: bool,
}

/// Selects a route.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RouteArguments {
    /// Send through this configured smarthost
    #[arg(long, value_name = "NAME")]
    smarthost: Option<SmarthostName>,
    /// Send to the recipient domain's mail hosts
    #[arg(long)]
    mx: bool,
    /// Use the configured route
    #[arg(long)]
    usual: bool,
}

fn class(word: &str) -> Result<TaskClass, String> {
    serde_json::from_value(Value::from(word))
        .map_err(|_| "use `expiring`, `transactional`, `product` or `newsletter`".to_owned())
}

impl RouteArguments {
    /// Returns the route override; none restores the configured route.
    pub fn route(&self) -> Option<RouteOverride> {
        let mx = self.mx.then_some(RouteOverride::MailHosts);
        self.smarthost.clone().map(RouteOverride::Smarthost).or(mx)
    }
}

impl FilterArguments {
    fn to_filter(&self) -> QueueFilter {
        QueueFilter {
            to: self.to.clone(),
            account: self.account.clone(),
            from: self.from.clone(),
            class: self.class,
            held: self.held.then_some(true),
            attempts_min: self.attempts,
            older_seconds: self.older.map(|older| older.as_secs()),
            accepted_before: self.before,
        }
    }
}

impl QueueSelection {
    fn to_request(&self, order: &QueueCommand) -> AdminRequest {
        let order = order.word();
        match &self.email {
            Some(email) => AdminRequest::Queue { order, email: email.clone() },
            None => AdminRequest::QueueMany { order, filter: self.filter.to_filter() },
        }
    }
}

/// Builds the admin request.
pub fn build_request(command: &QueueSubcommand) -> AdminRequest {
    match command {
        QueueSubcommand::List { limit, filter, search, cursor } => {
            let (filter, search, cursor) = (filter.to_filter(), search.clone(), cursor.clone());
            AdminRequest::QueueList { limit: *limit, filter, search, cursor }
        }
        QueueSubcommand::Top { limit } => AdminRequest::QueueTop { limit: *limit },
        QueueSubcommand::Show { email } => AdminRequest::Trace { email: email.clone() },
        QueueSubcommand::Retry(selection) => selection.to_request(&QueueCommand::Retry),
        QueueSubcommand::Hold(selection) => selection.to_request(&QueueCommand::Hold),
        QueueSubcommand::Release(selection) => selection.to_request(&QueueCommand::Release),
        QueueSubcommand::Drop(selection) => selection.to_request(&QueueCommand::Drop),
        QueueSubcommand::Fail(selection) => selection.to_request(&QueueCommand::Fail),
        QueueSubcommand::Reroute { route, selection } => selection.to_request(&QueueCommand::Reroute(route.route())),
    }
}

const TOP: [Column; 7] = [
    Column::new("waiting", "tasks", 10),
    Column::new("held", "held", 10),
    Column::new("oldest", "oldest_age", 8),
    Column::new("open", "connections", 6),
    Column::new("blocked by", "limit", 12),
    Column::new("destination", "name", 44),
    Column::new("last response", "last_reply", 60),
];

/// Formats the result of `queue top`.
pub fn top(result: &Value) -> String {
    let destinations = list(result, "destinations");
    let mut out = hold_line(result);
    out.push_str(&table(&TOP, destinations));
    for destination in destinations {
        if let (Some(name), Some(reason)) = (destination["name"].as_str(), destination["slowed"].as_str()) {
            let line = format!("{name}: {reason}");
            // Writing to a String does not fail.
            let _ = writeln!(out, "{}", model::log_text::cleaned(&line, false));
        }
    }
    let (waiting, count) =
        (count_with_noun(&result["tasks"], "recipient"), count_with_noun(&result["count"], "destination"));
    let is_truncated = result["count"].as_u64().unwrap_or(0) > destinations.len() as u64;
    let suffix = if is_truncated { format!("; {} of these are shown", destinations.len()) } else { String::new() };
    // Writing to a String does not fail.
    let _ = writeln!(out, "{waiting} waiting for {count}{suffix}");
    if let Some(note) = counting_note(&result["counted"]) {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{note}");
    }
    out
}

/// A sentence on what the numbers of a long queue leave out.
fn counting_note(counted: &Value) -> Option<&'static str> {
    match counted.as_str()? {
        "memory" => Some("The queue is long: `oldest` covers only the first recipients of each destination."),
        "node_memory" => Some(
            "The queue is long: only this node's partitions are counted, and `oldest` covers only the first \
             recipients of each destination.",
        ),
        "first_rows" => {
            Some("The queue is long and has not been counted yet: only the beginning was read. Try again soon.")
        }
        _ => None,
    }
}

/// A number with its noun in the singular or plural.
pub(super) fn count_with_noun(number: &Value, noun: &str) -> String {
    let plural = if number.as_u64() == Some(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

const TASKS: [Column; 7] = [
    Column::new("email", "email", 40),
    Column::new("recipient", "recipient", 44),
    Column::new("account", "account", 40),
    Column::new("class", "class", 13),
    Column::new("tries", "attempts", 5),
    Column::new("due", "due", 24),
    Column::new("held by", "held_by", 17),
];

const SITES: [Column; 5] = [
    Column::new("destination", "name", 44),
    Column::new("ready", "ready", 8),
    Column::new("open", "connections", 6),
    Column::new("unreachable until", "dead_until", 24),
    Column::new("rate limited until", "rate_until", 24),
];

/// Formats the result of `queue list`: queued tasks, and the destinations with ready tasks.
pub fn tasks(result: &Value) -> String {
    let mut out = hold_line(result);
    out.push_str(&table(&TASKS, list(result, "tasks")));
    let sites = list(result, "sites");
    if !sites.is_empty() {
        out.push('\n');
        out.push_str(&table(&SITES, sites));
    }
    if result["has_more"] == true {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{} read", count_with_noun(&result["tasks_read"], "recipient"));
    }
    out + &next(result)
}

/// Line about the hold of the whole queue, if it is held.
fn hold_line(result: &Value) -> String {
    let Some(hold) = result["hold"].as_object() else { return String::new() };
    let text = |field: &str| hold.get(field).and_then(Value::as_str).unwrap_or("-");
    format!("The queue has been held since {}: {}\n", text("since"), text("because"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: QueueSubcommand,
    }

    fn command(line: &str) -> QueueSubcommand {
        Line::try_parse_from(format!("queue {line}").split(' ')).unwrap().command
    }

    #[test]
    fn slowed_destinations_are_explained_below_the_table() {
        let result = json!({"tasks": 7, "count": 1, "destinations": [{
            "name": "mx.example", "tasks": 7, "held": 0, "oldest_age": "5m", "connections": 1,
            "limit": "connections", "last_reply": "450 4.2.0 later",
            "slowed": "slowed from 5 to 1 connections because of 421 4.7.0 busy",
        }]});
        assert!(!top(&result).contains("The queue is long"));
        assert!(
            top(&json!({"tasks": 1, "count": 1, "destinations": []})).contains("1 recipient waiting for 1 destination")
        );
        let long = json!({"tasks": 7, "count": 0, "counted": "memory", "destinations": []});
        assert!(top(&long).ends_with("only the first recipients of each destination.\n"), "{}", top(&long));
        let text = top(&result);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("mx.example   450 4.2.0 later"), "{text}");
        assert_eq!(lines[2], "mx.example: slowed from 5 to 1 connections because of 421 4.7.0 busy");
    }

    /// Tests run without a terminal on stdin.
    #[test]
    fn all_without_a_terminal_requires_yes() {
        let refuse_count = |_: &AdminRequest| -> Result<Value, AdminError> { panic!("no count expected") };
        let error = command("drop --all").confirmation().unwrap().confirm(refuse_count).unwrap_err();
        assert!(error.to_string().contains("--yes"), "{error}");
        assert!(command("drop --all --yes").confirmation().unwrap().confirm(refuse_count).unwrap().is_none());
        assert!(command("release --all").confirmation().is_none(), "release needs no confirmation");
        assert!(command("drop msg_1").confirmation().is_none());
        let fixed_count = |_: &AdminRequest| Ok(json!({"recipients": 277}));
        for line in ["retry --to a.example --dry-run", "hold --all --dry-run", "release --all --dry-run"] {
            let result = command(line).confirmation().unwrap().confirm(fixed_count).unwrap();
            assert_eq!(result, Some(json!({"recipients": 277})), "{line}");
        }
    }
}
