//! Zone file output of DNS records (RFC 1035 5).

use std::fmt::Write as _;

use super::{DomainRecord, RecordFinding, RecordType};

/// Maximum length of one string in a TXT record (RFC 1035 3.3).
const STRING_BYTES_MAX: usize = 255;

/// Formats the records as lines of a zone file. A merged value replaces the record's own value.
pub fn zone_file<'a>(
    domain: &str,
    records: impl Iterator<Item = (&'a DomainRecord, Option<&'a RecordFinding>)>,
) -> String {
    let mut zone = format!("; DNS records of {domain}\n");
    for (record, finding) in records {
        let merged = finding.and_then(|finding| finding.merged.as_deref());
        let value = merged.unwrap_or(&record.value);
        let data = match record.record_type {
            RecordType::Txt => quoted_strings(value),
            RecordType::Cname => format!("{value}."),
            RecordType::Mx => format!("{} {value}.", record.priority.unwrap_or_default()),
        };
        if merged.is_some() {
            zone.push_str("; replaces the existing SPF record:\n");
        }
        let _ = writeln!(zone, "{}. {} IN {} {data}", record.name, record.ttl_s, record.record_type);
    }
    zone
}

/// Quotes a value in strings of at most 255 bytes. Values merged from existing records may contain any byte.
fn quoted_strings(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 8);
    for (index, string) in value.as_bytes().chunks(STRING_BYTES_MAX).enumerate() {
        out.push_str(if index == 0 { "\"" } else { " \"" });
        for byte in string {
            match byte {
                b'"' | b'\\' => {
                    out.push('\\');
                    out.push(char::from(*byte));
                }
                b' '..=b'~' => out.push(char::from(*byte)),
                _ => {
                    let _ = write!(out, "\\{byte:03}");
                }
            }
        }
        out.push('"');
    }
    if out.is_empty() { "\"\"".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::super::RecordPurpose;
    use super::*;

    fn record(record_type: RecordType, value: &str, priority: Option<u16>) -> DomainRecord {
        let name = "a.example.com".to_owned();
        DomainRecord {
            purpose: RecordPurpose::Dkim,
            record_type,
            name,
            value: value.to_owned(),
            ttl_s: 3_600,
            priority,
            required: true,
        }
    }

    #[test]
    fn the_zone_file_is_valid() {
        let long = "k".repeat(300);
        let records = [
            record(RecordType::Txt, "v=spf1 include:spf.example.net ~all", None),
            record(RecordType::Txt, &long, None),
            record(RecordType::Txt, "a \"b\" \\ ü", None),
            record(RecordType::Cname, "rp.example.net", None),
            record(RecordType::Mx, "mx.example.net", Some(10)),
        ];
        let expected = format!(
            "; DNS records of example.com\n\
             a.example.com. 3600 IN TXT \"v=spf1 include:spf.example.net ~all\"\n\
             a.example.com. 3600 IN TXT \"{}\" \"{}\"\n\
             a.example.com. 3600 IN TXT \"a \\\"b\\\" \\\\ \\195\\188\"\n\
             a.example.com. 3600 IN CNAME rp.example.net.\n\
             a.example.com. 3600 IN MX 10 mx.example.net.\n",
            "k".repeat(255),
            "k".repeat(45)
        );
        assert_eq!(zone_file("example.com", records.iter().map(|record| (record, None))), expected);
    }
}
