//! Amazon Route 53, which stores and changes records as whole sets, one per name and type.
//!
//! dns-update writes a set in one request, with the existing records and the new one. Reading is implemented here:
//! dns-update cannot parse a list with an alias record (without TTL and values), and most zones have one. One request
//! lists all types at a name. It is signed with AWS Signature Version 4.
//!
//! Existing records must stay unchanged. A set with texts that dns-update would write differently (escapes, non-ASCII
//! characters) is therefore not changed, and the customer gets an error.

use dns_update::crypto::{hmac_sha256, sha256_digest};
use dns_update::http::{HttpClient, HttpClientBuilder};
use dns_update::providers::route53::Route53Config;
use dns_update::{DnsRecord, DnsUpdater, Error, MXRecord};
use jiff::Timestamp;
use message::address::DomainName;
use message::hexadecimal;
use model::domain_setup::{DomainRecord, RecordType};
use serde::Deserialize;

use super::credentials::AwsKeys;
use super::secret::SecretText;
use super::txt_quoting::unquote;
use super::zone::record_data;
use dns::record_changes::{ExistingRecord, ExistingRecordType};

const HOST: &str = "route53.amazonaws.com";
const REGION: &str = "us-east-1";
/// Maximum sets listed at a name: it has at most a dozen, unless they are weighted.
const SETS_MAX: usize = 100;

