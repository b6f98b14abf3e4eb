//! Replacing a text at Cloudflare in one step.
//!
//! There each record has an id, and its content can be changed. dns-update knows to add and to delete only, and it
//! finds a record to delete only if it was written in quotes, as the older ones were not.

use dns_update::Error;
use dns_update::http::{HttpClient, HttpClientBuilder};
use mail::setup::DomainRecord;
use serde::{Deserialize, Serialize};

use super::quotes::{quote, unquote};
use super::secret::SecretText;

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

/// A zone.
pub(super) struct CloudflareZone {
    client: HttpClient,
    id: String,
    /// Its own name.
    pub(super) name: String,
}

impl CloudflareZone {
    /// The zone that a domain is in: the nearest upwards.
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

    /// Puts the record's text in the place of `old`.
    pub(super) async fn replace(&self, record: &DomainRecord, old: &str) -> dns_update::Result<()> {
        let records = format!("{ENDPOINT}/zones/{}/dns_records", self.id);
        let question = self.client.get(format!("{records}?type=TXT&name={}&per_page=100", record.name));
        let texts: Vec<TxtEntry> = into_result(question.send_with_retry(RETRIES).await?)?;
        let text = texts
            .iter()
            .find(|text| unquote(&text.content) == old)
            .ok_or_else(|| Error::Api("the text to be replaced is there no more".to_owned()))?;
        let change = self.client.patch(format!("{records}/{}", text.id));
        let change = change.with_body(ContentUpdate { content: &quote(&record.value) })?;
        into_result(change.send_with_retry::<CloudflareResponse<serde_json::Value>>(RETRIES).await?).map(|_| ())
    }
}

fn into_result<T>(answer: CloudflareResponse<T>) -> dns_update::Result<T> {
    let result = answer.result.filter(|_| answer.success);
    result.ok_or_else(|| Error::Api("the answer says that it did not succeed".to_owned()))
}
