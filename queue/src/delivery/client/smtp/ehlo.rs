//! Capabilities of a host from its EHLO reply (RFC 5321 4.1.1.1), one keyword in each line.

use message::reply::SmtpReply;

/// The extensions that the client uses. After HELO there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EhloCapabilities {
    /// PIPELINING (RFC 2920).
    pub pipelining: bool,
    /// 8BITMIME (RFC 6152).
    pub eight_bit_mime: bool,
    /// SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// SIZE (RFC 1870).
    pub size: bool,
    /// Largest message that the host accepts, if it declares one.
    pub size_bytes_max: Option<u64>,
    /// CHUNKING with BDAT (RFC 3030).
    pub chunking: bool,
    /// DSN (RFC 3461).
    pub dsn: bool,
    /// DELIVERBY (RFC 2852): the minimum by-time in seconds for by-mode `R`.
    pub deliver_by: Option<u64>,
    /// MT-PRIORITY (RFC 6710).
    pub mt_priority: bool,
    /// STARTTLS (RFC 3207).
    pub starttls: bool,
    /// REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// AUTH with the mechanism PLAIN (RFC 4954, RFC 4616).
    pub auth_plain: bool,
    /// Transactions allowed in one session (RFC 9422, MAILMAX).
    pub transactions_max: Option<u32>,
}

impl EhloCapabilities {
    /// Parses a positive EHLO reply. The first line is the greeting; each further line is a keyword with parameters.
    /// Unknown keywords and malformed parameters are ignored.
    pub fn parse(reply: &SmtpReply) -> Self {
        let mut found = Self::default();
        for line in reply.lines.iter().skip(1) {
            let mut words = line.split_ascii_whitespace();
            let Some(keyword) = words.next() else { continue };
            found.apply_keyword(&keyword.to_ascii_uppercase(), words);
        }
        found
    }

    fn apply_keyword<'a>(&mut self, keyword: &str, mut words: impl Iterator<Item = &'a str>) {
        match keyword {
            "PIPELINING" => self.pipelining = true,
            "8BITMIME" => self.eight_bit_mime = true,
            "SMTPUTF8" => self.smtputf8 = true,
            "SIZE" => {
                self.size = true;
                // Zero means that there is no fixed maximum (RFC 1870 4).
                self.size_bytes_max = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
            }
            "CHUNKING" => self.chunking = true,
            "DSN" => self.dsn = true,
            "DELIVERBY" => {
                let least_s = words.next().and_then(|n| n.parse().ok());
                self.deliver_by = Some(least_s.unwrap_or_default());
            }
            "MT-PRIORITY" => self.mt_priority = true,
            "STARTTLS" => self.starttls = true,
            "REQUIRETLS" => self.require_tls = true,
            "AUTH" => self.auth_plain |= words.any(|word| word.eq_ignore_ascii_case("PLAIN")),
            "LIMITS" => {
                self.transactions_max = words
                    .filter_map(|word| word.split_once('='))
                    .find(|(name, _)| name.eq_ignore_ascii_case("MAILMAX"))
                    .and_then(|(_, value)| value.parse().ok())
                    .filter(|&n| n > 0);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&'static str]) -> EhloCapabilities {
        let lines = lines.iter().map(|&line| line.into()).collect();
        EhloCapabilities::parse(&SmtpReply { code: 250, enhanced: None, lines })
    }

    #[test]
    fn keywords_and_their_parameters() {
        let all = read(&[
            "mx.example greets you",
            "pipelining",
            "8BITMIME",
            "SMTPUTF8",
            "SIZE 1000",
            "CHUNKING",
            "DSN",
            "DELIVERBY 240",
            "MT-PRIORITY MIXER",
            "STARTTLS",
            "REQUIRETLS",
            "AUTH LOGIN PLAIN",
            "LIMITS RCPTMAX=9 MAILMAX=7",
            "XCLIENT NAME",
            "",
        ]);
        assert!(all.pipelining && all.eight_bit_mime && all.smtputf8 && all.chunking && all.dsn);
        assert!(all.starttls && all.require_tls && all.auth_plain && all.size);
        assert_eq!((all.size_bytes_max, all.transactions_max), (Some(1000), Some(7)));
        assert_eq!((all.deliver_by, all.mt_priority), (Some(240), true));
        assert_eq!(read(&["x", "DELIVERBY"]).deliver_by, Some(0));
    }

    #[test]
    fn the_greeting_line_and_unknown_keywords_are_ignored() {
        assert_eq!(read(&["PIPELINING"]), EhloCapabilities::default());
        let odd = read(&["x", "SIZE", "LIMITS MAILMAX=0", "AUTH=PLAIN"]);
        assert_eq!(odd, EhloCapabilities { size: true, ..EhloCapabilities::default() });
        let vast = read(&["x", "SIZE 99999999999999999999999", "LIMITS MAILMAX"]);
        assert_eq!((vast.size, vast.size_bytes_max, vast.transactions_max), (true, None, None));
        assert_eq!(read(&["x", "SIZE 0"]).size_bytes_max, None);
    }
}
