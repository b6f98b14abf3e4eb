//! Publishes a domain's records at simulated DNS providers; checks the requests sent and the resulting zone.

use parking_lot::Mutex;
use std::process::Stdio;
use std::sync::Arc;

use dns::resolver::{Resolver, ResolverSettings};
use provider::{ApplyError, MergePolicy, ProviderCredentials, PublishRequest, Publisher};
use serde_json::{Value, json};

use super::domain::{DOMAIN, NOW, name, wanted_of};
use super::players::{AWS_ID, AWS_SECRET, Cloudflare, DigitalOcean, Records, Route53, TOKEN};
use super::script::{Provider, ZoneRecord, zone_record};
use super::set_players::{Gandi, Hetzner};

/// Environment variable that holds the job of a child process, as JSON.
const JOB: &str = "TEST_PROVIDER_JOB";
/// Prefix of the result line that the child process prints.
const RESULT: &str = "result: ";

/// No test by itself: the other tests run it in a child process. It applies the job from the environment and prints
/// the result.
#[tokio::test]
async fn apply_job_from_environment() {
    let Ok(job) = std::env::var(JOB) else { return };
    let job: Value = serde_json::from_str(&job).unwrap();
    let provider = job["provider"].as_str().unwrap().parse().unwrap();
    let credentials = ProviderCredentials::parse(provider, &job["credentials"]).unwrap();
    let settings = ResolverSettings { servers: vec!["127.0.0.1:9".parse().unwrap()], ..ResolverSettings::default() };
    let publisher = Publisher::new(Resolver::new(&settings).unwrap(), false);
    let zone = job["zone"].as_str().map(name);
    let merge = MergePolicy { spf: job["merge"].as_bool().unwrap(), mx: false };
    let dry_run = job["dry_run"].as_bool().unwrap();
    let domain = name(job["domain"].as_str().unwrap_or(DOMAIN));
    let expected = wanted_of(domain.as_str());
    let request = PublishRequest { domain: &domain, zone: zone.as_ref(), records: &expected, merge, dry_run, now: NOW };
    let result = match publisher.apply(&credentials, &request).await {
        Ok(report) => json!({
            "applied": report.applied,
            "steps": report.changes.iter().map(|step| {
                let step = serde_json::to_value(step).unwrap();
                format!("{} {}", step["action"].as_str().unwrap(), step["outcome"].as_str().unwrap())
            }).collect::<Vec<_>>(),
            "failure": report.failure.map(|failure| failure.to_string()),
        }),
        Err(ApplyError::Upstream(error)) => {
            json!({"fault": error.fault, "error": error.to_string()})
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    println!("\n{RESULT}{result}");
}

/// Runs a job in a child process whose HTTPS proxy is the simulated provider.
async fn run(provider: &Provider, job: Value) -> Value {
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cases::apply_job_from_environment", "--nocapture"])
        .env(JOB, job.to_string())
        .env("HTTPS_PROXY", &provider.proxy)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("https_proxy")
        .env_remove("SSL_CERT_DIR")
        .env("SSL_CERT_FILE", provider.home.path().join("authority.pem"))
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let result = stdout.lines().find_map(|line| line.strip_prefix(RESULT));
    let result = result.unwrap_or_else(|| panic!("{stdout}\n{}", String::from_utf8_lossy(&output.stderr)));
    for secret in [TOKEN, AWS_SECRET] {
        assert!(!stdout.contains(secret) && !String::from_utf8_lossy(&output.stderr).contains(secret));
    }
    serde_json::from_str(result).unwrap()
}

fn job(provider: &str, credentials: Value) -> Value {
    json!({"provider": provider, "credentials": credentials, "zone": DOMAIN, "merge": true, "dry_run": false})
}

fn records(zone: &[ZoneRecord]) -> Records {
    Arc::new(Mutex::new(zone.to_vec()))
}

/// All values of a record set, sorted.
fn values(records: &Records, name: &str, kind: &str) -> Vec<String> {
    let records = records.lock();
    let matching = records.iter().filter(|record| record.name == name && record.kind == kind);
    let mut values: Vec<String> = matching.map(|record| record.value.clone()).collect();
    values.sort();
    values
}

const MERGED: &str = "v=spf1 mx include:spf.post.example -all";
const DONE: [&str; 6] = ["create done", "create done", "create done", "update done", "create done", "create done"];

/// Applies the job as a dry run and then twice; the dry run and the second run must write nothing.
async fn apply_twice(provider: &Provider, job: &Value) {
    let mut dry = job.clone();
    dry["dry_run"] = true.into();
    let dry_run_result = run(provider, dry).await;
    assert_eq!(dry_run_result["applied"], false, "{dry_run_result}");
    assert_eq!(provider.writes(), Vec::<String>::new());
    let first = run(provider, job.clone()).await;
    assert_eq!(first, json!({"applied": true, "steps": DONE, "failure": null}));
    let written = provider.writes();
    let second = run(provider, job.clone()).await;
    assert_eq!(second, json!({"applied": true, "steps": vec!["skip unchanged"; 6], "failure": null}));
    assert_eq!(provider.writes(), written);
}

#[tokio::test]
async fn cloudflare() {
    // Records from before Cloudflare quoted TXT contents have no quotes.
    let zone = records(&[
        zone_record(7, DOMAIN, "TXT", "v=spf1 mx -all"),
        zone_record(8, DOMAIN, "TXT", "\"google-site-verification=xyz\""),
        zone_record(9, DOMAIN, "CNAME", "pages.example"),
    ]);
    let provider = Provider::start("api.cloudflare.com", Cloudflare(Arc::clone(&zone))).await;
    let mut job = job("cloudflare", json!({"api_token": TOKEN}));
    job["zone"] = Value::Null;
    apply_twice(&provider, &job).await;
    let base = "/client/v4/zones/z1/dns_records";
    let post = format!("POST {base}");
    let mut writes = vec![post; 6];
    writes[3] = format!("PATCH {base}/7");
    assert_eq!(provider.writes(), writes);
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["\"google-site-verification=xyz\"".to_owned(), format!("\"{MERGED}\"")]);
    assert_eq!(values(&zone, "rp.shop.example", "CNAME"), ["rp.post.example"]);

    job["credentials"]["api_token"] = "tok-not-the-right-one".into();
    let refused = run(&provider, job).await;
    assert_eq!(refused["fault"], "credentials");
    assert!(!refused["error"].as_str().unwrap().contains("not-the-right"), "{refused}");
}

/// A CNAME at the zone apex is flattened by Cloudflare; below the apex it conflicts with other records.
#[tokio::test]
async fn cloudflare_with_an_alias_below_the_zone() {
    let zone = records(&[zone_record(9, "mail.shop.example", "CNAME", "pages.example")]);
    let provider = Provider::start("api.cloudflare.com", Cloudflare(Arc::clone(&zone))).await;
    let mut job = job("cloudflare", json!({"api_token": TOKEN}));
    job["domain"] = "mail.shop.example".into();
    let result = run(&provider, job).await;
    assert_eq!((&result["applied"], &result["failure"]), (&json!(false), &Value::Null), "{result}");
    assert_eq!(result["steps"][3], "conflict not_done");
    assert_eq!(provider.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn cloudflare_without_the_zone() {
    struct Empty;
    impl super::script::Script for Empty {
        fn respond(&self, _: &super::script::RecordedRequest) -> (u16, String) {
            (200, json!({"success": true, "errors": [], "result": []}).to_string())
        }
    }
    let provider = Provider::start("api.cloudflare.com", Empty).await;
    let refused = run(&provider, job("cloudflare", json!({"api_token": TOKEN}))).await;
    assert_eq!(refused["fault"], "no_zone", "{refused}");
}

#[tokio::test]
async fn digitalocean() {
    let texts = [zone_record(7, DOMAIN, "TXT", "v=spf1 mx -all"), zone_record(8, DOMAIN, "TXT", "MS=ms123")];
    let zone = records(&texts);
    let script = DigitalOcean { records: Arc::clone(&zone), deletes: true };
    let provider = Provider::start("api.digitalocean.com", script).await;
    let mut job = job("digitalocean", json!({"api_token": TOKEN}));
    apply_twice(&provider, &job).await;
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["MS=ms123", MERGED]);
    assert_eq!(values(&zone, "rp.shop.example", "CNAME"), ["rp.post.example."]);
    // The new record is created before the old one is deleted.
    let base = format!("/v2/domains/{DOMAIN}/records");
    assert_eq!(provider.writes()[3..5], [format!("POST {base}"), format!("DELETE {base}/7")]);

    job["credentials"]["api_token"] = "tok-not-the-right-one".into();
    assert_eq!(run(&provider, job).await["fault"], "credentials");
}

#[tokio::test]
async fn a_record_that_cannot_be_deleted_stays_as_it_was() {
    let zone = records(&[zone_record(7, DOMAIN, "TXT", "v=spf1 mx -all")]);
    let script = DigitalOcean { records: Arc::clone(&zone), deletes: false };
    let provider = Provider::start("api.digitalocean.com", script).await;
    let result = run(&provider, job("digitalocean", json!({"api_token": TOKEN}))).await;
    assert_eq!(result["applied"], false);
    let steps = ["create done", "create done", "create done", "update failed", "create not_done", "create not_done"];
    assert_eq!(result["steps"], json!(steps));
    assert!(result["failure"].as_str().unwrap().contains("this record is locked"), "{result}");
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["v=spf1 mx -all"]);
}

#[tokio::test]
async fn route53() {
    let zone = records(&[
        zone_record(7, DOMAIN, "TXT", "\"v=spf1 \" \"mx -all\""),
        zone_record(8, DOMAIN, "TXT", "\"MS=ms123\""),
        zone_record(9, DOMAIN, "NS", "ns-1.example."),
    ]);
    let provider = Provider::start("route53.amazonaws.com", Route53(Arc::clone(&zone))).await;
    let mut job = job("route53", json!({"access_key_id": AWS_ID, "secret_access_key": AWS_SECRET}));
    job["zone"] = Value::Null;
    apply_twice(&provider, &job).await;
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["\"MS=ms123\"".to_owned(), format!("\"{MERGED}\"")]);
    assert_eq!(values(&zone, DOMAIN, "MX"), ["10 in.post.example"]);
    assert_eq!(provider.writes().len(), 6);

    job["credentials"]["secret_access_key"] = "not-the-right-one".into();
    let refused = run(&provider, job).await;
    assert_eq!(refused["fault"], "credentials", "{refused}");
}

