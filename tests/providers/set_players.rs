//! Simulated Hetzner and Gandi: both store record sets, one for each name and type.

use serde_json::{Value, json};

use super::domain::DOMAIN;
use super::players::{Records, TOKEN};
use super::script::{RecordedRequest, Script, kept};

/// The full name and the type of a record set; `@` is the zone apex.
fn place(name: &str, kind: &str) -> (String, String) {
    let name = if name == "@" { DOMAIN.to_owned() } else { format!("{name}.{DOMAIN}") };
    (name, kind.to_owned())
}

fn values(records: &Records, (name, kind): &(String, String)) -> Vec<String> {
    let records = records.lock().unwrap();
    let here = records.iter().filter(|kept| kept.name == *name && kept.kind == *kind);
    here.map(|kept| kept.value.clone()).collect()
}

fn set(records: &Records, (name, kind): &(String, String), values: &[String]) {
    let mut records = records.lock().unwrap();
    records.retain(|kept| kept.name != *name || kept.kind != *kind);
    records.extend(values.iter().map(|value| kept(0, name, kind, value)));
}

fn allowed(asked: &RecordedRequest) -> bool {
    asked.headers.get("authorization") == Some(&format!("Bearer {TOKEN}"))
}

/// Hetzner: a record set is changed by actions.
pub(crate) struct Hetzner(pub(crate) Records);

impl Script for Hetzner {
    fn answer(&self, asked: &RecordedRequest) -> (u16, String) {
        if !allowed(asked) {
            return (401, json!({"error": {"code": "unauthorized"}}).to_string());
        }
        let base = format!("/v1/zones/{DOMAIN}/rrsets");
        let Some(rest) = asked.path.strip_prefix(&base) else { return (404, String::new()) };
        if asked.method == "GET" {
            let (name, kind) = (&asked.query["name"], &asked.query["type"]);
            let records: Vec<Value> =
                values(&self.0, &place(name, kind)).iter().map(|value| json!({"value": value})).collect();
            let sets =
                if records.is_empty() { json!([]) } else { json!([{"name": name, "type": kind, "records": records}]) };
            return (200, json!({"rrsets": sets}).to_string());
        }
        let [_, name, kind, "actions", action] = rest.split('/').collect::<Vec<_>>()[..] else {
            return (404, String::new());
        };
        let at = place(name, kind);
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let given: Vec<String> = body["records"]
            .as_array()
            .map(|records| records.iter().map(|record| record["value"].as_str().unwrap().to_owned()).collect())
            .unwrap_or_default();
        let mut there = values(&self.0, &at);
        match action {
            "add_records" => there.extend(given),
            "remove_records" => there.retain(|value| !given.contains(value)),
            "change_ttl" => {}
            _ => return (404, String::new()),
        }
        set(&self.0, &at, &there);
        (201, json!({"action": {}}).to_string())
    }
}

/// Gandi: a record set is replaced as a whole.
pub(crate) struct Gandi(pub(crate) Records);

impl Script for Gandi {
    fn answer(&self, asked: &RecordedRequest) -> (u16, String) {
        if !allowed(asked) {
            return (403, json!({"code": 403, "message": "Access was denied to this resource."}).to_string());
        }
        let base = format!("/v5/livedns/domains/{DOMAIN}/records/");
        let place = asked.path.strip_prefix(&base).and_then(|rest| rest.split_once('/'));
        let Some(at) = place.map(|(name, kind)| self::place(name, kind)) else { return (404, String::new()) };
        match asked.method.as_str() {
            "GET" => match values(&self.0, &at) {
                none if none.is_empty() => (404, json!({"code": 404, "object": "dns-record"}).to_string()),
                values => (200, json!({"rrset_values": values, "rrset_ttl": 600}).to_string()),
            },
            "PUT" => {
                let body: Value = serde_json::from_str(&asked.body).unwrap();
                let given = body["rrset_values"].as_array().unwrap().iter();
                let given: Vec<String> = given.map(|value| value.as_str().unwrap().to_owned()).collect();
                set(&self.0, &at, &given);
                (201, json!({"message": "DNS Record Created"}).to_string())
            }
            _ => (404, String::new()),
        }
    }
}
