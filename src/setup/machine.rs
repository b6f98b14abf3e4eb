//! The checks that make sense before a configuration exists: name servers, ports, addresses, outgoing mail, disk, clock.
//!
//! A failed check of [`REQUIRED`] ends the setup: what follows would fail too. Everything else is a warning. The
//! hostname is not resolved by the system's resolver: it may not be published yet, and the resolver would remember that.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};

use dns::domain_check::{DomainChecker, LookupType};
use message::address::DomainName;
use message::domain_name::organizational_domain;
use net::clock::Clock;

use super::admin_client::AdminClient;
use super::dialog::Dialog;
use super::error::SetupError;
use super::host_records::HostLookup;
use super::options::SetupOptions;
use super::{answers, config_file};
use crate::config::Config;
use crate::doctor::CheckRunner;
use crate::doctor::addresses::is_private;
use crate::doctor::context::CheckContext;
use crate::doctor::finding::{CheckStatus, DoctorFinding, Observations};
use crate::doctor::render::render_finding;

/// Checks that must not fail.
const REQUIRED: [&str; 5] = ["dns", "ports", "addresses", "port_25_out", "disk"];
/// Checks of `postrider doctor` that need no configuration.
const DOCTOR_CHECKS: [&str; 7] = ["dns", "port_25_out", "blocklists", "clock", "disk", "disk_sync", "memory"];

/// Runs the checks and prints their findings. Returns the public addresses of this machine.
pub(super) async fn check(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    existing: Option<&Config>,
) -> Result<Vec<IpAddr>, SetupError> {
    let hostname = existing.map(|config| config.hostname.clone()).or_else(|| answers::hostname_hint(options));
    let mut config = match existing {
        Some(config) => config.clone(),
        None => config_file::provisional(options)?,
    };
    let is_running = existing.is_some() && AdminClient::new(&config.data_dir).is_running().await;
    let checker =
        crate::services::build_domain_checker(&config).map_err(|error| SetupError::NoResolver(error.to_string()))?;
    let lookup = HostLookup::new(&checker);
    // Behind NAT, the addresses of the hostname are the public ones.
    let mut doctor_options = options.doctor_options();
    if let Some(hostname) = hostname.as_ref().filter(|_| doctor_options.addresses.is_empty()) {
        doctor_options.addresses = published_addresses(&checker, hostname).await;
    }
    config.hostname = config_file::placeholder_hostname();
    let listeners = config_file::listeners(&config);
    let context = CheckContext::build(config, doctor_options, Clock::default())
        .await
        .map_err(|error| SetupError::NoResolver(error.to_string()))?;
    let addresses = match options.addresses.is_empty() {
        true => context.sources.public(),
        false => options.addresses.clone(),
    };
    let locals: Vec<IpAddr> = context.sources.0.iter().map(|source| source.local).collect();
    let mut findings = FindingList { dialog, failed: Vec::new() };
    findings.add(match is_running {
        true => DoctorFinding::good("ports", "the running server has opened them"),
        false => check_ports(&listeners),
    });
    findings.add(evaluate_addresses(&addresses, &locals));
    if !addresses.is_empty() {
        findings.add(check_reverse(&lookup, &addresses, hostname.as_ref()).await);
    }
    let is_selected = |name: &&str| match *name {
        "port_25_out" => !options.skip_port_25,
        "blocklists" => !context.sources.public().is_empty(),
        _ => true,
    };
    let names: Vec<&str> = DOCTOR_CHECKS.into_iter().filter(is_selected).collect();
    if options.skip_port_25 {
        findings.add(DoctorFinding::skipped("port_25_out", "not tested because of --skip-port-25"));
    }
    let mut runner = CheckRunner::start_named(context, &names);
    loop {
        findings.show_running(&runner.running());
        match runner.next_finding().await {
            Some(finding) => findings.add(finding),
            None => break,
        }
    }
    match findings.failed {
        failed if failed.is_empty() => Ok(addresses),
        failed => {
            if failed.contains(&"port_25_out") {
                dialog.print("To set up everything else meanwhile, add --skip-port-25.");
            }
            Err(SetupError::MachineNotReady { checks: failed })
        }
    }
}