#[tokio::test]
async fn a_set_with_an_unsupported_txt_escape_is_not_rewritten() {
    let existing = [zone_record(7, DOMAIN, "TXT", "\"caf\\303\\251\"")];
    let zone = records(&existing);
    let provider = Provider::start("route53.amazonaws.com", Route53(Arc::clone(&zone))).await;
    let job = job("route53", json!({"access_key_id": AWS_ID, "secret_access_key": AWS_SECRET}));
    let result = run(&provider, job).await;
    assert_eq!(result["steps"][3], "create failed");
    assert!(result["failure"].as_str().unwrap().contains("manually"), "{result}");
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["\"caf\\303\\251\""]);
}

#[tokio::test]
async fn hetzner() {
    let texts = [zone_record(0, DOMAIN, "TXT", "\"v=spf1 mx -all\""), zone_record(0, DOMAIN, "TXT", "\"MS=ms123\"")];
    let zone = records(&texts);
    let provider = Provider::start("api.hetzner.cloud", Hetzner(Arc::clone(&zone))).await;
    let mut job = job("hetzner", json!({"api_token": TOKEN}));
    apply_twice(&provider, &job).await;
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["\"MS=ms123\"".to_owned(), format!("\"{MERGED}\"")]);
    assert_eq!(values(&zone, DOMAIN, "MX"), ["10 in.post.example."]);
    job["credentials"]["api_token"] = "tok-not-the-right-one".into();
    assert_eq!(run(&provider, job).await["fault"], "credentials");
}

#[tokio::test]
async fn gandi() {
    let texts = [zone_record(0, DOMAIN, "TXT", "\"v=spf1 mx -all\""), zone_record(0, DOMAIN, "TXT", "\"MS=ms123\"")];
    let zone = records(&texts);
    let provider = Provider::start("api.gandi.net", Gandi(Arc::clone(&zone))).await;
    let mut job = job("gandi", json!({"api_token": TOKEN}));
    apply_twice(&provider, &job).await;
    assert_eq!(values(&zone, DOMAIN, "TXT"), ["\"MS=ms123\"".to_owned(), format!("\"{MERGED}\"")]);
    assert_eq!(values(&zone, "rp.shop.example", "CNAME"), ["rp.post.example."]);
    job["credentials"]["api_token"] = "tok-not-the-right-one".into();
    assert_eq!(run(&provider, job).await["fault"], "credentials");
}
