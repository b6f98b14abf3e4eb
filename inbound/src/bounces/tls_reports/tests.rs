//! TLS reports: compressed and plain, authenticated and other senders, broken and oversized files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use message::tls_report::Day;
use store::engine::Store;

use super::super::BounceMailbox;
use super::super::dmarc_reports::tests::{create_domain, gzip};
use super::super::tests::{at, node};
use super::*;

fn json(id: &str, domain: &str) -> String {
    let (begin, end) = (at(0), at(24));
    format!(
        r#"{{"organization-name":"Company-X","date-range":{{"start-datetime":"{begin:.0}","end-datetime":"{end:.0}"}},
        "contact-info":"sts-reporting@reporter.example","report-id":"{id}","policies":[{{"policy":{{"policy-type":"sts",
        "policy-string":["version: STSv1","mode: testing"],"policy-domain":"{domain}","mx-host":["*.{domain}"]}},
        "summary":{{"total-successful-session-count":5326,"total-failure-session-count":303}},
        "failure-details":[{{"result-type":"certificate-expired","sending-mta-ip":"2001:db8:abcd:0012::1",
        "receiving-mx-hostname":"mx1.{domain}","failed-session-count":100}}]}}]}}"#
    )
}

fn arrival(file: &[u8], from: &str) -> InboundMessage {
    let message = format!(
        "From: Reports <{from}>\r\nTo: tls-reports@rp.service.example\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=tlsrpt; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee the file.\r\n--b\r\n\
         Content-Type: application/tlsrpt+gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
        STANDARD.encode(file)
    );
    InboundMessage {
        received_at: at(30),
        peer: "192.0.2.9".parse().unwrap(),
        helo: "mx.reporter.example".to_owned(),
        reverse_path: None,
        recipient: "tls-reports@rp.service.example".parse().unwrap(),
        message: message.into(),
        authenticated: vec!["mail.reporter.example".parse().unwrap()],
    }
}

#[tokio::test]
async fn reports_about_verified_domains_are_stored_once() {
    let store = Store::memory();
    create_domain(&store, 1, "acme.example").await;
    let returned = node(store.clone());
    let (reporter, own_domain) = ("tls@reporter.example", "acme.example");
    let bomb = gzip(&vec![b' '; 64 << 20]);
    for (file, from) in [
        (gzip(json("1", own_domain).as_bytes()), reporter),
        (json("2", own_domain).into_bytes(), reporter),
        // The first again; unauthenticated; about another domain; without an id; and files that are no reports.
        (json("1", own_domain).into_bytes(), reporter),
        (json("3", own_domain).into_bytes(), "tls@somebody.example"),
        (json("4", "elsewhere.example").into_bytes(), reporter),
        (json("", own_domain).into_bytes(), reporter),
        (json("5", own_domain).replace("20", "19").into_bytes(), reporter),
        (gzip(json("6", own_domain).as_bytes())[..60].to_vec(), reporter),
        (bomb, reporter),
        (b"{}".to_vec(), reporter),
    ] {
        returned.process(BounceMailbox::TlsReports, &arrival(&file, from), &[]).await.unwrap();
    }
    let day = Day::containing(at(0));
    let stored = store::tls_report_received::list(&store, day, day, None, 100).await.unwrap();
    assert_eq!(stored.iter().map(|(_, report)| report.report_id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    let (domain, report) = &stored[0];
    assert_eq!((domain.as_str(), report.reporter.as_str()), (own_domain, "reporter.example"));
    let policy = &report.policies[0];
    assert_eq!((policy.kind.as_str(), policy.succeeded, policy.failed), ("sts", 5326, 303));
    assert_eq!((policy.details[0].result.as_str(), policy.details[0].sessions), ("certificate-expired", 100));
    let of_one = store::tls_report_received::list(&store, day.days_before(5), day, Some(domain), 1).await.unwrap();
    assert_eq!(of_one.len(), 1);
    let mut batch = Batch::progress();
    let over = Day(day.0 + 1).begins_at();
    assert_eq!(store::tls_report_received::purge_before(&store, &mut batch, over, 10).await.unwrap(), 2);
}

/// Fields that are not stored can have any form, as `mx-host` in the example of RFC 8460 B.
#[tokio::test]
async fn reports_of_other_forms_are_stored() {
    let store = Store::memory();
    create_domain(&store, 1, "acme.example").await;
    let returned = node(store.clone());
    for (number, part, other) in [
        (1, r#""mx-host":["*.acme.example"]"#, r#""mx-host":"*.acme.example""#),
        (2, r#""policy-string":["version: STSv1","mode: testing"]"#, r#""policy-string":"version: STSv1""#),
        (3, r#""sending-mta-ip":"2001:db8:abcd:0012::1""#, r#""sending-mta-ip":"""#),
        (4, r#""sending-mta-ip":"2001:db8:abcd:0012::1""#, r#""sending-mta-ip":"x""#),
        (5, r#""contact-info":"sts-reporting@reporter.example""#, r#""contact-info":null"#),
        (6, r#""total-failure-session-count":303"#, r#""total-failure-session-count":5000000000"#),
    ] {
        let file = json(&number.to_string(), "acme.example");
        assert!(file.contains(part), "{part}");
        let file = file.replace(part, other).into_bytes();
        returned.process(BounceMailbox::TlsReports, &arrival(&file, "tls@reporter.example"), &[]).await.unwrap();
    }
    let file = json("7", "acme.example");
    let (without_details, _) = file.split_once(r#""failure-details":"#).unwrap();
    let file = format!(r#"{without_details}"failure-details":null}}]}}"#).into_bytes();
    returned.process(BounceMailbox::TlsReports, &arrival(&file, "tls@reporter.example"), &[]).await.unwrap();
    let day = Day::containing(at(0));
    let stored = store::tls_report_received::list(&store, day, day, None, 100).await.unwrap();
    let found = stored.iter().map(|(_, report)| {
        let policy = &report.policies[0];
        (report.report_id.as_str(), policy.failed, policy.details.len())
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("1", 303, 1),
            ("2", 303, 1),
            ("3", 303, 1),
            ("4", 303, 1),
            ("5", 303, 1),
            ("6", 5_000_000_000, 1),
            ("7", 303, 0)
        ]
    );
}
