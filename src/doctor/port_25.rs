//! `port_25_out` and `port_25_in`: checks that port 25 is open for outgoing and incoming mail.
//!
//! Out: connects from each source address to a well-known mail host (or `--out`) and reads its greeting. In: connects
//! to this machine's public address. That tests the listener and the local firewall, but not the provider's; only a
//! connection from outside does, and the finding states that.

use std::net::{IpAddr, SocketAddr};

use dns::mx::MailHosts;
use message::address::DomainName;
use queue::routing::smarthosts::SmarthostEndpoint;

use super::context::{CheckContext, ProbeHost, join_words};
use super::finding::{DoctorFinding, Observations};
use super::greeting::{self, GreetingResult};
use super::limits;

/// Domains with permanently reachable mail hosts; two, in case one of them fails.
const WELL_KNOWN: [&str; 2] = ["gmail.com", "outlook.com"];
/// Port of SMTP (RFC 5321 4.5.4.2).
const SMTP: u16 = 25;

const BLOCKED: &str = "\
Outgoing port 25 is blocked, by a local firewall (nft list ruleset) or by the provider.
Most clouds block it for new servers, against spam. AWS, Azure, Oracle, Hetzner, Vultr, Linode and others
unblock it on request (a support ticket; AWS: \"Request to remove email sending limitations\"), some only for
established customers; Google Cloud and DigitalOcean do not. Until then, send through a relay on another port:
[delivery]
smarthost = \"relay.example.net:587\"";

/// Result of probing one host.
struct GreetingProbe {
    from: Option<IpAddr>,
    host: String,
    to: SocketAddr,
    result: GreetingResult,
}

/// Hosts to probe, with their addresses.
async fn probe_targets(context: &CheckContext) -> Result<Vec<(String, Vec<SocketAddr>)>, String> {
    let port = context.config.delivery.port;
    if let Some(target) = &context.options.out {
        let found = context.addresses(&target.host).await?;
        return Ok(vec![(target.host.to_string(), with_port(&found, target.port.unwrap_or(port)))]);
    }
    if let Some(smarthost) = context.config.delivery.default_smarthost() {
        let mut targets = Vec::new();
        // At most two hosts are probed concurrently.
        for endpoint in smarthost.endpoints.into_iter().take(2) {
            targets.push(match endpoint {
                SmarthostEndpoint::Address(address) => (address.ip().to_string(), vec![address]),
                SmarthostEndpoint::Host(name, port) => {
                    let found = context.addresses(&ProbeHost::Name(name.clone())).await?;
                    (name.to_string(), with_port(&found, port))
                }
            });
        }
        return Ok(targets);
    }
    let mut targets = Vec::new();
    let mut last_error = String::new();
    let [first, second] = WELL_KNOWN;
    let (first, second) = tokio::join!(first_mx_host(context, first), first_mx_host(context, second));
    for found in [first, second] {
        match found {
            Ok((host, found)) => targets.push((host.to_string(), with_port(&found, port))),
            Err(reason) => last_error = reason,
        }
    }
    if targets.is_empty() { Err(last_error) } else { Ok(targets) }
}

fn with_port(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect()
}

async fn first_mx_host(context: &CheckContext, domain: &str) -> Result<(DomainName, Vec<IpAddr>), String> {
    let domain: DomainName = domain.parse().map_err(|_| format!("{domain} is not a DNS name"))?;
    let found = context.resolver.mx(&domain).await.map_err(|error| error.to_string())?;
    let MailHosts::Mx(hosts) = found.data else { return Err(format!("{domain} has no MX records")) };
    let host = hosts.into_iter().next().ok_or_else(|| format!("{domain} has no mail host"))?.host;
    let addresses = context.addresses(&ProbeHost::Name(host.clone())).await?;
    Ok((host, addresses))
}

pub(super) async fn check_outgoing(context: &CheckContext) -> DoctorFinding {
    let mut notes = Observations::default();
    let targets = match probe_targets(context).await {
        Ok(targets) => targets,
        Err(reason) => {
            let fix = "See the finding `dns`; or name a host to probe: postrider doctor --out HOST:PORT";
            notes.warn(format!("no mail host to probe: {reason}"), fix);
            return notes.into_finding("port_25_out");
        }
    };
    let configured = context.config.delivery.all_source_addresses();
    let mut probe_count = 0;
    for source in &context.sources.0 {
        let is_configured = configured.iter().any(|(address, _)| *address == source.local);
        let from = is_configured.then_some(source.local);
        let dials = targets.iter().filter_map(|(host, addresses)| {
            let to = *addresses.iter().find(|to| to.is_ipv4() == source.local.is_ipv4())?;
            Some(async move {
                GreetingProbe { from, host: host.clone(), to, result: greeting::read_greeting(from, to).await }
            })
        });
        let probes = join_all(dials.collect()).await;
        probe_count += probes.len();
        evaluate_outgoing(&mut notes, &probes, context.uses_smarthost());
    }
    if probe_count == 0 {
        let hosts: Vec<&String> = targets.iter().map(|(host, _)| host).collect();
        let fix = "Configure an address and a default route, or name another host: postrider doctor --out HOST:PORT";
        notes.fail(format!("no route from here to {}", join_words(&hosts)), fix);
    }
    notes.into_finding("port_25_out")
}

/// Awaits at most two futures concurrently; results keep their order.
async fn join_all<T>(mut dials: Vec<impl Future<Output = T>>) -> Vec<T> {
    match (dials.pop(), dials.pop()) {
        (Some(last), Some(first)) => {
            let (first, last) = tokio::join!(first, last);
            vec![first, last]
        }
        (Some(only), None) => vec![only.await],
        _ => Vec::new(),
    }
}

/// Rates one source address by its best result.
fn evaluate_outgoing(notes: &mut Observations, probes: &[GreetingProbe], smarthost: bool) {
    let source_suffix = |probe: &GreetingProbe| probe.from.map_or_else(String::new, |from| format!(" from {from}"));
    let has_greeting =
        |probe: &&GreetingProbe| matches!(&probe.result, GreetingResult::Greeting(line) if line.starts_with("220"));
    if let Some(probe) = probes.iter().find(has_greeting) {
        let GreetingProbe { host, to, result: greeting, .. } = probe;
        return match greeting {
            GreetingResult::Greeting(line) if is_intercepted(host, line) => notes.warn(
                format!(
                    "{host} [{to}]{} {greeting}, which is not its own greeting: a proxy intercepts the connection",
                    source_suffix(probe)
                ),
                "Ask the provider whether a transparent proxy redirects port 25, and to disable it for this server.",
            ),
            _ => notes.good(format!("{host} [{to}]{} {greeting}", source_suffix(probe))),
        };
    }
    let Some(probe) = probes.first() else { return };
    let GreetingProbe { host, to, result: greeting, .. } = probe;
    let found = format!("{host} [{to}]{}: {greeting}", source_suffix(probe));
    match greeting {
        GreetingResult::Greeting(_) => notes.fail(
            format!("{found}, so it refuses this server"),
            "Its reply gives the reason; see also the findings `ptr` and `blocklists`.",
        ),
        GreetingResult::Failed(_) => notes.fail(
            found,
            "Nothing was sent: check that the `source_addresses` are on this machine, and check the default route (ip \
             route).",
        ),
        _ if smarthost => notes.fail(
            found,
            "Check `smarthost` in [delivery], and that the relay permits this server (firewall, port, networks).",
        ),
        _ => notes.fail(found, BLOCKED),
    }
}

/// Returns whether a greeting lacks the name of a well-known host, so that a proxy must have sent it.
fn is_intercepted(host: &str, line: &str) -> bool {
    let known = [("google.com", "google"), ("outlook.com", "outlook")];
    let line = line.to_ascii_lowercase();
    known.iter().any(|(domain, word)| host.ends_with(domain) && !line.contains(word))
}

/// Configured listeners on port 25.
fn smtp_listeners(context: &CheckContext) -> Vec<SocketAddr> {
    let config = &context.config;
    let relays = config.relay.iter().flat_map(|relay| &relay.listen);
    let submission = config.submission.listen.iter().chain(&config.submission.implicit_tls);
    relays.chain(submission).chain(&config.mx.listen).copied().filter(|listen| listen.port() == SMTP).collect()
}

pub(super) async fn check_incoming(context: &CheckContext) -> DoctorFinding {
    let public = context.sources.public();
    let mut greeting = Vec::new();
    for address in public.iter().copied().take(4) {
        greeting.push((address, greeting::read_greeting(None, SocketAddr::new(address, SMTP)).await));
    }
    let machine = MachineState {
        listeners: &smtp_listeners(context),
        behind_nat: context.sources.behind_nat(),
        server_runs: limits::running_server_pid(&context.config.data_dir).await.is_some(),
    };
    evaluate_incoming(&context.config.hostname, &machine, &greeting)
}

/// The state of this machine that the answer of port 25 depends on.
struct MachineState<'a> {
    listeners: &'a [SocketAddr],
    behind_nat: bool,
    /// False, too, if the data directory is not accessible.
    server_runs: bool,
}

