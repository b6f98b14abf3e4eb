//! `clock`: checks this machine's clock.
//!
//! Queries a time server by SNTP (RFC 4330 5; one request, four timestamps), and reads the kernel's synchronisation
//! state by `timedatectl`. Without a network, only the latter is reported. Signatures, certificates, retries and expiry
//! depend on the clock.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use net::clock::Clock;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

use super::context::{CheckContext, ProbeHost};
use super::finding::{DoctorFinding, Observations};
use super::systemd;

const NAME: &str = "clock";
/// Default time server.
const WELL_KNOWN: &str = "pool.ntp.org";
const PORT: u16 = 123;
const DEADLINE: Duration = Duration::from_secs(2);
/// Packets may be lost.
const TRIES: usize = 2;
/// Seconds from 1900, the epoch of NTP, to 1970.
const NTP_EPOCH_OFFSET_S: i64 = 2_208_988_800;
const PACKET_BYTES: usize = 48;
/// A smaller offset is harmless.
const OFFSET_GOOD_MAX: SignedDuration = SignedDuration::from_secs(1);
/// With a larger offset, other hosts reject signatures and one-time codes as expired or not yet valid.
const OFFSET_TOLERABLE_MAX: SignedDuration = SignedDuration::from_secs(30);

const SYNC_ADVICE: &str = "timedatectl set-ntp true\nor install a time synchronisation service: apt install chrony";

/// Checks offset and synchronisation of the clock.
pub(super) async fn check_clock(context: &CheckContext) -> DoctorFinding {
    let (offset, synchronized) = tokio::join!(measure_offset(context), systemd::is_clock_synchronized());
    evaluate(&offset, synchronized)
}

async fn measure_offset(context: &CheckContext) -> Result<SignedDuration, String> {
    let (host, port) = match &context.options.ntp {
        Some(target) => (target.host.clone(), target.port.unwrap_or(PORT)),
        None => (ProbeHost::Name(WELL_KNOWN.parse().map_err(|_| "no time server".to_owned())?), PORT),
    };
    let addresses = context.addresses(&host).await?;
    // Prefers IPv4, which works everywhere.
    let address = addresses.iter().find(|ip| ip.is_ipv4()).or(addresses.first());
    let address = *address.ok_or_else(|| format!("{host} has no address"))?;
    for _ in 0..TRIES {
        if let Ok(answer) = timeout(DEADLINE, query_server(address, port, &context.clock)).await {
            return answer.map_err(|error| format!("{host}: {error}"));
        }
    }
    Err(format!("{host} [{address}] is not responding (UDP port {port})"))
}

async fn query_server(server: IpAddr, port: u16, clock: &Clock) -> Result<SignedDuration, String> {
    let error_text = |error: std::io::Error| error.to_string();
    let unspecified = if server.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind(SocketAddr::new(unspecified, 0)).await.map_err(error_text)?;
    socket.connect(SocketAddr::new(server, port)).await.map_err(error_text)?;
    let (sent, started_at) = (clock.now(), Instant::now());
    socket.send(&ntp_request(sent)).await.map_err(error_text)?;
    let mut packet = [0; PACKET_BYTES * 2];
    loop {
        let length = socket.recv(&mut packet).await.map_err(error_text)?;
        // Ignores packets that do not answer this request.
        if let Some(answer) = packet.get(..length).and_then(|packet| parse_ntp_reply(packet, sent)) {
            return answer.map(|(received, reply_sent)| {
                let reply_received = sent + started_at.elapsed();
                clock_offset(sent, received, reply_sent, reply_received)
            });
        }
    }
}

/// Offset by which the local clock is ahead: the mean of both directions, so that network delay cancels out.
fn clock_offset(
    sent: Timestamp,
    received: Timestamp,
    reply_sent: Timestamp,
    reply_received: Timestamp,
) -> SignedDuration {
    (sent.duration_since(received) + reply_received.duration_since(reply_sent)) / 2
}

/// Request with version 4, mode 3 (client), and the local time, which the reply repeats.
fn ntp_request(sent: Timestamp) -> [u8; PACKET_BYTES] {
    let mut packet = [0; PACKET_BYTES];
    let (head, time) = packet.split_at_mut(PACKET_BYTES - 8);
    if let Some(first) = head.first_mut() {
        *first = 0b00_100_011;
    }
    time.copy_from_slice(&to_ntp_time(sent).to_be_bytes());
    packet
}

/// 32 bits of seconds since 1900, and 32 bits of fraction (RFC 4330 3).
fn to_ntp_time(time: Timestamp) -> u64 {
    let seconds = u64::try_from(time.as_second() + NTP_EPOCH_OFFSET_S).unwrap_or(0) & 0xffff_ffff;
    let fraction = (u64::from(time.subsec_nanosecond().unsigned_abs()) << 32) / 1_000_000_000;
    seconds << 32 | fraction
}

fn from_ntp_time(stamp: u64) -> Option<Timestamp> {
    let seconds = i64::try_from(stamp >> 32).ok()?;
    // RFC 4330 3: if the first bit is not set, the time is in the next era, from 2036.
    let era = if seconds >> 31 == 0 { 1_i64 << 32 } else { 0 };
    let nanoseconds = i32::try_from(((stamp & 0xffff_ffff) * 1_000_000_000) >> 32).ok()?;
    Timestamp::new(seconds + era - NTP_EPOCH_OFFSET_S, nanoseconds).ok()
}

