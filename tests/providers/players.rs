//! Simulated Cloudflare, DigitalOcean and Route 53: the parts of their APIs that are used, with records in memory.

use std::sync::{Arc, Mutex};

use aws_lc_rs::{digest, hmac};
use serde_json::{Value, json};

use super::domain::DOMAIN;
use super::script::{RecordedRequest, Script, ZoneRecord, kept};

/// The records that a provider stores.
pub(crate) type Records = Arc<Mutex<Vec<ZoneRecord>>>;

pub(crate) const TOKEN: &str = "tok-0123456789abcdef";
pub(crate) const AWS_ID: &str = "AKIAEXAMPLE";
pub(crate) const AWS_SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn add(records: &Records, name: &str, kind: &str, value: &str) -> u64 {
    let mut records = records.lock().unwrap();
    let id = records.iter().map(|kept| kept.id).max().unwrap_or(0) + 1;
    records.push(kept(id, name, kind, value));
    id
}

fn at(records: &Records, asked: &RecordedRequest) -> Vec<ZoneRecord> {
    let records = records.lock().unwrap();
    let found = records.iter().filter(|kept| Some(&kept.name) == asked.query.get("name"));
    found.filter(|kept| asked.query.get("type").is_none_or(|kind| *kind == kept.kind)).cloned().collect()
}

fn last_id(path: &str) -> u64 {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// Cloudflare: records have ids; TXT contents are returned as they were written, with or without quotes.
pub(crate) struct Cloudflare(pub(crate) Records);

impl Script for Cloudflare {
    fn answer(&self, asked: &RecordedRequest) -> (u16, String) {
        let good = |result: Value| (200, json!({"success": true, "errors": [], "result": result}).to_string());
        if asked.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
            // The error repeats the token, as a careless provider does: the publisher must not log it.
            let said = asked.headers.get("authorization").unwrap();
            let error = json!({"code": 9109, "message": format!("Invalid access token: {said}")});
            return (403, json!({"success": false, "errors": [error], "result": null}).to_string());
        }
        let records = "/client/v4/zones/z1/dns_records";
        let shown = |kept: &ZoneRecord| match kept.kind.as_str() {
            "MX" => {
                json!({"id": kept.id.to_string(), "name": kept.name, "type": "MX", "content": kept.value, "priority": 10})
            }
            kind => {
                json!({"id": kept.id.to_string(), "name": kept.name, "type": kind, "content": kept.value})
            }
        };
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/client/v4/zones") if asked.query["name"] == DOMAIN => good(json!([{"id": "z1", "name": DOMAIN}])),
            ("GET", "/client/v4/zones") => good(json!([])),
            ("GET", path) if path == records => good(at(&self.0, asked).iter().map(shown).collect()),
            ("POST", path) if path == records => {
                let id = add(&self.0, &text("name"), &text("type"), &text("content"));
                good(json!({"id": id.to_string()}))
            }
            ("PATCH", path) if path.starts_with(records) => {
                let mut kept = self.0.lock().unwrap();
                kept.iter_mut().find(|kept| kept.id == last_id(path)).unwrap().value = text("content");
                good(json!({"id": last_id(path).to_string()}))
            }
            _ => (404, String::new()),
        }
    }
}

/// DigitalOcean: records have ids; TXT data has no quotes, names are relative to the zone, hosts end in a dot.
pub(crate) struct DigitalOcean {
    pub(crate) records: Records,
    /// False if deleting an existing record fails.
    pub(crate) deletes: bool,
}

impl Script for DigitalOcean {
    fn answer(&self, asked: &RecordedRequest) -> (u16, String) {
        if asked.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
            return (401, json!({"id": "unauthorized", "message": "Unable to authenticate you"}).to_string());
        }
        let base = format!("/v2/domains/{DOMAIN}/records");
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", path) if path == base => {
                let shown = |kept: &ZoneRecord| {
                    let name = match kept.name.strip_suffix(DOMAIN).unwrap().trim_end_matches('.') {
                        "" => "@",
                        name => name,
                    };
                    let mut shown =
                        json!({"id": kept.id, "ttl": 1800, "name": name, "type": kept.kind, "data": kept.value});
                    if kept.kind == "MX" {
                        shown["priority"] = 10.into();
                    }
                    shown
                };
                let shown: Vec<Value> = at(&self.records, asked).iter().map(shown).collect();
                (200, json!({"domain_records": shown, "links": {}}).to_string())
            }
            ("POST", path) if path == base => {
                let body: Value = serde_json::from_str(&asked.body).unwrap();
                let text = |name: &str| body[name].as_str().unwrap().to_owned();
                let name = match text("name").as_str() {
                    "@" => DOMAIN.to_owned(),
                    name => format!("{name}.{DOMAIN}"),
                };
                add(&self.records, &name, &text("type"), &text("data"));
                (201, json!({"domain_record": {}}).to_string())
            }
            ("DELETE", path) if path.starts_with(&base) && self.deletes => {
                self.records.lock().unwrap().retain(|kept| kept.id != last_id(path));
                (204, String::new())
            }
            ("DELETE", path) if path.starts_with(&base) => {
                let mut records = self.records.lock().unwrap();
                // The new SPF record may be deleted; the old one is locked.
                if records.iter().any(|kept| kept.id == last_id(path) && kept.value.contains("include:spf.post")) {
                    records.retain(|kept| kept.id != last_id(path));
                    return (204, String::new());
                }
                (422, json!({"id": "unprocessable_entity", "message": "this record is locked"}).to_string())
            }
            _ => (
                404,
                json!({"id": "not_found", "message": "The resource you were accessing could not be found."})
                    .to_string(),
            ),
        }
    }
}

