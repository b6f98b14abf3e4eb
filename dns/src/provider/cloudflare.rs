//! Replacing a text at Cloudflare in one step.
//!
//! There each record has an id, and its content can be changed. dns-update knows to add and to delete only, and it
//! finds a record to delete only if it was written in quotes, as the older ones were not.

use dns_update::Error;
use dns_update::http::{HttpClient, HttpClientBuilder};
use mail::setup::Record;
use serde::{Deserialize, Serialize};

use super::quotes::{quoted, unquoted};
use super::secret::Secret;

const ENDPOINT: &str = "https://api.cloudflare.com/client/v4";
const RETRIES: u32 = 2;

#[derive(Deserialize)]
struct Answer<T> {
    success: bool,
    result: Option<T>,
}

#[derive(Deserialize)]
struct Zone {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Text {
    id: String,
    content: String,
}

#[derive(Serialize)]
struct Change<'a> {
    content: &'a str,
}

/// Puts the record's text in the place of `old`.
pub(super) async fn replace(
    token: &Secret,
    domain: &str,
    record: &Record,
    old: &str,
) -> dns_update::Result<()> {
    let client =
        HttpClientBuilder::new().with_header("Authorization", format!("Bearer {}", token.expose())).build();
    let zone = zone(&client, domain).await?;
    let name = &record.name;
    let url = format!("{ENDPOINT}/zones/{zone}/dns_records?type=TXT&name={name}&per_page=100");
    let texts: Vec<Text> = result(client.get(url).send_with_retry(RETRIES).await?)?;
    let text = texts
        .iter()
        .find(|text| unquoted(&text.content) == old)
        .ok_or_else(|| Error::Api("the text to be replaced is there no more".to_owned()))?;
    let url = format!("{ENDPOINT}/zones/{zone}/dns_records/{}", text.id);
    let change = Change { content: &quoted(&record.value) };
    let _: serde_json::Value = result(client.patch(url).with_body(change)?.send_with_retry(RETRIES).await?)?;
    Ok(())
}

/// The zone that a domain is in: the nearest upwards.
async fn zone(client: &HttpClient, domain: &str) -> dns_update::Result<String> {
    let mut candidate = domain;
    loop {
        let zones: Vec<Zone> =
            result(client.get(format!("{ENDPOINT}/zones?name={candidate}")).send_with_retry(RETRIES).await?)?;
        if let Some(zone) = zones.into_iter().find(|zone| zone.name == candidate) {
            return Ok(zone.id);
        }
        candidate = candidate.split_once('.').ok_or(Error::NotFound)?.1;
    }
}

fn result<T>(answer: Answer<T>) -> dns_update::Result<T> {
    let result = answer.result.filter(|_| answer.success);
    result.ok_or_else(|| Error::Api("the answer says that it did not succeed".to_owned()))
}
