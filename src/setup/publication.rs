//! Prints the records to publish, and waits until the DNS has them.
//!
//! ```text
//! records of the server, records of the domain ─► checked ─► zone lines of those to publish ─► checked … all there
//!     ─► the domain is verified ─► its MX record, last: mail that arrives earlier would be refused
//! ```
//!
//! Records are looked up at the authoritative name servers, so that a change is seen at once.

use std::net::IpAddr;
use std::time::Duration;

use dns::domain_check::DomainChecker;
use futures_util::future::join_all;
use model::domain_setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus, zone_file};
use net::clock::Clock;
use tokio::time::{Instant, sleep};

use super::dialog::{Dialog, printable};
use super::error::SetupError;
use super::host_records::{HostLookup, HostRecord, RecordState, has_policy_name, host_records, policy_records};
use super::installation::Installation;
use super::options::SetupOptions;
use crate::admin::{AdminRequest, DomainVerify};
use crate::doctor::finding::CheckStatus;

/// Time after which the wait for DNS ends; the operator continues with the same command.
const WAIT_MAX: Duration = Duration::from_secs(2 * 3600);
/// Shortest and longest interval of checks; in between, a tenth of the time since the zone was printed.
const INTERVAL_MIN: Duration = Duration::from_secs(2);
const INTERVAL_MAX: Duration = Duration::from_secs(15);
/// Time in which the server verifies the domain after its records are there. It repeats a check after ten seconds.
const VERIFY_MAX: Duration = Duration::from_secs(60);

/// Prints the records and waits for them.
pub(super) async fn run(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    let config = &installation.config;
    let checker =
        crate::services::build_domain_checker(config).map_err(|error| SetupError::NoResolver(error.to_string()))?;
    let (domain, addresses) = (&installation.answers.domain, &installation.addresses);
    let is_policy_published = has_policy_name(config, domain);
    let mut hosts = host_records(config, addresses);
    if is_policy_published {
        hosts.extend(policy_records(config, domain, addresses));
    }
    let mut watch = RecordWatch { checker: &checker, installation, hosts, shown: Vec::new() };
    let of_domain = domain_records(installation).await?;
    let intro = "Publish these records where your domain's DNS is managed. The lines are in zone-file format, which most\n\
                 providers can import; in a form, enter the name, type and value of each record.";
    watch.wait(dialog, options, of_domain, intro).await?;
    verify(dialog, options, installation).await?;
    if installation.answers.receive {
        let mut mx = domain_records(installation).await?;
        mx.retain(|record| record.purpose == RecordPurpose::Inbound);
        watch.hosts.clear();
        let intro = format!(
            "This last record directs the mail of {domain} to this server. Remove the domain's other MX records."
        );
        watch.wait(dialog, options, mx, &intro).await?;
    }
    Ok(())
}

/// Records of the domain. The MX record, which exists once the domain is verified, is required if mail is received.
async fn domain_records(installation: &Installation) -> Result<Vec<DomainRecord>, SetupError> {
    const ACTION: &str = "show the domain";
    let request = AdminRequest::DomainShow { name: installation.answers.domain.to_string() };
    let mut shown = installation.admin().request(&request).await.map_err(SetupError::admin(ACTION))?;
    let records: Vec<DomainRecord> = serde_json::from_value(shown["domain"]["records"].take())
        .map_err(|_| SetupError::UnexpectedResponse { action: ACTION })?;
    let is_required = |record: &DomainRecord| record.required || record.purpose == RecordPurpose::Inbound;
    Ok(records.into_iter().map(|record| DomainRecord { required: is_required(&record), ..record }).collect())
}

/// A record in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TableRow {
    label: String,
    required: bool,
    /// The address of a PTR record.
    reverse_of: Option<IpAddr>,
    state: RecordState,
}

impl TableRow {
    /// Returns whether the setup waits for the record. It does not wait for PTR records: some providers give their own
    /// name only, or none to an IPv6 address.
    fn is_awaited(&self) -> bool {
        self.required && self.reverse_of.is_none() && self.state != RecordState::Published
    }

    /// The address whose PTR record is missing.
    fn without_reverse(&self) -> Option<IpAddr> {
        self.reverse_of.filter(|_| matches!(self.state, RecordState::Missing | RecordState::Unanswered(_)))
    }

