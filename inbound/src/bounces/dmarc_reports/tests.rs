//! DMARC reports: all encodings, authenticated and other senders, broken and oversized files.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::domain::{DeliverySettings, SealedDkimKeys, SealedSecret};
use model::id::{AccountId, DomainId};
use model::metric::Hour;
use store::engine::Store;

use super::super::BounceMailbox;
use super::super::tests::{at, node};
use super::*;

/// Creates a node with a verified domain.
async fn ground() -> (BounceProcessor, (AccountId, DomainId)) {
    let store = Store::memory();
    let domain_key = create_domain(&store, 1, "acme.example").await;
    (node(store), domain_key)
}

/// Creates a verified domain of an account.
pub(in crate::bounces) async fn create_domain(store: &Store, number: u128, name: &str) -> (AccountId, DomainId) {
    let (account, id) = (AccountId::new(at(0), number), DomainId::new(at(0), number + 1));
    let sealed = || SealedSecret(String::new());
    let domain = SendingDomain {
        id,
        account,
        name: name.parse().unwrap(),
        state: DomainState::Verified,
        dkim: SealedDkimKeys {
            selector: "s".into(),
            rsa_record: String::new(),
            rsa: sealed(),
            ed25519_record: String::new(),
            ed25519: sealed(),
            ed25519_published: false,
            rsa_bits: 2_048,
        },
        next_dkim: None,
        former_dkim: None,
        delivery: DeliverySettings::default(),
        inbound_enabled: false,
        inbound_addresses: Vec::new(),
        created_at: at(0),
        verified_at: Some(at(0)),
        updated_at: at(0),
    };
    let mut batch = Batch::progress();
    let count = store::domain::count(store, account).await.unwrap();
    store::domain::create(&mut batch, &domain, &count);
    store.commit(batch).await.unwrap();
    (account, id)
}

fn record(ip: &str, count: u32, (dkim, spf, disposition): (&str, &str, &str), from: &str) -> String {
    format!(
        "<record><row><source_ip>{ip}</source_ip><count>{count}</count><policy_evaluated><disposition>{disposition}</disposition>\
         <dkim>{dkim}</dkim><spf>{spf}</spf></policy_evaluated></row><identifiers><header_from>{from}</header_from></identifiers>\
         <auth_results><spf><domain>rp.acme.example</domain><result>pass</result></spf></auth_results></record>"
    )
}

fn xml(domain: &str, id: &str, records: &str) -> String {
    let (begin, end) = (at(0).as_second(), at(24).as_second() - 1);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<feedback><version>1.0</version><report_metadata><org_name>Reporter Inc.</org_name>\
         <email>dmarc@reporter.example</email><report_id>{id}</report_id><date_range><begin>{begin}</begin><end>{end}</end></date_range>\
         </report_metadata><policy_published><domain>{domain}</domain><adkim>r</adkim><aspf>s</aspf><p>quarantine</p><sp>reject</sp><pct>100</pct>\
         </policy_published>{records}</feedback>\n"
    )
}

fn usual(id: &str) -> String {
    let pass = ("pass", "pass", "none");
    let records = [
        record("192.0.2.1", 10, pass, "acme.example"),
        record("192.0.2.1", 5, ("pass", "fail", "none"), "Acme.Example"),
        record("::ffff:192.0.2.1", 1, ("fail", "fail", "quarantine"), "mail.acme.example"),
        record("2001:db8::1", 2, ("fail", "fail", "reject"), "acme.example"),
        record("192.0.2.3", 99, pass, "notacme.example"),
        record("not an address", 7, pass, "acme.example"),
    ];
    xml("acme.example", id, &records.concat())
}

pub(in crate::bounces) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        out.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn arrival(file: &[u8], kind: &str, from: &str) -> InboundMessage {
    let message = format!(
        "From: Reports <{from}>\r\nTo: dmarc@rp.service.example\r\nSubject: Report domain: acme.example\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee the file.\r\n--b\r\n\
         Content-Type: {kind}; name=\"reporter.example!acme.example!1!2.bin\"\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
        STANDARD.encode(file)
    );
    InboundMessage {
        received_at: at(30),
        peer: "192.0.2.9".parse().unwrap(),
        helo: "mx.reporter.example".to_owned(),
        reverse_path: None,
        recipient: "dmarc@rp.service.example".parse().unwrap(),
        message: message.into(),
        authenticated: vec!["mail.reporter.example".parse().unwrap()],
    }
}

