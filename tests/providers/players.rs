//! Simulated Cloudflare, DigitalOcean and Route 53: the parts of their APIs that are used, with records in memory.

use parking_lot::Mutex;
use std::sync::Arc;

use aws_lc_rs::{digest, hmac};
use serde_json::{Value, json};

use super::domain::DOMAIN;
use super::script::{RecordedRequest, Script, ZoneRecord, zone_record};

/// The records that a provider stores.
pub(crate) type Records = Arc<Mutex<Vec<ZoneRecord>>>;

pub(crate) const TOKEN: &str = "tok-0123456789abcdef";
pub(crate) const AWS_ID: &str = "AKIAEXAMPLE";
pub(crate) const AWS_SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn add(records: &Records, name: &str, kind: &str, value: &str) -> u64 {
    let mut records = records.lock();
    let id = records.iter().map(|record| record.id).max().unwrap_or(0) + 1;
    records.push(zone_record(id, name, kind, value));
    id
}

fn matching_records(records: &Records, request: &RecordedRequest) -> Vec<ZoneRecord> {
    let records = records.lock();
    let found = records.iter().filter(|record| Some(&record.name) == request.query.get("name"));
    found.filter(|record| request.query.get("type").is_none_or(|kind| *kind == record.kind)).cloned().collect()
}