    fn mark(&self) -> CheckStatus {
        match self.state {
            RecordState::Published => CheckStatus::Ok,
            RecordState::Differs(_) => CheckStatus::Warning,
            RecordState::Missing | RecordState::Unanswered(_) => CheckStatus::Skipped,
        }
    }

    fn text(&self) -> String {
        let state = match (&self.state, self.required) {
            (RecordState::Published, _) => "published".to_owned(),
            (RecordState::Missing, true) => "not published yet".to_owned(),
            (RecordState::Missing, false) => "not published yet (recommended)".to_owned(),
            (RecordState::Differs(reason), _) => format!("differs: {}", printable(reason)),
            (RecordState::Unanswered(reason), _) => format!("unknown: {}", printable(reason)),
        };
        format!("{:<48} {state}", self.label)
    }
}

/// Result of one check of all records.
struct CheckedZone {
    rows: Vec<TableRow>,
    findings: Vec<RecordFinding>,
}

/// Records that are being published.
struct RecordWatch<'a> {
    checker: &'a DomainChecker,
    installation: &'a Installation,
    hosts: Vec<HostRecord>,
    /// Rows as last printed.
    shown: Vec<TableRow>,
}

impl RecordWatch<'_> {
    /// Waits until all required records but PTR records are published. Prints those that are not.
    async fn wait(
        &mut self,
        dialog: &mut dyn Dialog,
        options: &SetupOptions,
        records: Vec<DomainRecord>,
        intro: &str,
    ) -> Result<(), SetupError> {
        self.shown.clear();
        let mut checked = self.check(&records).await;
        let is_complete = |checked: &CheckedZone| !checked.rows.iter().any(TableRow::is_awaited);
        if !is_complete(&checked) || checked.rows.iter().any(|row| row.without_reverse().is_some()) {
            self.print_zone(dialog, &records, &checked, intro);
        }
        if !is_complete(&checked) {
            if options.no_wait {
                print_rows(dialog, &checked.rows);
                return Err(SetupError::RecordsPending { again: options.command_again() });
            }
            dialog.print("Waiting until the records are published. Press Ctrl-C to stop; to continue later, run:");
            dialog.print(&format!("  {}", options.command_again()));
        }
        let started_at = Instant::now();
        loop {
            self.show(dialog, &checked.rows);
            if is_complete(&checked) {
                break;
            }
            if started_at.elapsed() >= WAIT_MAX {
                print_rows(dialog, &checked.rows);
                return Err(SetupError::RecordsPending { again: options.command_again() });
            }
            sleep((started_at.elapsed() / 10).clamp(INTERVAL_MIN, INTERVAL_MAX)).await;
            checked = self.check(&records).await;
        }
        if dialog.is_live() {
            print_rows(dialog, &checked.rows);
        }
        print_missing_reverse(dialog, &checked.rows);
        Ok(())
    }

    async fn check(&self, records: &[DomainRecord]) -> CheckedZone {
        let (lookup, domain) = (HostLookup::new(self.checker), &self.installation.answers.domain);
        let hosts = join_all(self.hosts.iter().map(|record| lookup.state(record)));
        let (states, findings) = tokio::join!(hosts, self.checker.check(domain, records, Clock::default().now()));
        let host_rows = self.hosts.iter().zip(states).map(|(record, state)| TableRow {
            label: record.label.clone(),
            required: record.required,
            reverse_of: record.reverse_of,
            state,
        });
        let domain_rows = records.iter().zip(&findings).map(|(record, finding)| TableRow {
            label: label_of(record),
            required: record.required,
            reverse_of: None,
            state: state_of(finding),
        });
        CheckedZone { rows: host_rows.chain(domain_rows).collect(), findings }
    }

    /// Prints the records that are not published, as lines of a zone file.
    fn print_zone(&self, dialog: &mut dyn Dialog, records: &[DomainRecord], checked: &CheckedZone, intro: &str) {
        let (host_rows, domain_rows) = checked.rows.split_at(self.hosts.len());
        let is_open = |row: &TableRow| row.state != RecordState::Published;
        let open_hosts: Vec<&HostRecord> =
            self.hosts.iter().zip(host_rows).filter(|(_, row)| is_open(row)).map(|(record, _)| record).collect();
        let (reverse, forward): (Vec<_>, Vec<_>) =
            open_hosts.into_iter().partition(|record| record.reverse_of.is_some());
        let open_records = records.iter().zip(&checked.findings).zip(domain_rows).filter(|(_, row)| is_open(row));
        let open_records: Vec<_> = open_records.map(|((record, finding), _)| (record, Some(finding))).collect();
        let domain = self.installation.answers.domain.as_str();
        if !forward.is_empty() || !open_records.is_empty() {
            dialog.print(&format!("{intro}\n"));
        }
        if !forward.is_empty() {
            dialog.print(&format!("; DNS records for the server {}", self.installation.config.hostname));
            forward.iter().for_each(|record| dialog.print(&record.line));
        }
        if !open_records.is_empty() {
            dialog.print(zone_file(domain, open_records.into_iter()).trim_end());
        }
        if !reverse.is_empty() {
            dialog.print(
                "\nSet the reverse DNS (PTR) where you rent the address, usually in the provider's control panel:\n",
            );
            for record in &reverse {
                dialog.print(&record.line);
            }
        }
        if self.installation.answers.receive && !records.iter().any(|record| record.purpose == RecordPurpose::Inbound) {
            dialog.print(&format!(
                "\nThe MX record of {domain} comes once the domain is verified: mail that arrives earlier would be \
                 refused."
            ));
        }
        dialog.print("");
    }

    /// Shows the rows. Without live lines, prints those that changed; otherwise only what is wrong, in full.
    fn show(&mut self, dialog: &mut dyn Dialog, rows: &[TableRow]) {
        for (index, row) in rows.iter().enumerate() {
            let is_changed = self.shown.get(index).is_none_or(|shown| shown.state != row.state);
            let is_news = match row.state {
                RecordState::Differs(_) => true,
                RecordState::Published => !dialog.is_live(),
                _ => false,
            };
            if is_changed && is_news {
                dialog.print(&format!("{} {}", dialog.style().mark(row.mark()), row.text()));
            }
        }
        let lines: Vec<String> = rows.iter().map(|row| format!("{} {}", plain_mark(row), row.text())).collect();
        dialog.show_live(&lines);
        self.shown = rows.to_vec();
    }
}

