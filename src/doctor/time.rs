//! `clock`: whether this machine's clock is right.
//!
//! Asked of a time server by SNTP (RFC 4330 5: one question, one answer, four times), and of the kernel, by
//! `timedatectl`, whether something keeps the clock. Without a network the kernel's word alone is told.
//! Signatures, certificates, retries and expiries all go by this clock.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use queue::clock::Clock;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

use super::finding::{DoctorFinding, Observations};
use super::place::{CheckContext, ProbeHost};
use super::systemd;

const NAME: &str = "clock";
/// Asked unless the operator names another.
const WELL_KNOWN: &str = "pool.ntp.org";
const PORT: u16 = 123;
const DEADLINE: Duration = Duration::from_secs(2);
/// A packet may be lost.
const TRIES: usize = 2;
/// Seconds from 1900, where NTP counts from, to 1970.
const NTP_EPOCH_OFFSET_S: i64 = 2_208_988_800;
const PACKET_BYTES: usize = 48;
/// Nobody is hurt by less.
const OFFSET_GOOD_MAX: SignedDuration = SignedDuration::from_secs(1);
/// Beyond it signatures and one-time codes are taken for old, or for not yet made.
const OFFSET_TOLERABLE_MAX: SignedDuration = SignedDuration::from_secs(30);

const SYNC_ADVICE: &str = "timedatectl set-ntp true\nor install a keeper of time: apt install chrony";

/// Compares the clock.
pub(super) async fn check_clock(place: &CheckContext) -> DoctorFinding {
    let (offset, kept) = tokio::join!(measure_offset(place), systemd::is_clock_synchronized());
    judge(&offset, kept)
}

async fn measure_offset(place: &CheckContext) -> Result<SignedDuration, String> {
    let (host, port) = match &place.options.ntp {
        Some(target) => (target.host.clone(), target.port.unwrap_or(PORT)),
        None => (ProbeHost::Name(WELL_KNOWN.parse().map_err(|_| "no time server".to_owned())?), PORT),
    };
    let addresses = place.addresses(&host).await?;
    // The family that certainly works first.
    let address = addresses.iter().find(|ip| ip.is_ipv4()).or(addresses.first());
    let address = *address.ok_or_else(|| format!("{host} has no address"))?;
    for _ in 0..TRIES {
        if let Ok(answer) = timeout(DEADLINE, query_server(address, port, &place.clock)).await {
            return answer.map_err(|error| format!("{host}: {error}"));
        }
    }
    Err(format!("{host} [{address}] did not answer (UDP port {port})"))
}

async fn query_server(server: IpAddr, port: u16, clock: &Clock) -> Result<SignedDuration, String> {
    let told = |error: std::io::Error| error.to_string();
    let any = if server.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await.map_err(told)?;
    socket.connect(SocketAddr::new(server, port)).await.map_err(told)?;
    let (sent, began) = (clock.now(), Instant::now());
    socket.send(&ntp_request(sent)).await.map_err(told)?;
    let mut packet = [0; PACKET_BYTES * 2];
    loop {
        let length = socket.recv(&mut packet).await.map_err(told)?;
        // What is not the answer to this question is not looked at.
        if let Some(answer) = packet.get(..length).and_then(|packet| parse_ntp_reply(packet, sent)) {
            return answer.map(|(received, answered)| {
                let back = sent + began.elapsed();
                clock_offset(sent, received, answered, back)
            });
        }
    }
}

/// By how much we are ahead: the mean of both ways, so that the time on the wire falls out.
fn clock_offset(sent: Timestamp, received: Timestamp, answered: Timestamp, back: Timestamp) -> SignedDuration {
    (sent.duration_since(received) + back.duration_since(answered)) / 2
}

/// Version 4, mode 3 (client), and our time, which comes back in the answer.
fn ntp_request(sent: Timestamp) -> [u8; PACKET_BYTES] {
    let mut packet = [0; PACKET_BYTES];
    let (head, time) = packet.split_at_mut(PACKET_BYTES - 8);
    if let Some(first) = head.first_mut() {
        *first = 0b00_100_011;
    }
    time.copy_from_slice(&to_ntp_time(sent).to_be_bytes());
    packet
}

/// 32 bits of seconds since 1900 and 32 of a fraction (RFC 4330 3).
fn to_ntp_time(time: Timestamp) -> u64 {
    let seconds = u64::try_from(time.as_second() + NTP_EPOCH_OFFSET_S).unwrap_or(0) & 0xffff_ffff;
    let fraction = (u64::from(time.subsec_nanosecond().unsigned_abs()) << 32) / 1_000_000_000;
    seconds << 32 | fraction
}