fn evaluate_incoming(
    hostname: &DomainName,
    machine: &MachineState<'_>,
    greeting: &[(IpAddr, GreetingResult)],
) -> DoctorFinding {
    let listeners = machine.listeners;
    let advice = format!("This can only be verified from outside. On another machine, run: nc -vz {hostname} 25");
    if listeners.is_empty() {
        let responding = greeting.iter().find(|(_, greeting)| matches!(greeting, GreetingResult::Greeting(_)));
        return match responding {
            Some((address, greeting)) => {
                let mut notes = Observations::default();
                notes.good(format!(
                    "{address}:25 {greeting}; another program listens there, because no listener is configured"
                ));
                notes.into_finding("port_25_in")
            }
            None => DoctorFinding::skipped(
                "port_25_in",
                "no listener is configured on port 25, so no mail and no bounces are received",
            ),
        };
    }
    let mut notes = Observations::default();
    if listeners.iter().all(|listen| listen.ip().is_loopback()) {
        notes.warn(
            format!("port 25 is only open on {}, which others cannot reach", join_words(listeners)),
            "Listen on all addresses: listen = [\"[::]:25\"] (and \"0.0.0.0:25\", if that does not include IPv4).",
        );
        return notes.into_finding("port_25_in");
    }
    if greeting.is_empty() {
        notes.skip(format!("the public address is unknown. {advice}"));
    }
    for (address, greeting) in greeting {
        match greeting {
            GreetingResult::Greeting(line) if line.starts_with("220") => {
                notes.good(format!("{address}:25 {greeting}, as seen from this machine. {advice}"));
            }
            // Before the first start nothing can answer. A firewall would rather let the attempt time out.
            GreetingResult::Refused if !machine.server_runs => notes.skip(format!(
                "{address}:25: {greeting}, because the server is not running; check again after the start. {advice}"
            )),
            _ if machine.behind_nat => {
                notes.skip(format!("{address}:25: {greeting}; NAT may not support connections from inside. {advice}"))
            }
            _ => notes.fail(
                format!("{address}:25: {greeting}"),
                format!(
                    "Check that the server runs and that the firewall permits port 25:\n\
                     nft add rule inet filter input tcp dport 25 accept\n{advice}"
                ),
            ),
        }
    }
    notes.into_finding("port_25_in")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context, test_context_with};
    use super::*;

    async fn serve_greeting(greeting: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(greeting.as_bytes()).await;
                let _ = stream.read(&mut [0; 64]).await;
            }
        });
        address
    }

    #[tokio::test]
    async fn the_greeting_is_read() {
        for (greeting, status, expected_text) in [
            ("220 mx.example.org ESMTP\r\n", CheckStatus::Ok, "responded \"220 mx.example.org ESMTP\""),
            ("554 5.7.1 go away\r\n", CheckStatus::Failed, "refuses this server"),
        ] {
            let (dns, to) = (TestDns::new("").await, serve_greeting(greeting).await);
            let mut context = test_context(&dns, "source_addresses = [\"127.0.0.1\"]").await;
            context.options.out = Some(to.to_string().parse().unwrap());
            let found = check_outgoing(&context).await;
            assert_eq!(found.status, status, "{found:#?}");
            assert!(found.found.contains(expected_text), "{found:#?}");
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_reported_with_advice() {
        let closed = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        let dns = TestDns::new("gmail.com. MX 10 mx.google.com.\nmx.google.com. A 127.0.0.1").await;
        let extra = format!("source_addresses = [\"127.0.0.1\"]\nport = {}", closed.port());
        let found = check_outgoing(&test_context(&dns, &extra).await).await;
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.found.starts_with("mx.google.com [127.0.0.1:"), "{found:#?}");
        assert!(found.fix.unwrap().contains("Most clouds block it"));
        let empty_dns = TestDns::new("").await;
        assert_eq!(check_outgoing(&test_context(&empty_dns, "").await).await.status, CheckStatus::Warning);
    }

    #[test]
    fn an_intercepting_proxy_is_detected() {
        assert!(!is_intercepted("gmail-smtp-in.l.google.com", "220 mx.google.com ESMTP x - gsmtp"));
        assert!(is_intercepted("gmail-smtp-in.l.google.com", "220 smtp.isp.example ESMTP Postfix"));
        assert!(!is_intercepted("mx.example.org", "220 other.example ESMTP"));
    }

    #[tokio::test]
    async fn the_mx_listener_is_one_on_port_25() {
        let dns = TestDns::new("").await;
        let sections = "[mx]\nlisten = [\"[::]:25\", \"[::]:2525\"]\n[tls.acme]\nhttp_listen = \"127.0.0.1:80\"\n";
        let context = test_context_with(&dns, sections).await;
        assert_eq!(smtp_listeners(&context), ["[::]:25".parse().unwrap()]);
    }

    #[test]
    fn port_25_is_evaluated_by_its_greeting() {
        let hostname = "mx1.example.net".parse().unwrap();
        let (address, listeners) = ("203.0.113.5".parse().unwrap(), ["[::]:25".parse().unwrap()]);
        let line = || GreetingResult::Greeting("220 mx1.example.net".to_owned());
        let evaluate_greeting = |listeners: &[SocketAddr], greeting: GreetingResult, behind_nat| {
            let machine = MachineState { listeners, behind_nat, server_runs: true };
            evaluate_incoming(&hostname, &machine, &[(address, greeting)])
        };
        assert_eq!(evaluate_greeting(&listeners, line(), false).status, CheckStatus::Ok);
        assert_eq!(evaluate_greeting(&listeners, GreetingResult::TimedOut, false).status, CheckStatus::Failed);
        assert_eq!(evaluate_greeting(&listeners, GreetingResult::TimedOut, true).status, CheckStatus::Skipped);
        assert_eq!(evaluate_greeting(&[], GreetingResult::Refused, false).status, CheckStatus::Skipped);
        assert_eq!(evaluate_greeting(&[], line(), false).status, CheckStatus::Ok);
        assert_eq!(evaluate_greeting(&["127.0.0.1:25".parse().unwrap()], line(), false).status, CheckStatus::Warning);
        assert_eq!(evaluate_greeting(&listeners, GreetingResult::Refused, false).status, CheckStatus::Failed);
        let not_started = MachineState { listeners: &listeners, behind_nat: false, server_runs: false };
        for (greeting, status) in
            [(GreetingResult::Refused, CheckStatus::Skipped), (GreetingResult::TimedOut, CheckStatus::Failed)]
        {
            assert_eq!(evaluate_incoming(&hostname, &not_started, &[(address, greeting)]).status, status);
        }
    }
}
