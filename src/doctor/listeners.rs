//! `listeners`: checks that configured listeners are open, and that none is exposed unintentionally.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use model::log_text;

use super::addresses::{is_private, reachable_address};
use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};
use super::greeting::{self, GreetingResult};
use super::limits;
use crate::config::Config;

/// Pairs of unrelated addresses: a set of networks with both of a pair contains nearly the whole Internet.
const UNRELATED_ADDRESSES: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)), IpAddr::V4(Ipv4Addr::new(200, 7, 84, 1))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2c0f, 0xfb50, 0, 0, 0, 0, 0, 1)),
    ],
];

/// All listeners with their configuration keys.
fn configured_listeners(config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let relays = config.relay.iter().flat_map(|relay| &relay.listen).map(|at| ("[[relay]]", *at));
    let submission = config.submission.listen.iter().map(|at| ("[submission] listen", *at));
    let tls = config.submission.implicit_tls.iter().map(|at| ("[submission] implicit_tls", *at));
    let mx = config.mx.listen.iter().map(|at| ("[mx] listen", *at));
    let acme = config.tls.acme.iter().flat_map(|acme| &acme.http_listen).map(|at| ("[tls.acme] http_listen", *at));
    let api = config.api.listen.iter().map(|at| ("[api] listen", *at));
    let ops = config.ops.listen.iter().map(|at| ("[ops] listen", *at));
    let smtp = submission.chain(tls).chain(mx).chain(relays);
    smtp.chain(api).chain(acme).chain(ops).filter(|(_, at)| at.port() != 0).collect()
}

/// Checks that the listeners are open, and their exposure.
pub(super) async fn check_listeners(context: &CheckContext) -> DoctorFinding {
    let mut notes = Observations::default();
    evaluate_exposure(&mut notes, &context.config);
    let mut probes = Vec::new();
    for (key, listen) in configured_listeners(&context.config) {
        // Local addresses respond immediately or not at all.
        probes.push((key, listen, greeting::probe_port(reachable_address(listen)).await));
    }
    let running = limits::running_server_pid(&context.config.data_dir).await.is_some();
    evaluate(&mut notes, &probes, running);
    notes.into_finding("listeners")
}

fn evaluate(
    notes: &mut Observations,
    probes: &[(&'static str, SocketAddr, Result<(), GreetingResult>)],
    running: bool,
) {
    if !running && probes.iter().all(|(_, _, probe)| probe.is_err()) {
        return notes.skip("the server is not running (or its data directory is not accessible): no listener is open");
    }
    let open: Vec<String> =
        probes.iter().filter(|(_, _, probe)| probe.is_ok()).map(|(_, at, _)| at.to_string()).collect();
    if !open.is_empty() {
        notes.good(format!("open: {}", open.join(", ")));
    }
    for (key, at, probe) in probes {
        if let Err(failure) = probe {
            notes.fail(
                format!("{at} ({key}): {failure}"),
                format!(
                    "Check that the server runs with this configuration, and that no other program uses the port: \
                     ss -ltnp 'sport = :{}'",
                    at.port()
                ),
            );
        }
    }
}

/// Reports listeners that are exposed to the Internet and should not be.
fn evaluate_exposure(notes: &mut Observations, config: &Config) {
    let is_exposed = |at: &&SocketAddr| !is_private(at.ip()) || at.ip().is_unspecified();
    for at in config.ops.listen.iter().filter(is_exposed) {
        notes.warn(
            format!("[ops] listens on {at}: metrics are exposed to other machines"),
            format!("[ops]\nlisten = \"127.0.0.1:{}\"\nor block the port in the firewall.", at.port()),
        );
    }
    for relay in &config.relay {
        let is_open = UNRELATED_ADDRESSES.iter().any(|addresses| {
            addresses.iter().all(|address| relay.networks.iter().any(|network| network.contains(*address)))
        });
        let Some(at) = relay.listen.iter().find(is_exposed).filter(|_| is_open) else { continue };
        let account = log_text::cleaned(&relay.account, true);
        notes.fail(
            format!("open relay: {at} accepts mail from any client for the account {account}"),
            "List only the permitted clients in `networks` of [[relay]]; an open relay is on blocklists within hours.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;
    use crate::config;

    #[test]
    fn exposed_listeners_are_reported() {
        let status_of = |extra: &str| {
            let text = format!("hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n{extra}");
            let mut notes = Observations::default();
            evaluate_exposure(&mut notes, &config::from_text(&text, []).unwrap());
            notes.into_finding("listeners").status
        };
        let relay = |at: &str, networks: &str| {
            status_of(&format!("[[relay]]\nlisten = \"{at}:2525\"\nnetworks = {networks}\naccount = \"a\"\n"))
        };
        assert_eq!(status_of("[ops]\nlisten = \"0.0.0.0:9025\"\n"), CheckStatus::Warning);
        assert_eq!(status_of("[ops]\nlisten = \"10.0.0.1:9025\"\n"), CheckStatus::Skipped);
        assert_eq!(relay("0.0.0.0", "\"0.0.0.0/0\""), CheckStatus::Failed);
        assert_eq!(relay("0.0.0.0", "[\"0.0.0.0/1\", \"128.0.0.0/1\"]"), CheckStatus::Failed);
        assert_eq!(relay("127.0.0.1", "\"0.0.0.0/0\""), CheckStatus::Skipped);
        assert_eq!(relay("0.0.0.0", "[\"10.0.0.0/8\", \"192.0.2.0/24\"]"), CheckStatus::Skipped);
    }

    #[test]
    fn an_open_relay_is_reported_without_the_address_of_its_account() {
        let text = "hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n\
                    [[relay]]\nlisten = \"0.0.0.0:2525\"\nnetworks = \"0.0.0.0/0\"\naccount = \"ann@example.org\"\n";
        let mut notes = Observations::default();
        evaluate_exposure(&mut notes, &config::from_text(text, []).unwrap());
        assert!(notes.into_finding("listeners").found.ends_with("for the account ***@example.org"));
    }

    #[test]
    fn every_kind_of_listener_is_probed() {
        let text = "hostname = \"mx1.example.net\"\n[submission]\nlisten = \"127.0.0.1:1\"\n\
                    implicit_tls = \"127.0.0.1:2\"\n[mx]\nlisten = \"127.0.0.1:3\"\n[api]\nlisten = \"127.0.0.1:5\"\n\
                    [ops]\nlisten = \"127.0.0.1:7\"\n[tls.acme]\nhttp_listen = \"127.0.0.1:6\"\n\
                    [[relay]]\nlisten = \"127.0.0.1:4\"\nnetworks = \"10.0.0.0/8\"\naccount = \"a\"\n";
        let listeners = configured_listeners(&config::from_text(text, []).unwrap());
        let ports: Vec<u16> = listeners.iter().map(|(_, at)| at.port()).collect();
        assert_eq!(ports, [1, 2, 3, 4, 5, 6, 7], "{listeners:?}");
    }

    #[tokio::test]
    async fn open_and_closed_listeners_are_reported() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dns = TestDns::new("").await;
        let mut context = test_context(&dns, "").await;
        let closed_address = context.config.api.listen[0];
        assert_eq!(check_listeners(&context).await.status, CheckStatus::Skipped);
        context.config.api.listen = vec![listener.local_addr().unwrap()];
        assert_eq!(check_listeners(&context).await.status, CheckStatus::Ok);
        context.config.api.listen.push(closed_address);
        assert_eq!(check_listeners(&context).await.status, CheckStatus::Failed);
    }
}
