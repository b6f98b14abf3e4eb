//! Replaces a TXT record at Cloudflare atomically.
//!
//! At Cloudflare each record has an id, and its content can be changed. dns-update can only add and delete, and it
//! finds a record to delete only if its content is stored in quotes, which older records are not.

use dns_update::Error;
use dns_update::http::{HttpClient, HttpClientBuilder};
use model::domain_setup::DomainRecord;
use serde::{Deserialize, Serialize};

use super::secret::SecretText;
use super::txt_quoting::{quote, unquote};

const ENDPOINT: &str = "https://api.cloudflare.com/client/v4";
const RETRIES: u32 = 2;

#[derive(Deserialize)]
struct CloudflareResponse<T> {
    success: bool,
    result: Option<T>,
}

#[derive(Deserialize)]
struct CloudflareZoneEntry {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct TxtEntry {
    id: String,
    content: String,
}

#[derive(Serialize)]
struct ContentUpdate<'a> {
    content: &'a str,
}

/// A zone at Cloudflare.
pub(super) struct CloudflareZone {
    client: HttpClient,
    id: String,
    /// The zone's apex.
    pub(super) name: String,
}

impl CloudflareZone {
    /// Finds the zone of a domain: the closest ancestor.
    pub(super) async fn open(token: &SecretText, domain: &str) -> dns_update::Result<Self> {
        let client =
            HttpClientBuilder::new().with_header("Authorization", format!("Bearer {}", token.expose())).build();
        let mut candidate = domain;
        loop {
            let question = client.get(format!("{ENDPOINT}/zones?name={candidate}"));
            let zones: Vec<CloudflareZoneEntry> = into_result(question.send_with_retry(RETRIES).await?)?;
            if let Some(zone) = zones.into_iter().find(|zone| zone.name == candidate) {
                return Ok(Self { client, id: zone.id, name: zone.name });
            }
            candidate = candidate.split_once('.').ok_or(Error::NotFound)?.1;
        }
    }

    /// Replaces the text `old` with the record's value.
    pub(super) async fn replace(&self, record: &DomainRecord, old: &str) -> dns_update::Result<()> {
        let records = format!("{ENDPOINT}/zones/{}/dns_records", self.id);
        let question = self.client.get(format!("{records}?type=TXT&name={}&per_page=100", record.name));
        let texts: Vec<TxtEntry> = into_result(question.send_with_retry(RETRIES).await?)?;
        let text = texts
            .iter()
            .find(|text| unquote(&text.content) == old)
            .ok_or_else(|| Error::Api("the text to be replaced no longer exists".to_owned()))?;
        let change = self.client.patch(format!("{records}/{}", text.id));
        let change = change.with_body(ContentUpdate { content: &quote(&record.value) })?;
        into_result(change.send_with_retry::<CloudflareResponse<serde_json::Value>>(RETRIES).await?).map(|_| ())
    }
}

fn into_result<T>(answer: CloudflareResponse<T>) -> dns_update::Result<T> {
    let result = answer.result.filter(|_| answer.success);
    result.ok_or_else(|| Error::Api("the response reports no success".to_owned()))
}
