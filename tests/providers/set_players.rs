//! Simulated Hetzner and Gandi: both store record sets, one for each name and type.

use serde_json::{Value, json};

use super::domain::DOMAIN;
use super::players::{Records, TOKEN};
use super::script::{RecordedRequest, Script, zone_record};

/// The full name and the type of a record set; `@` is the zone apex.
fn set_key(name: &str, kind: &str) -> (String, String) {
    let name = if name == "@" { DOMAIN.to_owned() } else { format!("{name}.{DOMAIN}") };
    (name, kind.to_owned())
}

fn read_set(records: &Records, (name, kind): &(String, String)) -> Vec<String> {
    let records = records.lock();
    let matching = records.iter().filter(|record| record.name == *name && record.kind == *kind);
    matching.map(|record| record.value.clone()).collect()
}

fn replace_set(records: &Records, (name, kind): &(String, String), values: &[String]) {
    let mut records = records.lock();
    records.retain(|record| record.name != *name || record.kind != *kind);
    records.extend(values.iter().map(|value| zone_record(0, name, kind, value)));
}

fn is_authorized(request: &RecordedRequest) -> bool {
    request.headers.get("authorization") == Some(&format!("Bearer {TOKEN}"))
}

/// Hetzner: a record set is changed by actions.
pub(crate) struct Hetzner(pub(crate) Records);

impl Script for Hetzner {
    fn respond(&self, request: &RecordedRequest) -> (u16, String) {
        if !is_authorized(request) {
            return (401, json!({"error": {"code": "unauthorized"}}).to_string());
        }
        let base = format!("/v1/zones/{DOMAIN}/rrsets");
        let Some(path) = request.path.strip_prefix(&base) else { return (404, String::new()) };
        if request.method == "GET" {
            let (name, kind) = (&request.query["name"], &request.query["type"]);
            let records: Vec<Value> =
                read_set(&self.0, &set_key(name, kind)).iter().map(|value| json!({"value": value})).collect();
            let sets =
                if records.is_empty() { json!([]) } else { json!([{"name": name, "type": kind, "records": records}]) };
            return (200, json!({"rrsets": sets}).to_string());
        }
        let [_, name, kind, "actions", action] = path.split('/').collect::<Vec<_>>()[..] else {
            return (404, String::new());
        };
        let at = set_key(name, kind);
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let values: Vec<String> = body["records"]
            .as_array()
            .map(|records| records.iter().map(|record| record["value"].as_str().unwrap().to_owned()).collect())
            .unwrap_or_default();
        let mut current = read_set(&self.0, &at);
        match action {
            "add_records" => current.extend(values),
            "remove_records" => current.retain(|value| !values.contains(value)),
            "change_ttl" => {}
            _ => return (404, String::new()),
        }
        replace_set(&self.0, &at, &current);
        (201, json!({"action": {}}).to_string())
    }
}

/// Gandi: a record set is replaced as a whole.
pub(crate) struct Gandi(pub(crate) Records);

impl Script for Gandi {
    fn respond(&self, request: &RecordedRequest) -> (u16, String) {
        if !is_authorized(request) {
            return (403, json!({"code": 403, "message": "Access was denied to this resource."}).to_string());
        }
        let base = format!("/v5/livedns/domains/{DOMAIN}/records/");
        let name_and_type = request.path.strip_prefix(&base).and_then(|path| path.split_once('/'));
        let Some(at) = name_and_type.map(|(name, kind)| self::set_key(name, kind)) else { return (404, String::new()) };
        match request.method.as_str() {
            "GET" => match read_set(&self.0, &at) {
                values if values.is_empty() => (404, json!({"code": 404, "object": "dns-record"}).to_string()),
                values => (200, json!({"rrset_values": values, "rrset_ttl": 600}).to_string()),
            },
            "PUT" => {
                let body: Value = serde_json::from_str(&request.body).unwrap();
                let values = body["rrset_values"].as_array().unwrap().iter();
                let values: Vec<String> = values.map(|value| value.as_str().unwrap().to_owned()).collect();
                replace_set(&self.0, &at, &values);
                (201, json!({"message": "DNS Record Created"}).to_string())
            }
            _ => (404, String::new()),
        }
    }
}