/// A hosted zone at Route 53.
pub(super) struct HostedZone {
    service: Route53Client,
    id: String,
    updater: DnsUpdater,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListZonesResponse {
    hosted_zones: HostedZoneList,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostedZoneList {
    #[serde(default)]
    hosted_zone: Vec<HostedZoneEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostedZoneEntry {
    id: String,
    name: String,
    config: Option<ZoneConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ZoneConfig {
    #[serde(default)]
    private_zone: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListRecordSetsResponse {
    resource_record_sets: RecordSetList,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RecordSetList {
    #[serde(default)]
    resource_record_set: Vec<ResourceRecordSet>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceRecordSet {
    name: String,
    r#type: String,
    /// `None` for alias records.
    #[serde(rename = "TTL")]
    ttl: Option<u32>,
    #[serde(default)]
    resource_records: ResourceRecords,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceRecords {
    #[serde(default)]
    resource_record: Vec<ResourceRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceRecord {
    value: String,
}

/// A client of Route 53 with a customer's keys.
struct Route53Client {
    keys: AwsKeys,
    now: Timestamp,
    client: HttpClient,
}

impl HostedZone {
    /// Finds the public zone of a domain: the closest ancestor.
    pub(super) async fn open(keys: &AwsKeys, domain: &DomainName, now: Timestamp) -> dns_update::Result<Self> {
        let service = Route53Client { keys: keys.clone(), now, client: HttpClientBuilder::new().build() };
        let mut id = keys.zone_id.clone();
        let mut candidate = Some(domain.clone());
        while let (None, Some(name)) = (&id, &candidate) {
            let query = format!("dnsname={name}&maxitems=10");
            let zones: ListZonesResponse = service.get("/2013-04-01/hostedzonesbyname", &query).await?;
            let public = |zone: &HostedZoneEntry| !zone.config.as_ref().is_some_and(|config| config.private_zone);
            id = zones
                .hosted_zones
                .hosted_zone
                .into_iter()
                .find(|zone| strip_final_dot(&zone.name) == name.as_str() && public(zone))
                .map(|zone| zone.id.trim_start_matches("/hostedzone/").to_owned());
            candidate = name.parent();
        }
        let id = id.filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric())).ok_or(Error::NotFound)?;
        let updater = DnsUpdater::new_route53(Route53Config {
            access_key_id: keys.id.expose().to_owned(),
            secret_access_key: keys.secret.expose().to_owned(),
            session_token: keys.session.as_ref().map(|token| token.expose().to_owned()),
            region: keys.region.clone(),
            hosted_zone_id: Some(id.clone()),
            private_zone_only: None,
            endpoint: None,
        })?;
        Ok(Self { service, id, updater })
    }

    /// The existing records at a name.
    pub(super) async fn existing_records(&self, name: &str) -> dns_update::Result<Vec<ExistingRecord>> {
        let mut existing = Vec::new();
        for set in self.record_sets(name).await? {
            let kind = match set.r#type.as_str() {
                "TXT" => ExistingRecordType::Txt,
                "CNAME" => ExistingRecordType::Cname,
                "MX" => ExistingRecordType::Mx,
                "A" | "AAAA" => ExistingRecordType::Address,
                _ => continue,
            };
            // An alias record has no values, but excludes a CNAME like other records.
            let mut values: Vec<String> = set.resource_records.resource_record.into_iter().map(|e| e.value).collect();
            if values.is_empty() {
                values.push(String::new());
            }
            existing.extend(values.iter().map(|value| ExistingRecord {
                name: name.to_owned(),
                kind,
                value: match kind {
                    ExistingRecordType::Txt => unquote(value),
                    ExistingRecordType::Mx => {
                        strip_final_dot(value.split_ascii_whitespace().last().unwrap_or_default())
                    }
                    ExistingRecordType::Cname | ExistingRecordType::Address => strip_final_dot(value),
                },
            }));
        }
        Ok(existing)
    }

    /// Writes the set of the record's name and type: the existing records and the new one, which replaces `old` if
    /// given.
    pub(super) async fn write_record_set(&self, record: &DomainRecord, old: Option<&str>) -> dns_update::Result<()> {
        let data = record_data(record);
        let kind = data.as_type();
        let existing = self.record_sets(&record.name).await?.into_iter().find(|set| set.r#type == kind.as_str());
        let ttl = existing.as_ref().and_then(|set| set.ttl).unwrap_or(record.ttl_s);
        let mut values = Vec::new();
        for entry in existing.iter().flat_map(|set| &set.resource_records.resource_record) {
            values.push(match record.record_type {
                RecordType::Txt => DnsRecord::TXT(unescape_exact(&entry.value)?),
                RecordType::Mx => DnsRecord::MX(parse_mx(&entry.value)?),
                RecordType::Cname => return Err(Error::Response("a CNAME record was added meanwhile".to_owned())),
            });
        }
        match old {
            None => values.push(data),
            Some(old) => match values.iter_mut().find(|value| matches!(value, DnsRecord::TXT(text) if text == old)) {
                Some(value) => *value = data,
                None => return Err(Error::Response("the text to be replaced no longer exists".to_owned())),
            },
        }
        self.updater.set_rrset(&record.name, kind, ttl, values, &record.name).await
    }

    async fn record_sets(&self, name: &str) -> dns_update::Result<Vec<ResourceRecordSet>> {
        let path = format!("/2013-04-01/hostedzone/{}/rrset", self.id);
        let sets: ListRecordSetsResponse = self.service.get(&path, &format!("maxitems={SETS_MAX}&name={name}")).await?;
        let sets = sets.resource_record_sets.resource_record_set.into_iter();
        Ok(sets.take_while(|set| strip_final_dot(&set.name) == name).collect())
    }
}

impl Route53Client {
    /// Sends a signed request. `query` must be sorted by name and must not need encoding.
    async fn get<T: for<'de> Deserialize<'de>>(&self, path: &str, query: &str) -> dns_update::Result<T> {
        let (keys, now) = (&self.keys, self.now);
        let (timestamp, day) = (now.strftime("%Y%m%dT%H%M%SZ").to_string(), now.strftime("%Y%m%d").to_string());
        let mut headers = vec![("host", HOST.to_owned()), ("x-amz-date", timestamp.clone())];
        if let Some(token) = &keys.session {
            headers.push(("x-amz-security-token", token.expose().to_owned()));
        }
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let request = format!("GET\n{path}\n{query}\n{lines}\n{names}\n{}", hexadecimal::encode(sha256_digest(b"")));
        let region = keys.region.as_deref().unwrap_or(REGION);
        let scope = format!("{day}/{region}/route53/aws4_request");
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{}",
            hexadecimal::encode(sha256_digest(request.as_bytes()))
        );
        let signature = hexadecimal::encode(hmac_sha256(&signing_key(&keys.secret, &day, region), to_sign.as_bytes()));
        let id = keys.id.expose();
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
        let question = self.client.get(format!("https://{HOST}{path}?{query}"));
        let question = question.set_header("authorization", authorization);
        let question = headers
            .into_iter()
            // The client sets the `host` header itself.
            .filter(|(name, _)| *name != "host")
            .fold(question, |question, (name, value)| question.set_header(name, value));
        let answer = question.send_raw().await?;
        quick_xml::de::from_str(&answer)
            .map_err(|error| Error::Parse(format!("unexpected response of Route 53: {error}")))
    }
}

fn signing_key(secret: &SecretText, day: &str, region: &str) -> Vec<u8> {
    let day = hmac_sha256(format!("AWS4{}", secret.expose()).as_bytes(), day.as_bytes());
    let service = hmac_sha256(&hmac_sha256(&day, region.as_bytes()), b"route53");
    hmac_sha256(&service, b"aws4_request")
}

fn strip_final_dot(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the text of a value, if dns-update would write it back unchanged.
fn unescape_exact(value: &str) -> dns_update::Result<String> {
    if value.contains('\\') || !value.is_ascii() {
        return Err(Error::Unsupported(
            "a text at this name contains escapes, which would be changed; add the record manually".to_owned(),
        ));
    }
    Ok(unquote(value))
}

fn parse_mx(value: &str) -> dns_update::Result<MXRecord> {
    let (priority, exchange) = value
        .split_once(' ')
        .and_then(|(priority, host)| Some((priority.parse().ok()?, host.trim().to_owned())))
        .ok_or_else(|| Error::Parse("invalid MX record".to_owned()))?;
    Ok(MXRecord { exchange, priority })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_lists_with_alias_records_are_parsed() {
        let xml = r#"<?xml version="1.0"?>
            <ListResourceRecordSetsResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/">
            <ResourceRecordSets>
              <ResourceRecordSet><Name>shop.example.</Name><Type>A</Type><AliasTarget>
                <HostedZoneId>Z1</HostedZoneId><DNSName>lb.example.</DNSName>
                <EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget></ResourceRecordSet>
              <ResourceRecordSet><Name>shop.example.</Name><Type>TXT</Type><TTL>300</TTL><ResourceRecords>
                <ResourceRecord><Value>"v=spf1 " "mx -all"</Value></ResourceRecord>
                <ResourceRecord><Value>&quot;MS=1&quot;</Value></ResourceRecord>
              </ResourceRecords></ResourceRecordSet>
            </ResourceRecordSets><IsTruncated>false</IsTruncated><MaxItems>100</MaxItems>
            </ListResourceRecordSetsResponse>"#;
        let sets: ListRecordSetsResponse = quick_xml::de::from_str(xml).unwrap();
        let [alias, texts] = sets.resource_record_sets.resource_record_set.as_slice() else { unreachable!() };
        assert!(alias.r#type == "A" && alias.ttl.is_none() && alias.resource_records.resource_record.is_empty());
        let values: Vec<String> = texts.resource_records.resource_record.iter().map(|e| unquote(&e.value)).collect();
        assert_eq!((texts.ttl, values), (Some(300), vec!["v=spf1 mx -all".to_owned(), "MS=1".to_owned()]));
    }

    #[test]
    fn texts_with_escapes_are_refused() {
        assert_eq!(unescape_exact(r#""plain text""#).unwrap(), "plain text");
        assert!(unescape_exact(r#""caf\303\251""#).is_err());
        assert!(unescape_exact(r#""a \"quoted\" word""#).is_err());
    }
}
