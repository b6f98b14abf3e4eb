//! Parses the header of the PROXY protocol, versions 1 and 2, without I/O.
//!
//! [`parse`] takes the bytes received so far. While the header is incomplete, it returns a lower bound of the missing
//! bytes, so that the caller never reads bytes behind the header. Invalid input is refused at the first byte that shows
//! it.
//!
//! Only TCP over IPv4 and IPv6 is accepted. The destination of version 1 is validated and dropped. The bytes behind the
//! addresses of version 2 (TLVs, including the CRC-32C) are skipped. Cited sections are those of HAProxy's
//! `doc/proxy-protocol.txt`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// The longest header of version 1, line end included (section 2.1).
pub const V1_BYTES_MAX: usize = 107;
/// The longest accepted header of version 2. The protocol allows 64 KiB; addresses take 36 bytes, and the TLVs that
/// proxies add (names, ids, TLS details) some hundreds.
pub const V2_BYTES_MAX: usize = 2_048;

/// Signature of version 1.
const V1_START: &[u8] = b"PROXY ";
/// The shortest header: `PROXY UNKNOWN` and the line end.
const HEADER_BYTES_MIN: usize = 15;
/// Signature of version 2 (section 2.2).
const V2_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes before the addresses in version 2: signature, version and command, family, length.
const V2_FIXED_BYTES: usize = 16;

/// The source of a connection, as the header declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionSource {
    /// A client at this address; an IPv4 address mapped into IPv6 is the IPv4 address.
    Client(SocketAddr),
    /// The proxy itself: a health check (`LOCAL`), or an unknown source (`UNKNOWN`).
    Proxy,
}

/// The result of parsing a valid start of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderProgress {
    /// At least so many more bytes belong to the header; never 0.
    Incomplete(usize),
    Complete {
        origin: ConnectionSource,
        /// Length of the header. The bytes behind it belong to the connection.
        size_bytes: usize,
    },
}

/// The reason why bytes are not the start of an accepted header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProxyHeaderError {
    /// The signature of neither version.
    #[error("the connection does not begin with a PROXY header")]
    Start,
    /// The line or the block exceeds the limit.
    #[error("the PROXY header is too long")]
    TooLong,
    /// Version 1: the line has a wrong end or wrong fields.
    #[error("the PROXY line is malformed")]
    Line,
    /// Version 2: another version, or a command other than LOCAL and PROXY.
    #[error("the PROXY header has an unsupported version or command")]
    Command,
    /// Version 2: not TCP over IPv4 or IPv6.
    #[error("the PROXY header is not for TCP over IPv4 or IPv6")]
    Family,
    /// Version 2: the length is less than the addresses of the family need.
    #[error("the PROXY header is too short for its addresses")]
    TooShort,
}

/// Parses the bytes received so far, which may include bytes behind the header.
///
/// # Errors
/// A [`ProxyHeaderError`], which further bytes cannot resolve.
pub fn parse(bytes: &[u8]) -> Result<HeaderProgress, ProxyHeaderError> {
    if is_prefix_of(bytes, V2_START) && !bytes.is_empty() {
        parse_v2(bytes)
    } else if is_prefix_of(bytes, V1_START) {
        parse_v1(bytes)
    } else {
        Err(ProxyHeaderError::Start)
    }
}

/// Returns whether one is a prefix of the other.
fn is_prefix_of(bytes: &[u8], start: &[u8]) -> bool {
    bytes.iter().zip(start).all(|(a, b)| a == b)
}

/// Parses version 1, a line such as `PROXY TCP4 192.0.2.1 198.51.100.1 56324 587`.
fn parse_v1(bytes: &[u8]) -> Result<HeaderProgress, ProxyHeaderError> {
    let window = &bytes[..bytes.len().min(V1_BYTES_MAX)];
    let Some(end) = window.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        // At least the line end is missing.
        let missing = HEADER_BYTES_MIN.saturating_sub(bytes.len()).max(2);
        let fits = bytes.len() + missing <= V1_BYTES_MAX;
        return if fits { Ok(HeaderProgress::Incomplete(missing)) } else { Err(ProxyHeaderError::TooLong) };
    };
    match window.get(end..end + 2) {
        Some(b"\r\n") => {
            let line = window.get(V1_START.len()..end).and_then(|line| str::from_utf8(line).ok());
            let origin = line.and_then(parse_v1_source).ok_or(ProxyHeaderError::Line)?;
            Ok(HeaderProgress::Complete { origin, size_bytes: end + 2 })
        }
        None if window[end] == b'\r' && end + 2 <= V1_BYTES_MAX => Ok(HeaderProgress::Incomplete(1)),
        _ => Err(ProxyHeaderError::Line),
    }
}