const FROM: &str = "dmarc@reporter.example";

// No name server responds to the SPF lookup, and nothing waits for it.
#[tokio::test(start_paused = true)]
async fn reports_are_counted_once_however_they_are_packed() {
    let (processor, domain_key) = ground().await;
    let packed = [
        (gzip(usual("1").as_bytes()), "application/gzip"),
        (archive(&[("report.xml", usual("2").as_bytes())]), "application/zip"),
        (usual("3").into_bytes(), "text/xml"),
        (gzip(usual("4").as_bytes()), "application/octet-stream"),
        // The first report again.
        (usual("1").into_bytes(), "application/xml"),
    ];
    for (file, kind) in &packed {
        processor.process(BounceMailbox::DmarcReports, &arrival(file, kind, FROM), &[]).await.unwrap();
    }
    let hours = Hour::containing(at(0)).day()..Hour(Hour::containing(at(0)).day().0 + 48);
    let store = &processor.services.store;
    let reports = store::dmarc::list_reports(store, domain_key, hours.clone()).await.unwrap();
    assert_eq!(reports.iter().map(|r| r.report_id.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4"]);
    assert_eq!((reports[0].reporter.as_str(), reports[0].org_name.as_str()), ("reporter.example", "Reporter Inc."));
    let policy = reports[0].policy;
    assert_eq!((policy.p, policy.sp), (DmarcPolicy::Quarantine, Some(DmarcPolicy::Reject)));
    assert!(policy.strict_spf && !policy.strict_dkim);
    let (sources, days) = store::dmarc::source_totals(store, domain_key, hours).await.unwrap();
    let of_ip = |ip: &str| sources.iter().find(|source| source.ip == Some(ip.parse().unwrap())).unwrap().tally;
    let ipv4_source = of_ip("192.0.2.1");
    assert_eq!(
        (ipv4_source.messages, ipv4_source.passed, ipv4_source.dkim_aligned, ipv4_source.spf_aligned),
        (64, 60, 60, 40)
    );
    assert_eq!((ipv4_source.quarantined, of_ip("2001:db8::1").rejected), (4, 8));
    assert_eq!((sources.len(), days.len(), days.values().next().unwrap().failed()), (2, 1, 12));
}

// No name server responds to the SPF lookup, and nothing waits for it.
#[tokio::test(start_paused = true)]
async fn unauthenticated_and_foreign_reports_are_not_counted() {
    let (processor, domain_key) = ground().await;
    let valid = arrival(&gzip(usual("1").as_bytes()), "application/gzip", FROM);
    let other = xml("other.example", "2", "");
    let unnumbered = usual("");
    let bomb = gzip(&vec![b' '; 40 << 20]);
    let oversized =
        archive(&[("a.xml", &vec![b'<'; 20 << 20]), ("b", b"x"), ("c", b"x"), ("d.xml", usual("9").as_bytes())]);
    let messages = [
        InboundMessage { authenticated: Vec::new(), ..valid.clone() },
        InboundMessage { authenticated: vec!["elsewhere.example".parse().unwrap()], ..valid.clone() },
        arrival(&gzip(usual("1").as_bytes()), "application/gzip", "dmarc@forged.example"),
        // Report periods in the future and in the distant past.
        InboundMessage { received_at: at(-48), ..valid.clone() },
        InboundMessage { received_at: at(20_000), ..valid.clone() },
        arrival(other.as_bytes(), "text/xml", FROM),
        arrival(unnumbered.as_bytes(), "text/xml", FROM),
        arrival(&bomb, "application/gzip", FROM),
        arrival(&oversized, "application/zip", FROM),
        arrival(&gzip(usual("1").as_bytes())[..200], "application/gzip", FROM),
        arrival(b"PK\x03\x04nonsense", "application/zip", FROM),
        arrival(b"<?xml version=\"1.0\"?><feedback><record><row>", "text/xml", FROM),
        arrival("<feedback>".repeat(50_000).as_bytes(), "text/xml", FROM),
        arrival(b"<!DOCTYPE x [<!ENTITY a \"b\">]><feedback>&a;</feedback>", "text/xml", FROM),
    ];
    for arrival in &messages {
        processor.process(BounceMailbox::DmarcReports, arrival, &[]).await.unwrap();
    }
    let all = Hour(i64::MIN / 2)..Hour(i64::MAX / 2);
    assert!(store::dmarc::list_reports(&processor.services.store, domain_key, all.clone()).await.unwrap().is_empty());
    processor.process(BounceMailbox::DmarcReports, &valid, &[]).await.unwrap();
    assert_eq!(store::dmarc::list_reports(&processor.services.store, domain_key, all).await.unwrap().len(), 1);
}

// No name server responds to the SPF lookup, and nothing waits for it.
#[tokio::test(start_paused = true)]
async fn concurrent_reports_are_all_counted() {
    let (processor, domain_key) = ground().await;
    let messages: Vec<InboundMessage> =
        (0..20).map(|n| arrival(usual(&format!("{}", n % 10)).as_bytes(), "text/xml", FROM)).collect();
    let all = messages.iter().map(|arrival| processor.process(BounceMailbox::DmarcReports, arrival, &[]));
    for outcome in futures_util::future::join_all(all).await {
        outcome.unwrap();
    }
    let all = Hour(i64::MIN / 2)..Hour(i64::MAX / 2);
    let (sources, _) = store::dmarc::source_totals(&processor.services.store, domain_key, all).await.unwrap();
    assert_eq!(sources.iter().map(|source| source.tally.messages).sum::<u64>(), 10 * 18);
}

#[tokio::test(start_paused = true)]
async fn the_account_of_a_subdomain_sees_its_own_rows() {
    let (processor, organizational) = ground().await;
    let store = &processor.services.store;
    let subdomain = create_domain(store, 7, "mail.acme.example").await;
    let other = create_domain(store, 9, "shop.acme.example").await;
    let pass = ("pass", "pass", "none");
    let records = [
        record("192.0.2.1", 1, pass, "acme.example"),
        record("192.0.2.1", 10, pass, "Mail.acme.example"),
        record("192.0.2.2", 100, pass, "news.mail.acme.example"),
        record("192.0.2.2", 1_000, pass, "notmail.acme.example"),
        record("192.0.2.2", 10_000, pass, ""),
    ];
    let report = arrival(xml("acme.example", "1", &records.concat()).as_bytes(), "text/xml", FROM);
    for _ in 0..2 {
        processor.process(BounceMailbox::DmarcReports, &report, &[]).await.unwrap();
    }
    // A report about a subdomain with a policy of its own is not shown to the domain above.
    let records = [record("192.0.2.1", 5, pass, "mail.acme.example")];
    let report = arrival(xml("mail.acme.example", "2", &records.concat()).as_bytes(), "text/xml", FROM);
    processor.process(BounceMailbox::DmarcReports, &report, &[]).await.unwrap();
    let all = Hour(i64::MIN / 2)..Hour(i64::MAX / 2);
    for (domain_key, messages, reports) in [(organizational, 11_111, 1), (subdomain, 115, 2), (other, 0, 0)] {
        let (sources, _) = store::dmarc::source_totals(store, domain_key, all.clone()).await.unwrap();
        assert_eq!(sources.iter().map(|source| source.tally.messages).sum::<u64>(), messages);
        assert_eq!(store::dmarc::list_reports(store, domain_key, all.clone()).await.unwrap().len(), reports);
    }
    // The number of author domains looked up is bounded.
    let records: Vec<String> =
        (0..2_000).map(|n| record("192.0.2.1", 1, pass, &format!("n{n}.acme.example"))).collect();
    let opened = parse_report(xml("acme.example", "3", &records.concat()).as_bytes()).unwrap();
    assert_eq!(opened.author_domains().len(), NAMES_MAX + 1);
}

#[test]
fn a_report_of_empty_records_is_not_parsed() {
    let records = |count: usize| gzip(xml("acme.example", "1", &"<record></record>".repeat(count)).as_bytes());
    let opens = |file: &[u8]| open_report(&arrival(file, "application/gzip", FROM).message).is_some();
    assert!(opens(&records(1_000)));
    let oversized = records(900_000);
    assert!(oversized.len() < 128 << 10, "small enough for any mail: {}", oversized.len());
    assert!(!opens(&oversized), "the parser would take 300 MiB for it");
}
