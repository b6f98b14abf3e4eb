//! `logs tail`: the request log as it grows.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use clap::Command;
use serde_json::Value;

use super::workflow::WorkflowRun;
use crate::arguments::option;
use crate::client::Call;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output::{self, Format};
use mcp::arguments::encode;

const PAUSE: Duration = Duration::from_secs(1);
/// Entries of a page; more requests than this within a pause are read on further pages.
const PAGE: usize = 100;
const PAGES_MAX: usize = 50;
/// Requests of the past that show that it works.
const FIRST_MAX: usize = 10;
/// Ids that are remembered as printed.
const PRINTED_MAX: usize = 10_000;

pub(super) fn command() -> Command {
    super::described("logs tail", &["postrider logs tail --status 4xx", "postrider logs tail --path /emails --count 1"])
        .arg(option("status", "TEXT", "Only this status or class, for example 422 or 5xx"))
        .arg(option("method", "TEXT", "Only this method"))
        .arg(option("path", "TEXT", "Only paths that start with this"))
        .arg(option("count", "N", "Stop after N requests").value_parser(clap::value_parser!(u64).range(1..)))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let filters: String = ["status", "method", "path"]
        .iter()
        .filter_map(|name| run.text(name).map(|value| format!("&{name}={}", encode(value))))
        .collect();
    let (mut printed, mut order) = (HashSet::new(), VecDeque::new());
    let (mut count, last) = (0_u64, run.matches.get_one::<u64>("count").copied());
    let mut is_first = true;
    loop {
        let mut new = Vec::new();
        let mut cursor = String::new();
        'pages: for _ in 0..PAGES_MAX {
            let target = format!("/logs?limit={PAGE}{filters}{cursor}");
            let page = client.call(&Call::get(target)).await?.json()?;
            for log in page["logs"].as_array().cloned().unwrap_or_default() {
                let id = log["id"].as_str().unwrap_or_default().to_owned();
                if printed.contains(&id) {
                    break 'pages;
                }
                new.push((id, log));
            }
            match page["next_cursor"].as_str() {
                Some(next) if !is_first && page["has_more"] == true => cursor = format!("&cursor={}", encode(next)),
                _ => break,
            }
        }
        if is_first {
            let wanted = last.and_then(|last| usize::try_from(last).ok());
            new.truncate(wanted.map_or(FIRST_MAX, |wanted| wanted.min(FIRST_MAX)));
        }
        for (id, log) in new.into_iter().rev() {
            print(&log, run.format())?;
            printed.insert(id.clone());
            order.push_back(id);
            if order.len() > PRINTED_MAX {
                order.pop_front().map(|oldest| printed.remove(&oldest));
            }
            count += 1;
            if last.is_some_and(|last| count >= last) {
                return Ok(());
            }
        }
        is_first = false;
        tokio::time::sleep(PAUSE).await;
    }
}

fn print(log: &Value, format: Format) -> Result<(), CliError> {
    if format != Format::Text {
        return output::print_json_line(log);
    }
    let text = |name: &str| log[name].as_str().unwrap_or_default();
    let line = format!(
        "{}  {}  {:6} {}  {} ms  {}",
        text("created_at"),
        log["status"],
        text("method"),
        text("path"),
        log["duration_ms"],
        text("error_code")
    );
    output::print(output::safe_text(&line).trim_end())
}
