//! Benchmarks of the domain check: `cargo bench -p dns --bench setup`. Measures the rules alone, and the check of a
//! whole domain against a name server in this process. Compare results of the same machine only.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/world/zone.rs"]
mod zone;

use std::hint::black_box;

use dns::dkim_key::DkimKeys;
use dns::domain_check::{DomainCheckSettings, DomainChecker, RecordData, RecordObservation, RecordSet, apply_rules};
use jiff::Timestamp;
use message::address::DomainName;
use model::domain_setup::{DomainRecord, RecordPurpose, RecordType};
use tokio::time::Instant;
use zone::NameServer;

const JUDGEMENTS: usize = 20_000;
const INSPECTIONS: usize = 1_000;
/// The name of the server's threads, whose CPU time is not counted.
const SERVER: &str = "name-server";

fn main() {
    let records = records();
    let now = Timestamp::UNIX_EPOCH;
    for record in &records {
        let answers = RecordObservation::from_records(Ok(RecordSet { aliases: Vec::new(), data: vec![data(record)] }));
        let start = Instant::now();
        for _ in 0..JUDGEMENTS {
            black_box(apply_rules("example.com", record, black_box(&answers), now));
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / JUDGEMENTS as f64;
        println!("judge {:30} {each:8.2} µs", format!("{:?}", record.purpose));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(whole_domain(&records));
}

/// Runs the server on its own thread, so that this thread's CPU time is that of the check.
async fn whole_domain(records: &[DomainRecord]) {
    let server = served(records);
    let settings = DomainCheckSettings {
        servers: vec![server.address],
        authority_port: server.address.port(),
        allow_private: true,
        ..DomainCheckSettings::default()
    };
    let checker = DomainChecker::new(settings).unwrap();
    let domain: DomainName = "example.com".parse().unwrap();
    let start = Instant::now();
    let first = checker.check(&domain, records, Timestamp::UNIX_EPOCH).await;
    assert!(first.iter().all(|finding| finding.error.is_none()), "{first:#?}");
    println!("a domain, first check {:22.2} ms", start.elapsed().as_secs_f64() * 1e3);
    let (start, used, queries_before) = (Instant::now(), cpu_seconds(), server.queries());
    for _ in 0..INSPECTIONS {
        black_box(checker.check(&domain, records, Timestamp::UNIX_EPOCH).await);
    }
    let count = INSPECTIONS as f64;
    println!("further checks {:28.2} ms", start.elapsed().as_secs_f64() * 1e3 / count);
    let [user, system] = cpu_seconds();
    println!("CPU time, user {:28.2} ms", (user - used[0]) * 1e3 / count);
    println!("CPU time, kernel {:27.2} ms", (system - used[1]) * 1e3 / count);
    println!("queries per check {:26.1}", (server.queries() - queries_before) as f64 / count);
}

fn served(records: &[DomainRecord]) -> NameServer {
    let mut zone = "example.com NS ns.example.net.\nns.example.net A 127.0.0.1\n\
        spf.service.example TXT \"v=spf1 ip4:192.0.2.0/24 -all\"\n"
        .to_owned();
    for DomainRecord { record_type, name, value, .. } in records {
        zone += &match record_type {
            RecordType::Txt => format!("{name} TXT \"{value}\"\n"),
            RecordType::Cname => format!("{name} CNAME {value}.\n"),
            RecordType::Mx => format!("{name} MX 10 {value}.\n"),
        };
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).thread_name(SERVER).enable_all().build().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime.block_on(async {
            sender.send(NameServer::start(&zone).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

fn records() -> Vec<DomainRecord> {
    let keys = DkimKeys::generate().unwrap();
    let text = |purpose, name: &str, value: String| DomainRecord {
        purpose,
        record_type: RecordType::Txt,
        name: name.to_owned(),
        value,
        ttl_s: 3_600,
        priority: None,
        required: true,
    };
    let host = |purpose, record_type, name: &str, value: &str| DomainRecord {
        record_type,
        ..text(purpose, name, value.to_owned())
    };
    vec![
        text(RecordPurpose::Ownership, "_service.example.com", "service-verification=1".to_owned()),
        text(RecordPurpose::Dkim, "s1._domainkey.example.com", keys.rsa.txt_record()),
        text(RecordPurpose::Dkim, "s1e._domainkey.example.com", keys.ed25519.txt_record()),
        text(RecordPurpose::Spf, "example.com", "v=spf1 include:spf.service.example ~all".to_owned()),
        text(RecordPurpose::Dmarc, "_dmarc.example.com", "v=DMARC1; p=none; rua=mailto:d@service.example".to_owned()),
        host(RecordPurpose::ReturnPath, RecordType::Cname, "rp.example.com", "rp.service.example"),
        host(RecordPurpose::Tracking, RecordType::Cname, "track.example.com", "track.service.example"),
        host(RecordPurpose::Inbound, RecordType::Mx, "example.com", "mx.service.example"),
    ]
}

fn data(record: &DomainRecord) -> RecordData {
    match record.record_type {
        RecordType::Txt => RecordData::Text(record.value.clone()),
        RecordType::Cname => RecordData::Alias(record.value.clone()),
        RecordType::Mx => RecordData::MailHost { preference: 10, host: record.value.clone() },
    }
}

/// User and system time of all threads but the server's: the 14th and 15th fields of a thread's stat, in hundredths of
/// a second.
fn cpu_seconds() -> [f64; 2] {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    let own_threads = stats.filter(|stat| !stat.contains(SERVER));
    own_threads.fold([0.0, 0.0], |[user, system], stat| {
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
        let mut seconds = fields.map(|field| field.parse::<f64>().unwrap_or(0.0) / 100.0);
        [user + seconds.next().unwrap_or(0.0), system + seconds.next().unwrap_or(0.0)]
    })
}
