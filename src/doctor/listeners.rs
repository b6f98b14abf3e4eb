//! `listeners`: what the configuration opens is open, and nothing is open to whom it should not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::addresses::is_private;
use super::dial::{self, GreetingResult};
use super::finding::{DoctorFinding, Observations};
use super::limits;
use super::place::CheckContext;
use crate::config::Config;

/// Far apart: a network that holds two of one family holds nearly everybody.
const UNRELATED_ADDRESSES: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)), IpAddr::V4(Ipv4Addr::new(200, 7, 84, 1))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2c0f, 0xfb50, 0, 0, 0, 0, 0, 1)),
    ],
];

/// Each listener with its name in the configuration.
fn configured_listeners(config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let relays = config.relay.iter().flat_map(|relay| &relay.listen).map(|at| ("[[relay]]", *at));
    let submission = config.submission.listen.iter().map(|at| ("[submission] listen", *at));
    let tls = config.submission.implicit_tls.iter().map(|at| ("[submission] implicit_tls", *at));
    let api = config.api.listen.iter().map(|at| ("[api] listen", *at));
    let ops = config.ops.listen.iter().map(|at| ("[ops] listen", *at));
    submission.chain(tls).chain(relays).chain(api).chain(ops).filter(|(_, at)| at.port() != 0).collect()
}

/// "All addresses" is reached at loopback.
fn reachable_address(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

/// Whether the doors are open, and to whom.
pub(super) async fn check_listeners(place: &CheckContext) -> DoctorFinding {
    let mut notes = Observations::default();
    judge_exposure(&mut notes, &place.config);
    let mut knocks = Vec::new();
    for (key, listen) in configured_listeners(&place.config) {
        // Loopback and own addresses answer at once, or not at all.
        knocks.push((key, listen, dial::probe_port(reachable_address(listen)).await));
    }
    let running = limits::running_server_pid(&place.config.data_dir).await.is_some();
    judge(&mut notes, &knocks, running);
    notes.into_finding("listeners")
}

fn judge(notes: &mut Observations, knocks: &[(&'static str, SocketAddr, Result<(), GreetingResult>)], running: bool) {
    if !running && knocks.iter().all(|(_, _, knock)| knock.is_err()) {
        return notes.skip("the server is not running (or its directory is not ours to enter): nothing listens");
    }
    let open: Vec<String> =
        knocks.iter().filter(|(_, _, knock)| knock.is_ok()).map(|(_, at, _)| at.to_string()).collect();
    if !open.is_empty() {
        notes.good(format!("open: {}", open.join(", ")));
    }
    for (key, at, knock) in knocks {
        if let Err(heard) = knock {
            notes.fail(
                format!("{at} ({key}): {heard}"),
                format!("Does the server run with this configuration? Is the port another program's? ss -ltnp 'sport = :{}'", at.port()),
            );
        }
    }
}

/// Doors that stand open to everybody and should not.
fn judge_exposure(notes: &mut Observations, config: &Config) {
    let outside = |at: &&SocketAddr| !is_private(at.ip()) || at.ip().is_unspecified();
    for at in config.ops.listen.iter().filter(outside) {
        notes.warn(
            format!("[ops] listens on {at}: metrics are not for the public"),
            format!("[ops]\nlisten = \"127.0.0.1:{}\"\nor keep the port closed in the firewall.", at.port()),
        );
    }
    for relay in &config.relay {
        let everybody = UNRELATED_ADDRESSES
            .iter()
            .any(|strangers| strangers.iter().all(|one| relay.networks.iter().any(|network| network.contains(*one))));
        let Some(at) = relay.listen.iter().find(outside).filter(|_| everybody) else { continue };
        notes.fail(
            format!("the relay on {at} takes mail from everybody for the account {}: an open relay", relay.account),
            "List in `networks` of [[relay]] the hosts that may hand in mail, and nobody else; it is listed as a spam source within hours otherwise.",
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
    fn doors_that_are_open_to_all_are_told() {
        let judged = |more: &str| {
            let text = format!("hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n{more}");
            let mut notes = Observations::default();
            judge_exposure(&mut notes, &config::from_text(&text, []).unwrap());
            notes.into_finding("listeners").status
        };
        let relay = |at: &str, networks: &str| {
            judged(&format!("[[relay]]\nlisten = \"{at}:2525\"\nnetworks = {networks}\naccount = \"a\"\n"))
        };
        assert_eq!(judged("[ops]\nlisten = \"0.0.0.0:9025\"\n"), CheckStatus::Warning);
        assert_eq!(judged("[ops]\nlisten = \"10.0.0.1:9025\"\n"), CheckStatus::Skipped);
        assert_eq!(relay("0.0.0.0", "\"0.0.0.0/0\""), CheckStatus::Failed);
        assert_eq!(relay("0.0.0.0", "[\"0.0.0.0/1\", \"128.0.0.0/1\"]"), CheckStatus::Failed);
        assert_eq!(relay("127.0.0.1", "\"0.0.0.0/0\""), CheckStatus::Skipped);
        assert_eq!(relay("0.0.0.0", "[\"10.0.0.0/8\", \"192.0.2.0/24\"]"), CheckStatus::Skipped);
    }

    #[tokio::test]
    async fn what_is_open_is_told() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ground = TestDns::new("").await;
        let mut place = test_context(&ground, "").await;
        let closed = place.config.api.listen[0];
        assert_eq!(check_listeners(&place).await.status, CheckStatus::Skipped);
        place.config.api.listen = vec![listener.local_addr().unwrap()];
        assert_eq!(check_listeners(&place).await.status, CheckStatus::Ok);
        place.config.api.listen.push(closed);
        assert_eq!(check_listeners(&place).await.status, CheckStatus::Failed);
    }
}