fn from_ntp_time(stamp: u64) -> Option<Timestamp> {
    let seconds = i64::try_from(stamp >> 32).ok()?;
    // RFC 4330 3: without the first bit it is the next era, from 2036 on.
    let era = if seconds >> 31 == 0 { 1_i64 << 32 } else { 0 };
    let nanoseconds = i32::try_from(((stamp & 0xffff_ffff) * 1_000_000_000) >> 32).ok()?;
    Timestamp::new(seconds + era - NTP_EPOCH_OFFSET_S, nanoseconds).ok()
}

/// When the question came, and when the answer left; none when this is no answer to it.
fn parse_ntp_reply(packet: &[u8], sent: Timestamp) -> Option<Result<(Timestamp, Timestamp), String>> {
    let at = |from: usize| Some(u64::from_be_bytes(packet.get(from..from + 8)?.try_into().ok()?));
    let (first, stratum) = (*packet.first()?, *packet.get(1)?);
    if packet.len() < PACKET_BYTES || first & 0b111 != 4 || at(24)? != to_ntp_time(sent) {
        return None;
    }
    if stratum == 0 || first >> 6 == 3 {
        return Some(Err("it says that it has no time to give".to_owned()));
    }
    Some(Ok((from_ntp_time(at(32)?)?, from_ntp_time(at(40)?)?)))
}

fn judge(offset: &Result<SignedDuration, String>, kept: Option<bool>) -> DoctorFinding {
    let mut notes = Observations::default();
    match offset {
        Ok(offset) => {
            let way = if offset.is_negative() { "behind" } else { "ahead" };
            let by = format!("the clock is {:.3} s {way}", offset.abs().as_secs_f64());
            if offset.abs() < OFFSET_GOOD_MAX {
                notes.good(by);
            } else if offset.abs() < OFFSET_TOLERABLE_MAX {
                notes.warn(by, SYNC_ADVICE);
            } else {
                notes.fail(format!("{by}: signatures are taken for old or for not yet made"), SYNC_ADVICE);
            }
        }
        Err(why) if kept == Some(true) => notes.good(format!("no time server to compare with: {why}")),
        Err(why) => notes.skip(format!("no time server to compare with: {why}")),
    }
    match kept {
        Some(true) => notes.good("the kernel says that it is kept in time"),
        Some(false) => notes.warn("nothing keeps the clock in time (the kernel says: not synchronized)", SYNC_ADVICE),
        None => notes.skip("whether anything keeps it in time is not known: timedatectl does not say"),
    }
    notes.into_finding(NAME)
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;

    #[test]
    fn times_go_over_the_wire_and_back() {
        for text in ["2026-11-22T05:00:00.25Z", "2036-02-07T06:28:15.5Z", "2040-01-01T00:00:00Z"] {
            let time: Timestamp = text.parse().unwrap();
            let back = from_ntp_time(to_ntp_time(time)).unwrap();
            assert!(back.duration_since(time).abs() < SignedDuration::from_micros(1), "{text} {back}");
        }
        let t = |text: &str| text.parse::<Timestamp>().unwrap();
        let ahead = clock_offset(
            t("2026-01-01T00:00:10Z"),
            t("2026-01-01T00:00:01Z"),
            t("2026-01-01T00:00:01Z"),
            t("2026-01-01T00:00:12Z"),
        );
        assert_eq!(ahead, SignedDuration::from_secs(10));
    }

    #[test]
    fn offsets_are_judged() {
        let judged = |s: i64, kept| judge(&Ok(SignedDuration::from_secs(s)), kept).status;
        assert_eq!(judged(0, Some(true)), CheckStatus::Ok);
        assert_eq!(judged(0, Some(false)), CheckStatus::Warning);
        assert_eq!(judged(-5, None), CheckStatus::Warning);
        assert_eq!(judged(-90, Some(true)), CheckStatus::Failed);
        assert_eq!(judge(&Err("x".to_owned()), None).status, CheckStatus::Skipped);
        assert_eq!(judge(&Err("x".to_owned()), Some(true)).status, CheckStatus::Ok);
    }

    #[tokio::test]
    async fn a_clock_that_runs_ahead_is_seen() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = server.local_addr().unwrap();
        // The server's clock is right, ours an hour ahead.
        let right = Clock::default();
        let answering = tokio::spawn(async move {
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
        let ground = TestDns::new("").await;
        let mut place = test_context(&ground, "").await;
        place.clock = Clock::with_offset(Duration::from_secs(3600));
        place.options.ntp = Some(at.to_string().parse().unwrap());
        let found = check_clock(&place).await;
        answering.await.unwrap();
        assert_eq!(found.status, CheckStatus::Failed, "{found:#?}");
        assert!(found.found.contains(" s ahead: signatures"), "{found:#?}");
    }
}