/// Mark of a live line, which has no colours: it is cut to the width of the terminal.
fn plain_mark(row: &TableRow) -> String {
    crate::doctor::render::OutputStyle::Plain.mark(row.mark())
}

fn print_rows(dialog: &mut dyn Dialog, rows: &[TableRow]) {
    for row in rows {
        dialog.print(&format!("{} {}", dialog.style().mark(row.mark()), row.text()));
    }
}

/// Warns about addresses without PTR records.
fn print_missing_reverse(dialog: &mut dyn Dialog, rows: &[TableRow]) {
    let missing: Vec<IpAddr> = rows.iter().filter_map(TableRow::without_reverse).collect();
    let mark = dialog.style().mark(CheckStatus::Warning);
    for address in &missing {
        dialog.print(&format!(
            "{mark} {address} has no PTR record, so large providers refuse its mail. Set one as soon as you can."
        ));
    }
    let is_kept = |address: &IpAddr| address.is_ipv4() && !missing.contains(address);
    let kept = rows.iter().filter_map(|row| row.reverse_of).find(is_kept);
    if let Some(kept) = kept.filter(|_| missing.iter().any(IpAddr::is_ipv6)) {
        dialog.print(&format!(
            "  If your provider offers none for IPv6: `--address {kept}` leaves IPv6 out of the records;"
        ));
        dialog.print(&format!(
            "  also set source_addresses = [\"{kept}\"] in [delivery], so that all mail is sent from it."
        ));
    }
}

fn label_of(record: &DomainRecord) -> String {
    format!("{:<5} {}", record.record_type.word(), record.name)
}

fn state_of(finding: &RecordFinding) -> RecordState {
    let reason = || finding.error.clone().unwrap_or_default();
    match finding.status {
        RecordStatus::Verified => RecordState::Published,
        RecordStatus::Missing => RecordState::Missing,
        RecordStatus::Mismatch | RecordStatus::Conflict => RecordState::Differs(reason()),
        RecordStatus::Pending => RecordState::Unanswered(reason()),
    }
}