fn last_id(path: &str) -> u64 {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// Cloudflare: records have ids; TXT contents are returned as they were written, with or without quotes.
pub(crate) struct Cloudflare(pub(crate) Records);

impl Script for Cloudflare {
    fn respond(&self, request: &RecordedRequest) -> (u16, String) {
        let success = |result: Value| (200, json!({"success": true, "errors": [], "result": result}).to_string());
        if request.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
            // The error repeats the token, as a careless provider does: the publisher must not log it.
            let token = request.headers.get("authorization").unwrap();
            let error = json!({"code": 9109, "message": format!("Invalid access token: {token}")});
            return (403, json!({"success": false, "errors": [error], "result": null}).to_string());
        }
        let records = "/client/v4/zones/z1/dns_records";
        let to_json = |record: &ZoneRecord| match record.kind.as_str() {
            "MX" => {
                json!({"id": record.id.to_string(), "name": record.name, "type": "MX", "content": record.value, "priority": 10})
            }
            kind => {
                json!({"id": record.id.to_string(), "name": record.name, "type": kind, "content": record.value})
            }
        };
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/client/v4/zones") if request.query["name"] == DOMAIN => {
                success(json!([{"id": "z1", "name": DOMAIN}]))
            }
            ("GET", "/client/v4/zones") => success(json!([])),
            ("GET", path) if path == records => {
                success(matching_records(&self.0, request).iter().map(to_json).collect())
            }
            ("POST", path) if path == records => {
                let id = add(&self.0, &text("name"), &text("type"), &text("content"));
                success(json!({"id": id.to_string()}))
            }
            ("PATCH", path) if path.starts_with(records) => {
                let mut zone_records = self.0.lock();
                zone_records.iter_mut().find(|record| record.id == last_id(path)).unwrap().value = text("content");
                success(json!({"id": last_id(path).to_string()}))
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
    fn respond(&self, request: &RecordedRequest) -> (u16, String) {
        if request.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
            return (401, json!({"id": "unauthorized", "message": "Unable to authenticate you"}).to_string());
        }
        let base = format!("/v2/domains/{DOMAIN}/records");
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", path) if path == base => {
                let to_json = |record: &ZoneRecord| {
                    let name = match record.name.strip_suffix(DOMAIN).unwrap().trim_end_matches('.') {
                        "" => "@",
                        name => name,
                    };
                    let mut view =
                        json!({"id": record.id, "ttl": 1800, "name": name, "type": record.kind, "data": record.value});
                    if record.kind == "MX" {
                        view["priority"] = 10.into();
                    }
                    view
                };
                let views: Vec<Value> = matching_records(&self.records, request).iter().map(to_json).collect();
                (200, json!({"domain_records": views, "links": {}}).to_string())
            }
            ("POST", path) if path == base => {
                let body: Value = serde_json::from_str(&request.body).unwrap();
                let text = |name: &str| body[name].as_str().unwrap().to_owned();
                let name = match text("name").as_str() {
                    "@" => DOMAIN.to_owned(),
                    name => format!("{name}.{DOMAIN}"),
                };
                add(&self.records, &name, &text("type"), &text("data"));
                (201, json!({"domain_record": {}}).to_string())
            }
            ("DELETE", path) if path.starts_with(&base) && self.deletes => {
                self.records.lock().retain(|record| record.id != last_id(path));
                (204, String::new())
            }
            ("DELETE", path) if path.starts_with(&base) => {
                let mut records = self.records.lock();
                // The new SPF record may be deleted; the old one is locked.
                if records.iter().any(|record| record.id == last_id(path) && record.value.contains("include:spf.post"))
                {
                    records.retain(|record| record.id != last_id(path));
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
    fn respond(&self, request: &RecordedRequest) -> (u16, String) {
        if !has_valid_signature(request) {
            let error = "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>";
            return (403, error.to_owned());
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/2013-04-01/hostedzonesbyname") => (200, zones()),
            ("GET", "/2013-04-01/hostedzone/Z1PUBLIC/rrset") => (200, self.list(&request.query["name"])),
            ("POST", "/2013-04-01/hostedzone/Z1PUBLIC/rrset") => {
                let set = substrings_between(&request.body, "<ResourceRecordSet>", "</ResourceRecordSet>").remove(0);
                assert!(request.body.contains("<Action>UPSERT</Action>"));
                let values_of = |tag: &str| substrings_between(set, &format!("<{tag}>"), &format!("</{tag}>"));
                let (name, kind) = (values_of("Name")[0].trim_end_matches('.'), values_of("Type")[0]);
                self.0.lock().retain(|record| record.name != name || record.kind != kind);
                for value in values_of("Value") {
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
        let records = self.0.lock();
        let records_of_name: Vec<&ZoneRecord> = records.iter().filter(|record| record.name == name).collect();
        let mut kinds: Vec<&str> = records_of_name.iter().map(|record| record.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut sets = String::new();
        for kind in kinds {
            let records_of_kind = records_of_name.iter().filter(|record| record.kind == kind);
            let values: String = records_of_kind
                .map(|record| {
                    format!("<ResourceRecord><Value>{}</Value></ResourceRecord>", record.value.replace('&', "&amp;"))
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
fn substrings_between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    text.split(from).skip(1).filter_map(|remaining| remaining.split(to).next()).collect()
}

/// Verifies AWS Signature Version 4 over the received request, as the service does.
fn has_valid_signature(request: &RecordedRequest) -> bool {
    let authorization = &request.headers["authorization"];
    let part = |name: &str| {
        let remaining = authorization.split(&format!("{name}=")).nth(1).unwrap();
        remaining.split(',').next().unwrap().to_owned()
    };
    let (credential, names, signature) = (part("Credential"), part("SignedHeaders"), part("Signature"));
    let mut scope = credential.split('/').skip(1).collect::<Vec<_>>();
    let headers: String = names.split(';').map(|name| format!("{name}:{}\n", request.headers[name])).collect();
    let mut query: Vec<&str> = request.raw_query.split('&').collect();
    query.sort_unstable();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hash = |text: &str| hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    let canonical = [&request.method, &request.path, &query.join("&"), &headers, &names, &hash(&request.body)]
        .map(String::as_str)
        .join("\n");
    let to_sign = ["AWS4-HMAC-SHA256", &request.headers["x-amz-date"], &scope.join("/"), &hash(&canonical)].join("\n");
    let sign =
        |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec();
    let mut key = format!("AWS4{AWS_SECRET}").into_bytes();
    for part in scope.drain(..) {
        key = sign(&key, part);
    }
    credential.starts_with(AWS_ID) && request.host == "route53.amazonaws.com" && hex(&sign(&key, &to_sign)) == signature
}