/// Prints findings, and collects the names of failed checks.
struct FindingList<'a> {
    dialog: &'a mut dyn Dialog,
    failed: Vec<&'static str>,
}

impl FindingList<'_> {
    fn add(&mut self, finding: DoctorFinding) {
        let finding = if REQUIRED.contains(&finding.name) { finding } else { finding.without_failures() };
        if finding.status == CheckStatus::Failed {
            self.failed.push(finding.name);
        }
        let text = render_finding(&finding, self.dialog.style());
        self.dialog.print(text.trim_end());
    }

    fn show_running(&mut self, names: &[&str]) {
        if !names.is_empty() {
            self.dialog.show_live(&[format!("  checking {}", names.join(", "))]);
        }
    }
}

async fn published_addresses(checker: &DomainChecker, hostname: &DomainName) -> Vec<IpAddr> {
    let domain = organizational_domain(hostname);
    let mut addresses = Vec::new();
    for kind in [LookupType::A, LookupType::Aaaa] {
        let found = checker.lookup(domain.as_str(), hostname.as_str(), kind).await.unwrap_or_default();
        addresses.extend(super::host_records::addresses_of(&found));
    }
    addresses
}

/// Binds each listen address, and releases it.
fn check_ports(listeners: &[SocketAddr]) -> DoctorFinding {
    let results: Vec<_> =
        listeners.iter().map(|at| (*at, TcpListener::bind(at).map(drop).map_err(|error| error.kind()))).collect();
    evaluate_ports(&results)
}

fn evaluate_ports(results: &[(SocketAddr, Result<(), ErrorKind>)]) -> DoctorFinding {
    let mut notes = Observations::default();
    for (at, result) in results {
        let port = at.port();
        match result {
            Ok(()) => {}
            Err(ErrorKind::AddrInUse) if port == 25 => notes.fail(
                "port 25 is used by another program, probably another mail server",
                "To see which one: ss -ltnp 'sport = :25'. Stop it permanently, for example: systemctl disable --now \
                 postfix exim4",
            ),
            Err(ErrorKind::AddrInUse) => notes.fail(
                format!("port {port} is used by another program"),
                format!(
                    "To see which one: ss -ltnp 'sport = :{port}'. Stop it, or write the configuration yourself and \
                     give postrider another port (guide \"Host it yourself\")."
                ),
            ),
            Err(ErrorKind::PermissionDenied) => {
                notes.fail(
                    format!("this user is not allowed to open port {port}"),
                    "Run setup as root, for example \
                    with sudo.",
                );
            }
            Err(kind) => notes.fail(
                format!("{at} cannot be opened: {kind}"),
                "Check the addresses of this machine: \
                ip address",
            ),
        }
    }
    let free: Vec<String> =
        results.iter().filter(|(_, result)| result.is_ok()).map(|(at, _)| at.port().to_string()).collect();
    if !free.is_empty() {
        notes.good(format!("free: {}", free.join(", ")));
    }
    notes.into_finding("ports")
}

fn evaluate_addresses(addresses: &[IpAddr], locals: &[IpAddr]) -> DoctorFinding {
    let mut notes = Observations::default();
    for address in addresses {
        if is_private(*address) {
            notes.warn(
                format!("{address} is a private address, which other mail servers cannot reach"),
                "Give the public address with --address, unless this is a private network.",
            );
        } else {
            notes.good(format!("public address {address}"));
        }
    }
    if addresses.is_empty() && locals.is_empty() {
        notes.fail(
            "this machine has no route to the Internet",
            "Configure an address and a default route: ip address; ip route",
        );
    } else if addresses.is_empty() {
        let locals: Vec<String> = locals.iter().map(ToString::to_string).collect();
        notes.fail(
            format!("this machine has only the private address {}", locals.join(", ")),
            "It is behind NAT. Give the public address that your provider shows: postrider setup --address 203.0.113.5",
        );
    }
    notes.into_finding("addresses")
}

