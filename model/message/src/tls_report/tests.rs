//! Tests of the counts, of the record, and of the report against the example of RFC 8460 (appendix B).

use serde_json::{Value, json};

use super::write::OutgoingTlsReport;
use super::*;

fn day() -> Day {
    Day::parse("2016-04-01").unwrap()
}

fn sts() -> AppliedTlsPolicy {
    let lines = ["version: STSv1", "mode: testing", "mx: *.mail.company-y.example", "max_age: 86400"];
    let lines = lines.map(str::to_owned).to_vec();
    AppliedTlsPolicy { kind: TlsPolicyType::Sts, lines, mx: vec!["*.mail.company-y.example".to_owned()] }
}

fn failure(result: TlsResultType, host: u8) -> TlsFailure {
    let name = format!("mx{host}.mail.company-y.example").parse().unwrap();
    let at = (name, IpAddr::from([203, 0, 113, host]));
    TlsFailure::new(&TlsFault::new(result, "x"), Some(IpAddr::from([198, 51, 100, 62])), Some(at))
}

#[test]
fn a_report_has_the_format_of_the_rfc_example() {
    let mut counts = DomainTlsCounts::default();
    for _ in 0..5 {
        counts.record_session(&sts(), None);
    }
    for _ in 0..3 {
        counts.record_session(&sts(), Some(failure(TlsResultType::CertificateExpired, 1)));
    }
    counts.record_session(&sts(), Some(failure(TlsResultType::StarttlsNotSupported, 2)));
    let (domain, submitter) = ("company-y.example".parse().unwrap(), "company-x.example".parse().unwrap());
    let contact = "sts-reporting@company-x.example".parse().unwrap();
    let report =
        OutgoingTlsReport { domain: &domain, day: day(), counts: &counts, contact: &contact, submitter: &submitter };
    let written: Value = serde_json::from_slice(&report.to_json()).unwrap();
    assert_eq!(
        written,
        json!({
            "organization-name": "company-x.example",
            "date-range": {"start-datetime": "2016-04-01T00:00:00Z", "end-datetime": "2016-04-01T23:59:59Z"},
            "contact-info": "sts-reporting@company-x.example",
            "report-id": "2016-04-01.company-y.example@company-x.example",
            "policies": [{
                "policy": {
                    "policy-type": "sts",
                    "policy-string": ["version: STSv1", "mode: testing", "mx: *.mail.company-y.example", "max_age: 86400"],
                    "policy-domain": "company-y.example",
                    "mx-host": ["*.mail.company-y.example"]
                },
                "summary": {"total-successful-session-count": 5, "total-failure-session-count": 4},
                "failure-details": [{
                    "result-type": "certificate-expired",
                    "sending-mta-ip": "198.51.100.62",
                    "receiving-mx-hostname": "mx1.mail.company-y.example",
                    "receiving-ip": "203.0.113.1",
                    "failed-session-count": 3,
                    "failure-reason-code": "x"
                }, {
                    "result-type": "starttls-not-supported",
                    "sending-mta-ip": "198.51.100.62",
                    "receiving-mx-hostname": "mx2.mail.company-y.example",
                    "receiving-ip": "203.0.113.2",
                    "failed-session-count": 1,
                    "failure-reason-code": "x"
                }]
            }]
        })
    );
    assert_eq!(report.file_name(), "company-x.example!company-y.example!1459468800!1459555199.json.gz");
    let from = "no-reply@company-x.example".parse().unwrap();
    let to = "tls@company-y.example".parse().unwrap();
    let message = String::from_utf8(report.to_message(&from, &to, &[7; 200])).unwrap();
    assert!(message.lines().all(|line| line.len() <= 200) && !message.replace("\r\n", "").contains(['\r', '\n']));
    for field in ["TLS-Report-Domain: company-y.example", "TLS-Required: No", "report-type=\"tlsrpt\""] {
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn details_are_bounded_and_sums_are_complete() {
    let mut counts = DomainTlsCounts::default();
    for host in 0..=255 {
        counts.record_session(&sts(), Some(failure(TlsResultType::ValidationFailure, host)));
    }
    for number in 0..30 {
        counts.record_session(
            &AppliedTlsPolicy { mx: vec![number.to_string()], ..AppliedTlsPolicy::missing_sts_policy() },
            None,
        );
    }
    let mut twice = counts.clone();
    twice.add(&counts);
    assert_eq!((counts.policies.len(), counts.dropped, twice.dropped), (POLICIES_MAX, 11, 22));
    assert_eq!((counts.policies[0].failed, counts.policies[0].details.len()), (256, DETAILS_MAX));
    assert_eq!((twice.policies[0].failed, twice.policies[0].details[0].sessions), (512, 2));
    assert_eq!(Day::parse("2016-04-01").unwrap().to_string(), "2016-04-01");
    assert_eq!((Day::parse("2016-04-31"), Day::parse("x")), (None, None));
}

#[test]
fn a_domain_has_one_reporting_record() {
    let read = |texts: &[&str]| report_destinations(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
    let mail = |text: &str| ReportDestination::Mail(text.parse().unwrap());
    let web = |text: &str| ReportDestination::Web(text.to_owned());
    assert_eq!(read(&["v=TLSRPTv1; rua=mailto:reports@example.com"]), [mail("reports@example.com")]);
    assert_eq!(
        read(&["v=spf1 -all", "v=TLSRPTv1;rua=https://r.example.com/v1/tlsrpt , mailto:a%2Cb@example.com?x=y;"]),
        [web("https://r.example.com/v1/tlsrpt")],
        "an address that cannot be read is passed over"
    );
    assert_eq!(read(&["v=TLSRPTv1; rua=MAILTO:a%2Db@example.com"]), [mail("a-b@example.com")]);
    for texts in [
        &[][..],
        &["v=TLSRPTv1; rua=mailto:a@example.com", "v=TLSRPTv1; rua=mailto:b@example.com"],
        &["v=TLSRPTv1"],
        &["v=TLSRPTv1; rua="],
        &["v=TLSRPTv2; rua=mailto:a@example.com"],
        &["rua=mailto:a@example.com; v=TLSRPTv1"],
        &["v=TLSRPTv1; rua=http://example.com/, ftp://x, mailto:nobody, mailto:a%zz@example.com"],
    ] {
        assert_eq!(read(texts), [], "{texts:?}");
    }
}