/// Route 53: whole record sets as XML; each request is signed. The zone also has an alias record.
pub(crate) struct Route53(pub(crate) Records);

impl Script for Route53 {
    fn answer(&self, asked: &RecordedRequest) -> (u16, String) {
        if !signed(asked) {
            let error = "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>";
            return (403, error.to_owned());
        }
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/2013-04-01/hostedzonesbyname") => (200, zones()),
            ("GET", "/2013-04-01/hostedzone/Z1PUBLIC/rrset") => (200, self.list(&asked.query["name"])),
            ("POST", "/2013-04-01/hostedzone/Z1PUBLIC/rrset") => {
                let set = between(&asked.body, "<ResourceRecordSet>", "</ResourceRecordSet>").remove(0);
                assert!(asked.body.contains("<Action>UPSERT</Action>"));
                let one = |tag: &str| between(set, &format!("<{tag}>"), &format!("</{tag}>"));
                let (name, kind) = (one("Name")[0].trim_end_matches('.'), one("Type")[0]);
                self.0.lock().unwrap().retain(|kept| kept.name != name || kept.kind != kind);
                for value in one("Value") {
                    add(&self.0, name, kind, &value.replace("&quot;", "\"").replace("&amp;", "&"));
                }
                (200, "<ChangeResourceRecordSetsResponse/>".to_owned())
            }
            _ => (404, String::new()),
        }
    }
}

impl Route53 {
    /// Record sets from a name on. As in the real service, the answer includes sets of later names.
    fn list(&self, name: &str) -> String {
        let records = self.0.lock().unwrap();
        let here: Vec<&ZoneRecord> = records.iter().filter(|kept| kept.name == name).collect();
        let mut kinds: Vec<&str> = here.iter().map(|kept| kept.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut sets = String::new();
        for kind in kinds {
            let of_kind = here.iter().filter(|kept| kept.kind == kind);
            let values: String = of_kind
                .map(|kept| {
                    format!("<ResourceRecord><Value>{}</Value></ResourceRecord>", kept.value.replace('&', "&amp;"))
                })
                .collect();
            sets += &format!(
                "<ResourceRecordSet><Name>{name}.</Name><Type>{kind}</Type><TTL>300</TTL>\
                 <ResourceRecords>{values}</ResourceRecords></ResourceRecordSet>"
            );
        }
        sets += "<ResourceRecordSet><Name>www.shop.example.</Name><Type>A</Type><AliasTarget><HostedZoneId>Z9</HostedZoneId>\
                 <DNSName>lb.example.</DNSName><EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget></ResourceRecordSet>";
        format!(
            "<?xml version=\"1.0\"?><ListResourceRecordSetsResponse><ResourceRecordSets>{sets}</ResourceRecordSets>\
             <IsTruncated>false</IsTruncated><MaxItems>100</MaxItems></ListResourceRecordSetsResponse>"
        )
    }
}

fn zones() -> String {
    let zone = |id: &str, private: bool| {
        format!(
            "<HostedZone><Id>/hostedzone/{id}</Id><Name>{DOMAIN}.</Name><CallerReference>x</CallerReference>\
             <Config><PrivateZone>{private}</PrivateZone></Config></HostedZone>"
        )
    };
    format!(
        "<?xml version=\"1.0\"?><ListHostedZonesByNameResponse><HostedZones>{}{}</HostedZones>\
         <IsTruncated>false</IsTruncated><MaxItems>10</MaxItems></ListHostedZonesByNameResponse>",
        zone("Z0PRIVATE", true),
        zone("Z1PUBLIC", false)
    )
}

/// All substrings between two markers.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    text.split(from).skip(1).filter_map(|rest| rest.split(to).next()).collect()
}

/// Verifies AWS Signature Version 4 over the received request, as the service does.
fn signed(asked: &RecordedRequest) -> bool {
    let authorization = &asked.headers["authorization"];
    let part = |name: &str| {
        let rest = authorization.split(&format!("{name}=")).nth(1).unwrap();
        rest.split(',').next().unwrap().to_owned()
    };
    let (credential, names, signature) = (part("Credential"), part("SignedHeaders"), part("Signature"));
    let mut scope = credential.split('/').skip(1).collect::<Vec<_>>();
    let headers: String = names.split(';').map(|name| format!("{name}:{}\n", asked.headers[name])).collect();
    let mut query: Vec<&str> = asked.raw_query.split('&').collect();
    query.sort_unstable();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hash = |text: &str| hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    let request = [&asked.method, &asked.path, &query.join("&"), &headers, &names, &hash(&asked.body)]
        .map(String::as_str)
        .join("\n");
    let to_sign = ["AWS4-HMAC-SHA256", &asked.headers["x-amz-date"], &scope.join("/"), &hash(&request)].join("\n");
    let sign =
        |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec();
    let mut key = format!("AWS4{AWS_SECRET}").into_bytes();
    for part in scope.drain(..) {
        key = sign(&key, part);
    }
    credential.starts_with(AWS_ID) && asked.host == "route53.amazonaws.com" && hex(&sign(&key, &to_sign)) == signature
}
