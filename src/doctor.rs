//! `postrider doctor`: what an operator gets wrong, and the fix.
//!
//! ```text
//! configuration ─► Place: resolver, clock, our addresses ─► every check at once, each within its time
//!               ─► Finding { name, status, found, fix }, in the order of the table ─► terminal, pipe or JSON
//! ```
//!
//! A check is two steps: it looks (asks the DNS, connects, reads a file), and it judges what it saw, which is a
//! pure function. Nothing here changes anything: a scratch file in the data directory is measured and taken away.
//! It needs no root, and runs beside the server or without it; what it may not see it says. It ends:
//! [`CHECK_DEADLINE`] bounds each check, and all run at the same time.

mod addresses;
mod blocklists;
mod certificates;
pub(crate) mod connect;
pub(crate) mod der;
mod dial;
mod disk;
pub mod finding;
mod hostname;
mod limits;
mod listeners;
mod names;
pub mod place;
mod port_25;
mod record;
mod reports;
mod sender;
pub mod show;
mod systemd;
#[cfg(test)]
mod testing;
mod time;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use finding::DoctorFinding;
use place::CheckContext;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// No check takes longer; a check that would has found a network that nobody should send mail from.
pub const CHECK_DEADLINE: Duration = Duration::from_secs(20);

type CheckFuture = Pin<Box<dyn Future<Output = DoctorFinding> + Send>>;

struct Check {
    name: &'static str,
    look: fn(Arc<CheckContext>) -> CheckFuture,
}

macro_rules! check {
    ($name:literal, $look:path) => {
        Check { name: $name, look: |place| Box::pin(async move { $look(&place).await }) }
    };
}

/// Every check, in the order in which they are told: who we are, whether mail leaves and comes, the machine.
const CHECKS: &[Check] = &[
    check!("dns", names::check_dns),
    check!("dnssec", names::check_dnssec),
    check!("hostname", hostname::check_hostname),
    check!("ptr", hostname::check_ptr),
    check!("spf", sender::check_spf),
    check!("return_path", sender::check_return_path),
    check!("postmaster", reports::check_postmaster),
    check!("dmarc_reports", reports::check_dmarc_reports),
    check!("domain_connect", connect::check_domain_connect),
    check!("port_25_out", port_25::check_outgoing),
    check!("port_25_in", port_25::check_incoming),
    check!("blocklists", blocklists::check_blocklists),
    check!("certificate", certificates::check_certificate),
    check!("listeners", listeners::check_listeners),
    check!("clock", time::check_clock),
    check!("disk", disk::check_disk),
    check!("disk_sync", disk::check_disk_sync),
    check!("file_limit", limits::check_file_limit),
    check!("memory", limits::check_memory),
    check!("service", systemd::check_service),
];

/// The checks under way; those left are given up when it is dropped.
pub struct CheckRunner(VecDeque<(&'static str, JoinHandle<DoctorFinding>)>);

impl CheckRunner {
    /// Begins every check.
    #[must_use]
    pub fn start(place: CheckContext) -> Self {
        let place = Arc::new(place);
        let begun = |check: &Check| {
            let (name, looking) = (check.name, (check.look)(Arc::clone(&place)));
            let bounded = async move {
                timeout(CHECK_DEADLINE, looking).await.unwrap_or_else(|_| unfinished_finding(name, "took too long"))
            };
            (name, tokio::spawn(bounded))
        };
        Self(CHECKS.iter().map(begun).collect())
    }

    /// Which are not through yet.
    #[must_use]
    pub fn running(&self) -> Vec<&'static str> {
        self.0.iter().filter(|(_, task)| !task.is_finished()).map(|(name, _)| *name).collect()
    }

    /// The next finding, in the order of the checks; none when all are told.
    pub async fn next_finding(&mut self) -> Option<DoctorFinding> {
        let (name, task) = self.0.front_mut()?;
        let found = task.await.unwrap_or_else(|_| unfinished_finding(name, "ended by itself, which is a bug in it"));
        self.0.pop_front();
        Some(found)
    }
}

impl Drop for CheckRunner {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, task)| task.abort());
    }
}

fn unfinished_finding(name: &'static str, what: &str) -> DoctorFinding {
    let fix = "Mend what the other checks found, and run the doctor again.";
    DoctorFinding::warning(name, format!("the check {what}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_check_is_told_once_in_its_order() {
        let ground = testing::TestDns::new("mx1.example.net. A 127.0.0.1").await;
        // Nothing leaves this machine: mail hosts, time servers and lists are not in this DNS.
        let mut examination = CheckRunner::start(testing::test_context(&ground, "").await);
        assert!(!examination.running().is_empty());
        let mut names = Vec::new();
        while let Some(found) = examination.next_finding().await {
            assert!(!found.found.is_empty(), "{found:?}");
            assert_eq!(found.fix.is_some(), found.status >= finding::CheckStatus::Warning, "{found:?}");
            names.push(found.name);
        }
        assert_eq!(names, CHECKS.iter().map(|check| check.name).collect::<Vec<_>>());
    }
}