/// Has the server verify the domain.
async fn verify(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    const ACTION: &str = "verify the domain";
    let name = installation.answers.domain.to_string();
    let until = Instant::now() + VERIFY_MAX;
    loop {
        let request = AdminRequest::DomainVerify(DomainVerify { name: name.clone(), force: false });
        let shown = installation.admin().request(&request).await.map_err(SetupError::admin(ACTION))?;
        if shown["domain"]["status"] == "verified" {
            dialog.print(&format!("{name} is verified: the server can send from it."));
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(SetupError::RecordsPending { again: options.command_again() });
        }
        dialog.show_live(&[format!("  verifying {name}")]);
        sleep(INTERVAL_MIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ScriptedDialog, installation};
    use super::*;

    fn row(state: RecordState) -> TableRow {
        TableRow { label: "TXT   example.net".to_owned(), required: true, reverse_of: None, state }
    }

    #[test]
    fn the_setup_waits_for_required_records() {
        assert!(!row(RecordState::Published).is_awaited());
        assert!(row(RecordState::Missing).is_awaited() && row(RecordState::Differs(String::new())).is_awaited());
        assert!(row(RecordState::Unanswered(String::new())).is_awaited());
        let optional = TableRow { required: false, ..row(RecordState::Missing) };
        assert!(!optional.is_awaited());
    }

    #[test]
    fn the_setup_goes_on_without_reverse_dns() {
        let reverse = |address: &str, state| TableRow { reverse_of: address.parse().ok(), ..row(state) };
        let other = reverse("203.0.113.5", RecordState::Differs("isp.example".to_owned()));
        let missing = reverse("2001:db8::5", RecordState::Missing);
        assert!(!other.is_awaited() && !missing.is_awaited());
        let mut dialog = ScriptedDialog::without_terminal();
        print_missing_reverse(&mut dialog, std::slice::from_ref(&other));
        assert_eq!(dialog.output, "");
        print_missing_reverse(&mut dialog, &[other, missing]);
        assert!(dialog.output.contains("2001:db8::5 has no PTR record"), "{}", dialog.output);
        assert!(dialog.output.contains("`--address 203.0.113.5` leaves"), "{}", dialog.output);
    }

    #[tokio::test]
    async fn only_changes_are_printed_without_a_terminal() {
        let installation = installation("");
        let checker = crate::services::build_domain_checker(&installation.config).unwrap();
        let mut watch =
            RecordWatch { checker: &checker, installation: &installation, hosts: Vec::new(), shown: Vec::new() };
        let mut dialog = ScriptedDialog::without_terminal();
        watch.show(&mut dialog, &[row(RecordState::Missing)]);
        assert_eq!(dialog.output, "");
        watch.show(&mut dialog, &[row(RecordState::Differs("the DNS has v=spf1 -all".to_owned()))]);
        watch.show(&mut dialog, &[row(RecordState::Differs("the DNS has v=spf1 -all".to_owned()))]);
        watch.show(&mut dialog, &[row(RecordState::Published)]);
        watch.show(&mut dialog, &[row(RecordState::Published)]);
        let lines: Vec<&str> = dialog.output.lines().collect();
        assert_eq!(lines.len(), 2, "{}", dialog.output);
        assert!(lines[0].ends_with("differs: the DNS has v=spf1 -all") && lines[1].ends_with("published"));
    }

    #[tokio::test]
    async fn the_zone_has_what_is_not_published() {
        let installation = installation("");
        let checker = crate::services::build_domain_checker(&installation.config).unwrap();
        let hosts = host_records(&installation.config, &installation.addresses);
        let watch = RecordWatch { checker: &checker, installation: &installation, hosts, shown: Vec::new() };
        let mut dialog = ScriptedDialog::without_terminal();
        let rows = watch.hosts.iter().enumerate().map(|(index, record)| TableRow {
            label: record.label.clone(),
            required: record.required,
            reverse_of: record.reverse_of,
            state: if index == 0 { RecordState::Published } else { RecordState::Missing },
        });
        let checked = CheckedZone { rows: rows.collect(), findings: Vec::new() };
        watch.print_zone(&mut dialog, &[], &checked, "Publish:");
        assert!(!dialog.output.contains("IN A "), "{}", dialog.output);
        let zone: Vec<&str> = dialog.output.lines().filter(|line| line.contains(" IN ")).collect();
        assert_eq!(zone.len(), 5, "{}", dialog.output);
        assert!(zone[4].contains("IN PTR") && dialog.output.contains("reverse DNS (PTR)"), "{}", dialog.output);
    }
}