/// Parses the times at which the server received the request and sent the reply; none if it does not match the request.
fn parse_ntp_reply(packet: &[u8], sent: Timestamp) -> Option<Result<(Timestamp, Timestamp), String>> {
    let at = |from: usize| Some(u64::from_be_bytes(packet.get(from..from + 8)?.try_into().ok()?));
    let (first, stratum) = (*packet.first()?, *packet.get(1)?);
    if packet.len() < PACKET_BYTES || first & 0b111 != 4 || at(24)? != to_ntp_time(sent) {
        return None;
    }
    if stratum == 0 || first >> 6 == 3 {
        return Some(Err("its clock is not synchronized".to_owned()));
    }
    Some(Ok((from_ntp_time(at(32)?)?, from_ntp_time(at(40)?)?)))
}

fn evaluate(offset: &Result<SignedDuration, String>, synchronized: Option<bool>) -> DoctorFinding {
    let mut notes = Observations::default();
    match offset {
        Ok(offset) => {
            let direction = if offset.is_negative() { "behind" } else { "ahead" };
            let text = format!("the clock is {:.3} s {direction}", offset.abs().as_secs_f64());
            if offset.abs() < OFFSET_GOOD_MAX {
                notes.good(text);
            } else if offset.abs() < OFFSET_TOLERABLE_MAX {
                notes.warn(text, SYNC_ADVICE);
            } else {
                notes.fail(format!("{text}: receivers may reject signatures as expired or not yet valid"), SYNC_ADVICE);
            }
        }
        Err(reason) if synchronized == Some(true) => notes.good(format!("not compared with a time server: {reason}")),
        Err(reason) => notes.skip(format!("not compared with a time server: {reason}")),
    }
    match synchronized {
        Some(true) => notes.good("NTP synchronized"),
        Some(false) => notes.warn("the clock is not synchronized by NTP", SYNC_ADVICE),
        None => notes.skip("NTP status unknown (timedatectl does not report it)"),
    }
    notes.into_finding(NAME)
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;

    #[test]
    fn ntp_times_survive_a_round_trip() {
        for text in ["2026-11-22T05:00:00.25Z", "2036-02-07T06:28:15.5Z", "2040-01-01T00:00:00Z"] {
            let time: Timestamp = text.parse().unwrap();
            let back = from_ntp_time(to_ntp_time(time)).unwrap();
            assert!(back.duration_since(time).abs() < SignedDuration::from_micros(1), "{text} {back}");
        }
        let t = |text: &str| text.parse::<Timestamp>().unwrap();
        let offset = clock_offset(
            t("2026-01-01T00:00:10Z"),
            t("2026-01-01T00:00:01Z"),
            t("2026-01-01T00:00:01Z"),
            t("2026-01-01T00:00:12Z"),
        );
        assert_eq!(offset, SignedDuration::from_secs(10));
    }

    #[test]
    fn offsets_are_evaluated() {
        let status_of = |s: i64, synchronized| evaluate(&Ok(SignedDuration::from_secs(s)), synchronized).status;
        assert_eq!(status_of(0, Some(true)), CheckStatus::Ok);
        assert_eq!(status_of(0, Some(false)), CheckStatus::Warning);
        assert_eq!(status_of(-5, None), CheckStatus::Warning);
        assert_eq!(status_of(-90, Some(true)), CheckStatus::Failed);
        assert_eq!(evaluate(&Err("x".to_owned()), None).status, CheckStatus::Skipped);
        assert_eq!(evaluate(&Err("x".to_owned()), Some(true)).status, CheckStatus::Ok);
    }

    #[tokio::test]
    async fn a_clock_that_runs_ahead_is_detected() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = server.local_addr().unwrap();
        // The server's clock is right; the local clock is an hour ahead.
        let right = Clock::default();
        let server = tokio::spawn(async move {
            let mut packet = [0; PACKET_BYTES];
            let (_, client) = server.recv_from(&mut packet).await.unwrap();
            let mut answer = [0; PACKET_BYTES];
            (answer[0], answer[1]) = (0b00_100_100, 2);
            answer[24..32].copy_from_slice(&packet[40..48]);
            answer[32..40].copy_from_slice(&to_ntp_time(right.now()).to_be_bytes());
            answer[40..48].copy_from_slice(&to_ntp_time(right.now()).to_be_bytes());
            server.send_to(b"noise", client).await.unwrap();
            server.send_to(&answer, client).await.unwrap();
        });
        let dns = TestDns::new("").await;
        let mut context = test_context(&dns, "").await;
        context.clock = Clock::with_offset(Duration::from_secs(3600));
        context.options.ntp = Some(at.to_string().parse().unwrap());
        let found = check_clock(&context).await;
        server.await.unwrap();
        assert_eq!(found.status, CheckStatus::Failed, "{found:#?}");
        assert!(found.found.contains(" s ahead: receivers may reject signatures"), "{found:#?}");
    }
}
