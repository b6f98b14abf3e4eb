//! `postrider doctor`: checks the installation and its environment, and suggests fixes.
//!
//! ```text
//! configuration ─► CheckContext: resolver, clock, addresses ─► all checks concurrently, each with a timeout
//!               ─► DoctorFinding { name, status, found, fix }, in the order of `CHECKS` ─► terminal, pipe or JSON
//! ```
//!
//! A check has two steps: it observes (queries DNS, connects, reads a file), then evaluates the observation in a pure
//! function. Checks change nothing, except for a scratch file in the data directory that is measured and removed. Root
//! is not required, and the server may run or not; checks report what they are not permitted to see.
//! [`CHECK_DEADLINE`] limits each check, and all run concurrently.

pub(crate) mod addresses;
mod blocklists;
mod certificates;
mod clock;
pub mod context;
mod disk;
pub(crate) mod domain_connect;
pub mod finding;
mod greeting;
mod hostname;
mod limits;
mod listeners;
mod name_servers;
mod port_25;
pub mod render;
mod reports;
mod sender_records;
pub(crate) mod systemd;
#[cfg(test)]
mod testing;
pub(crate) mod x509;
pub(crate) mod zone_lines;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use context::CheckContext;
use finding::DoctorFinding;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Timeout of a check. A check that takes longer indicates a network unsuitable for sending mail.
pub const CHECK_DEADLINE: Duration = Duration::from_secs(20);

type CheckFuture = Pin<Box<dyn Future<Output = DoctorFinding> + Send>>;

struct Check {
    name: &'static str,
    run: fn(Arc<CheckContext>) -> CheckFuture,
}

macro_rules! check {
    ($name:literal, $run:path) => {
        Check { name: $name, run: |context| Box::pin(async move { $run(&context).await }) }
    };
}

/// All checks in output order: identity, outgoing and incoming mail, the machine.
const CHECKS: &[Check] = &[
    check!("dns", name_servers::check_dns),
    check!("dnssec", name_servers::check_dnssec),
    check!("hostname", hostname::check_hostname),
    check!("ptr", hostname::check_ptr),
    check!("spf", sender_records::check_spf),
    check!("return_path", sender_records::check_return_path),
    check!("postmaster", reports::check_postmaster),
    check!("dmarc_reports", reports::check_dmarc_reports),
    check!("domain_connect", domain_connect::check_domain_connect),
    check!("port_25_out", port_25::check_outgoing),
    check!("port_25_in", port_25::check_incoming),
    check!("blocklists", blocklists::check_blocklists),
    check!("certificate", certificates::check_certificate),
    check!("listeners", listeners::check_listeners),
    check!("clock", clock::check_clock),
    check!("disk", disk::check_disk),
    check!("disk_sync", disk::check_disk_sync),
    check!("file_limit", limits::check_file_limit),
    check!("memory", limits::check_memory),
    check!("service", systemd::check_service),
];

/// Running checks. Dropping it aborts those that are not finished.
pub struct CheckRunner(VecDeque<(&'static str, JoinHandle<DoctorFinding>)>);

impl CheckRunner {
    /// Starts every check.
    pub fn start(context: CheckContext) -> Self {
        Self::start_matching(context, |_| true)
    }

    pub fn start_named(context: CheckContext, names: &[&str]) -> Self {
        Self::start_matching(context, |name| names.contains(&name))
    }

    fn start_matching(context: CheckContext, is_selected: impl Fn(&str) -> bool) -> Self {
        let context = Arc::new(context);
        let spawn_check = |check: &Check| {
            let (name, check) = (check.name, (check.run)(Arc::clone(&context)));
            let with_deadline = async move {
                timeout(CHECK_DEADLINE, check).await.unwrap_or_else(|_| unfinished_finding(name, "timed out"))
            };
            (name, tokio::spawn(with_deadline))
        };
        Self(CHECKS.iter().filter(|check| is_selected(check.name)).map(spawn_check).collect())
    }

    /// Names of the checks that are not finished.
    pub fn running(&self) -> Vec<&'static str> {
        self.0.iter().filter(|(_, task)| !task.is_finished()).map(|(name, _)| *name).collect()
    }

    /// Returns the next finding in the order of the checks; none after the last.
    pub async fn next_finding(&mut self) -> Option<DoctorFinding> {
        let (name, task) = self.0.front_mut()?;
        let finding = task.await.unwrap_or_else(|_| unfinished_finding(name, "crashed; please report this bug"));
        self.0.pop_front();
        Some(finding)
    }
}

impl Drop for CheckRunner {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, task)| task.abort());
    }
}

fn unfinished_finding(name: &'static str, outcome: &str) -> DoctorFinding {
    let fix = "Fix the other findings, then run the doctor again.";
    DoctorFinding::warning(name, format!("the check {outcome}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_check_is_reported_once_in_order() {
        let dns = testing::TestDns::new("mx1.example.net. A 127.0.0.1").await;
        // Does not depend on the network: mail hosts, time servers and lists are not in this DNS.
        let mut runner = CheckRunner::start(testing::test_context(&dns, "").await);
        assert!(!runner.running().is_empty());
        let mut names = Vec::new();
        while let Some(found) = runner.next_finding().await {
            assert!(!found.found.is_empty(), "{found:?}");
            assert_eq!(found.fix.is_some(), found.status >= finding::CheckStatus::Warning, "{found:?}");
            names.push(found.name);
        }
        assert_eq!(names, CHECKS.iter().map(|check| check.name).collect::<Vec<_>>());
    }
}