/// Looks up the reverse DNS of each address. It can still be set later, so nothing here fails.
async fn check_reverse(lookup: &HostLookup<'_>, addresses: &[IpAddr], hostname: Option<&DomainName>) -> DoctorFinding {
    let mut notes = Observations::default();
    for address in addresses {
        evaluate_reverse(&mut notes, *address, &lookup.reverse_names(*address).await, hostname);
    }
    notes.into_finding("ptr")
}

fn evaluate_reverse(
    notes: &mut Observations,
    address: IpAddr,
    names: &Result<Vec<String>, String>,
    hostname: Option<&DomainName>,
) {
    const LATER: &str = "Set it at the provider of the address; setup will show how.";
    match names.as_deref() {
        Err(reason) => notes.warn(format!("the PTR record of {address} is unknown: {reason}"), LATER),
        Ok([]) => notes.warn(format!("{address} has no PTR record; large providers refuse its mail"), LATER),
        Ok(names) => match hostname {
            Some(hostname) if names.iter().any(|name| name == hostname.as_str()) => {
                notes.good(format!("{address} has the PTR record {hostname}"));
            }
            Some(hostname) => {
                notes.warn(format!("{address} has the PTR record {}, not {hostname}", names.join(", ")), LATER);
            }
            None => notes.good(format!("{address} has the PTR record {}", names.join(", "))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn used_ports_are_failures_that_name_the_port() {
        let results = [
            ("[::]:25".parse().unwrap(), Err(ErrorKind::AddrInUse)),
            ("[::]:443".parse().unwrap(), Err(ErrorKind::PermissionDenied)),
            ("[::]:587".parse().unwrap(), Ok(())),
        ];
        let finding = evaluate_ports(&results);
        assert_eq!(finding.status, CheckStatus::Failed);
        assert!(finding.found.contains("port 25 is used") && finding.found.contains("free: 587"), "{finding:#?}");
        assert!(finding.fix.unwrap().contains("as root"));
        assert_eq!(evaluate_ports(&results[2..]).status, CheckStatus::Ok);
    }

    #[test]
    fn a_bound_port_is_in_use() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(check_ports(&[listener.local_addr().unwrap()]).status, CheckStatus::Failed);
    }

    #[test]
    fn a_public_address_must_be_known() {
        assert_eq!(evaluate_addresses(&[address("203.0.113.5")], &[]).status, CheckStatus::Ok);
        assert_eq!(evaluate_addresses(&[address("10.0.0.2")], &[]).status, CheckStatus::Warning);
        let unknown = evaluate_addresses(&[], &[address("10.0.0.2")]);
        assert!(unknown.status == CheckStatus::Failed && unknown.found.contains("10.0.0.2"), "{unknown:#?}");
        assert!(unknown.fix.unwrap().contains("--address"));
        assert!(evaluate_addresses(&[], &[]).found.contains("no route"));
    }

    #[test]
    fn reverse_dns_is_compared_with_the_hostname() {
        let hostname: DomainName = "mx1.example.net".parse().unwrap();
        let names = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        let status = |found: Result<Vec<String>, String>, hostname| {
            let mut notes = Observations::default();
            evaluate_reverse(&mut notes, address("203.0.113.5"), &found, hostname);
            notes.into_finding("ptr").status
        };
        assert_eq!(status(names(&["mx1.example.net"]), Some(&hostname)), CheckStatus::Ok);
        assert_eq!(status(names(&["static-5.isp.example"]), Some(&hostname)), CheckStatus::Warning);
        assert_eq!(status(names(&["static-5.isp.example"]), None), CheckStatus::Ok);
        assert_eq!(status(names(&[]), None), CheckStatus::Warning);
        assert_eq!(status(Err("no answer".to_owned()), None), CheckStatus::Warning);
    }
}