/// Parses the line behind `PROXY `.
fn parse_v1_source(line: &str) -> Option<ConnectionSource> {
    let (protocol, rest) = line.split_once(' ').unwrap_or((line, ""));
    match protocol {
        "TCP4" => parse_v1_client::<Ipv4Addr>(rest),
        "TCP6" => parse_v1_client::<Ipv6Addr>(rest),
        // The rest of the line is ignored.
        "UNKNOWN" => Some(ConnectionSource::Proxy),
        _ => None,
    }
}

/// Parses source address, destination address, source port, destination port, separated by single spaces.
fn parse_v1_client<A: FromStr + Into<IpAddr>>(fields: &str) -> Option<ConnectionSource> {
    let mut fields = fields.split(' ');
    let (source, destination) = (fields.next()?.parse::<A>().ok()?, fields.next()?.parse::<A>());
    let (source_port, destination_port) = (parse_port(fields.next()?)?, parse_port(fields.next()?));
    let whole = destination.is_ok() && destination_port.is_some() && fields.next().is_none();
    whole.then(|| client_source(source.into(), source_port))
}

fn parse_port(text: &str) -> Option<u16> {
    // `parse` would accept a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses version 2: a fixed part, then a block of the declared length with the addresses and TLVs.
fn parse_v2(bytes: &[u8]) -> Result<HeaderProgress, ProxyHeaderError> {
    let at = |index: usize| bytes.get(index).copied();
    let local = match at(12) {
        None | Some(0x21) => false,
        Some(0x20) => true,
        Some(_) => return Err(ProxyHeaderError::Command),
    };
    // The family of a LOCAL header is ignored (section 2.2).
    let family = match at(13) {
        None => None,
        Some(_) if local => None,
        Some(0x11) => Some(AddressFamily { addresses_bytes: 12, read: parse_v2_client::<4> }),
        Some(0x21) => Some(AddressFamily { addresses_bytes: 36, read: parse_v2_client::<16> }),
        Some(_) => return Err(ProxyHeaderError::Family),
    };
    let Some(length) = bytes.get(14..V2_FIXED_BYTES) else {
        return Ok(HeaderProgress::Incomplete(V2_FIXED_BYTES - bytes.len()));
    };
    let length = usize::from(length[0]) << 8 | usize::from(length[1]);
    let size_bytes = V2_FIXED_BYTES + length;
    if size_bytes > V2_BYTES_MAX {
        return Err(ProxyHeaderError::TooLong);
    }
    if family.as_ref().is_some_and(|family| length < family.addresses_bytes) {
        return Err(ProxyHeaderError::TooShort);
    }
    let Some(block) = bytes.get(V2_FIXED_BYTES..size_bytes) else {
        return Ok(HeaderProgress::Incomplete(size_bytes - bytes.len()));
    };
    let origin = match family {
        None => ConnectionSource::Proxy,
        Some(family) => (family.read)(block).ok_or(ProxyHeaderError::TooShort)?,
    };
    Ok(HeaderProgress::Complete { origin, size_bytes })
}

/// Size and parser of a family's addresses in version 2.
struct AddressFamily {
    addresses_bytes: usize,
    read: fn(&[u8]) -> Option<ConnectionSource>,
}

/// Parses source address, destination address, source port, destination port, in network byte order.
fn parse_v2_client<const OCTETS: usize>(block: &[u8]) -> Option<ConnectionSource>
where
    IpAddr: From<[u8; OCTETS]>,
{
    let source = block.first_chunk::<OCTETS>()?;
    let port = block.get(2 * OCTETS..)?.first_chunk::<2>()?;
    Some(client_source(IpAddr::from(*source), u16::from_be_bytes(*port)))
}

fn client_source(address: IpAddr, port: u16) -> ConnectionSource {
    ConnectionSource::Client(SocketAddr::new(address.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A header of version 2 with this command, family and block.
    fn block(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = u16::try_from(block.len()).unwrap().to_be_bytes();
        [V2_START, &[command, family], &length, block].concat()
    }

    const V4: &[u8] = b"\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x02\x4b";
    const V6: &[u8] = b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\
                        \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\xdc\x04\x02\x4b";
    const MAPPED: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01\
                            \0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x33\x64\x01\xdc\x04\x02\x4b";

    /// Accepted headers with their clients.
    fn good() -> Vec<(Vec<u8>, Option<&'static str>)> {
        let lines = [
            ("TCP4 192.0.2.1 198.51.100.1 56324 587", Some("192.0.2.1:56324")),
            ("TCP4 255.255.255.255 255.255.255.255 65535 0", Some("255.255.255.255:65535")),
            ("TCP6 2001:db8::1 2001:DB8::2 56324 465", Some("[2001:db8::1]:56324")),
            ("TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.1 56324 587", Some("192.0.2.1:56324")),
            (
                "TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
                Some("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
            ),
            ("UNKNOWN", None),
            ("UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535", None),
        ];
        let lines = lines.map(|(line, client)| (format!("PROXY {line}\r\n").into_bytes(), client));
        let tlv = [V4, b"\x03\0\x04\x01\x02\x03\x04", &[0; 1_000]].concat();
        let blocks = [
            (block(0x21, 0x11, V4), Some("192.0.2.1:56324")),
            (block(0x21, 0x11, &tlv), Some("192.0.2.1:56324")),
            (block(0x21, 0x21, V6), Some("[2001:db8::1]:56324")),
            (block(0x21, 0x21, MAPPED), Some("192.0.2.1:56324")),
            (block(0x20, 0x00, b""), None),
            (block(0x20, 0x31, V6), None),
            (block(0x20, 0x11, b"x"), None),
        ];
        lines.into_iter().chain(blocks).collect()
    }

    /// Refused bytes with the error.
    fn bad() -> Vec<(Vec<u8>, ProxyHeaderError)> {
        use ProxyHeaderError::{Command, Family, Line, Start, TooLong, TooShort};
        let tcp4 = |rest: &str| (format!("PROXY TCP4 {rest}\r\n").into_bytes(), Line);
        vec![
            (b"EHLO x\r\n".to_vec(), Start),
            (b"\x16\x03\x01".to_vec(), Start),
            (b"proxy TCP4".to_vec(), Start),
            (b"PROXY\r\n".to_vec(), Start),
            (b"\r\n\r\n\0\r\nQUIT\r".to_vec(), Start),
            (b"PROXY \r\n".to_vec(), Line),
            (b"PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n".to_vec(), Line),
            (b"PROXY UNKNOWN\n".to_vec(), Line),
            (b"PROXY UNKNOWN\rx".to_vec(), Line),
            (b"PROXY UNKNOWNX\r\n".to_vec(), Line),
            (b"PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n".to_vec(), Line),
            (b"PROXY TCP4 192.0.2.\xff 198.51.100.1 1 2\r\n".to_vec(), Line),
            tcp4("192.0.2.1 198.51.100.1 1"),
            tcp4("192.0.2.1 198.51.100.1 1 2 3"),
            tcp4("192.0.2.1 198.51.100.1 1 2 "),
            tcp4("192.0.2.1  198.51.100.1 1 2"),
            tcp4("192.0.2.1 198.51.100 1 2"),
            tcp4("192.0.2.01 198.51.100.1 1 2"),
            tcp4("192.0.2.1 198.51.100.1 65536 2"),
            tcp4("192.0.2.1 198.51.100.1 +1 2"),
            tcp4("192.0.2.1 198.51.100.1 1 -2"),
            tcp4("2001:db8::1 2001:db8::2 1 2"),
            ([b"PROXY UNKNOWN ", &[b'x'; V1_BYTES_MAX][..]].concat(), TooLong),
            (block(0x11, 0x11, V4), Command),
            (block(0x22, 0x11, V4), Command),
            (block(0x21, 0x00, b""), Family),
            (block(0x21, 0x12, V4), Family),
            (block(0x21, 0x22, V6), Family),
            (block(0x21, 0x31, &[0; 216]), Family),
            (block(0x21, 0x11, &V4[1..]), TooShort),
            (block(0x21, 0x21, V4), TooShort),
            (block(0x20, 0x00, &[0; V2_BYTES_MAX - V2_FIXED_BYTES + 1]), TooLong),
        ]
    }

    #[test]
    fn valid_headers_are_parsed() {
        for (header, wanted) in good() {
            let escaped = header.escape_ascii().to_string();
            let wanted =
                wanted.map_or(ConnectionSource::Proxy, |client| ConnectionSource::Client(client.parse().unwrap()));
            let whole = Ok(HeaderProgress::Complete { origin: wanted, size_bytes: header.len() });
            assert_eq!(parse(&header), whole, "{escaped}");
            // Bytes behind the header are ignored. An incomplete header requests only its own bytes.
            assert_eq!(parse(&[&header, &b"\r\nEHLO"[..]].concat()), whole, "{escaped}");
            for cut in 0..header.len() {
                let Ok(HeaderProgress::Incomplete(count)) = parse(&header[..cut]) else { panic!("{cut}: {escaped}") };
                assert!(count > 0 && cut + count <= header.len(), "{cut} + {count}: {escaped}");
            }
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        for (bytes, why) in bad() {
            assert_eq!(parse(&bytes), Err(why), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn line_length_is_bounded() {
        let line = |size: usize| format!("PROXY UNKNOWN {}\r\n", "x".repeat(size - 16)).into_bytes();
        let whole = HeaderProgress::Complete { origin: ConnectionSource::Proxy, size_bytes: V1_BYTES_MAX };
        assert_eq!(parse(&line(V1_BYTES_MAX)), Ok(whole));
        assert!(parse(&line(V1_BYTES_MAX + 1)).is_err());
    }

    /// Arbitrary bytes, and test headers with one byte changed.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let (good, bad) = (good(), bad());
        let seeds: Vec<Vec<u8>> =
            good.into_iter().map(|(bytes, _)| bytes).chain(bad.into_iter().map(|(bytes, _)| bytes)).collect();
        let changed = (prop::sample::select(seeds), any::<prop::sample::Index>(), any::<u8>()).prop_map(
            |(mut bytes, index, byte)| {
                *index.get_mut(&mut bytes) = byte;
                bytes
            },
        );
        prop_oneof![prop::collection::vec(any::<u8>(), 0..64), changed]
    }

    proptest! {
        /// The result does not depend on how the bytes are split, and no byte behind the header is requested.
        #[test]
        fn any_chunks_give_the_same_result(bytes in bytes()) {
            let at_once = parse(&bytes);
            let mut end = 0;
            let step_by_step = loop {
                match parse(&bytes[..end]) {
                    Ok(HeaderProgress::Incomplete(count)) if end + count <= bytes.len() => {
                        prop_assert!(count > 0);
                        end += count;
                    }
                    other => break other,
                }
            };
            match (at_once, step_by_step) {
                (Ok(HeaderProgress::Incomplete(_)), Ok(HeaderProgress::Incomplete(_))) => {}
                (Ok(HeaderProgress::Complete { size_bytes, .. }), _) => {
                    prop_assert_eq!(at_once, step_by_step);
                    prop_assert_eq!(size_bytes, end);
                }
                // Parsing all bytes at once may find a later error.
                (Err(_), step) => prop_assert!(matches!(step, Err(_) | Ok(HeaderProgress::Incomplete(_))), "{:?}", step),
                (incomplete, step) => prop_assert!(false, "{:?} and {:?}", incomplete, step),
            }
            for cut in 0..bytes.len() {
                if parse(&bytes[..cut]).is_err() {
                    prop_assert!(at_once.is_err(), "an error disappears after {}", cut);
                }
            }
        }
    }
}
