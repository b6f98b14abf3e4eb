//! Amazon's Route 53: records are kept and changed as whole sets, one of each name and type.
//!
//! A set is written by dns-update, in one request: with what stood there and ours. Reading is done here, for dns-update's
//! reader takes a list that has an alias record in it (no TTL, no values) for nonsense, and there is hardly a zone
//! without one. One request lists all types at a name; it is signed as AWS wants it (Signature Version 4).
//!
//! What stands is kept as it was written; a set with texts that do not come back the same from dns-update's writer
//! (escapes, letters beyond ASCII) is left alone, with a word to the customer.

use dns_update::crypto::{hmac_sha256, sha256_digest};
use dns_update::http::{HttpClient, HttpClientBuilder};
use dns_update::providers::route53::Route53Config;
use dns_update::{DnsRecord, DnsUpdater, Error, MXRecord};
use jiff::Timestamp;
use mail::address::Name;
use mail::setup::{Record, RecordType};
use serde::Deserialize;

use super::credentials::AwsKeys;
use super::quotes::unquoted;
use super::secret::Secret;
use super::zone::data;
use dns::plan::{Kind, Standing};

const HOST: &str = "route53.amazonaws.com";
const REGION: &str = "us-east-1";
/// Sets asked for at a name: it has at most a dozen, unless they are weighted.
const SETS_MAX: usize = 100;

/// A hosted zone.
pub(super) struct HostedZone {
    service: Service,
    id: String,
    updater: DnsUpdater,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Zones {
    hosted_zones: ZoneList,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ZoneList {
    #[serde(default)]
    hosted_zone: Vec<ZoneEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ZoneEntry {
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
struct Sets {
    resource_record_sets: SetList,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SetList {
    #[serde(default)]
    resource_record_set: Vec<Set>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Set {
    name: String,
    r#type: String,
    /// Alias records have none.
    #[serde(rename = "TTL")]
    ttl: Option<u32>,
    #[serde(default)]
    resource_records: Values,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Values {
    #[serde(default)]
    resource_record: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    value: String,
}

/// The service, spoken to with somebody's keys.
struct Service {
    keys: AwsKeys,
    now: Timestamp,
    client: HttpClient,
}

impl HostedZone {
    /// The public zone that a domain is in, the nearest upwards.
    pub(super) async fn open(keys: &AwsKeys, domain: &Name, now: Timestamp) -> dns_update::Result<Self> {
        let service = Service { keys: keys.clone(), now, client: HttpClientBuilder::new().build() };
        let mut id = keys.zone_id.clone();
        let mut candidate = Some(domain.clone());
        while let (None, Some(name)) = (&id, &candidate) {
            let query = format!("dnsname={name}&maxitems=10");
            let zones: Zones = service.get("/2013-04-01/hostedzonesbyname", &query).await?;
            let public = |zone: &ZoneEntry| !zone.config.as_ref().is_some_and(|config| config.private_zone);
            id = zones
                .hosted_zones
                .hosted_zone
                .into_iter()
                .find(|zone| plain(&zone.name) == name.as_str() && public(zone))
                .map(|zone| zone.id.trim_start_matches("/hostedzone/").to_owned());
            candidate = name.parent();
        }
        let id =
            id.filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric())).ok_or(Error::NotFound)?;
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

    /// What stands at a name.
    pub(super) async fn standing(&self, name: &str) -> dns_update::Result<Vec<Standing>> {
        let mut standing = Vec::new();
        for set in self.sets(name).await? {
            let kind = match set.r#type.as_str() {
                "TXT" => Kind::Txt,
                "CNAME" => Kind::Cname,
                "MX" => Kind::Mx,
                "A" | "AAAA" => Kind::Address,
                _ => continue,
            };
            // An alias record has no values, and is in the way of an alias of ours all the same.
            let mut values: Vec<String> =
                set.resource_records.resource_record.into_iter().map(|e| e.value).collect();
            if values.is_empty() {
                values.push(String::new());
            }
            standing.extend(values.iter().map(|value| Standing {
                name: name.to_owned(),
                kind,
                value: match kind {
                    Kind::Txt => unquoted(value),
                    Kind::Mx => plain(value.split_ascii_whitespace().last().unwrap_or_default()),
                    Kind::Cname | Kind::Address => plain(value),
                },
            }));
        }
        Ok(standing)
    }

    /// Writes the set of the record's name and type: what stands there and the record, in the place of `old` if
    /// one is given.
    pub(super) async fn put(&self, record: &Record, old: Option<&str>) -> dns_update::Result<()> {
        let ours = data(record);
        let kind = ours.as_type();
        let there = self.sets(&record.name).await?.into_iter().find(|set| set.r#type == kind.as_str());
        let ttl = there.as_ref().and_then(|set| set.ttl).unwrap_or(record.ttl_s);
        let mut values = Vec::new();
        for entry in there.iter().flat_map(|set| &set.resource_records.resource_record) {
            values.push(match record.record_type {
                RecordType::Txt => DnsRecord::TXT(faithful(&entry.value)?),
                RecordType::Mx => DnsRecord::MX(mail_host(&entry.value)?),
                RecordType::Cname => return Err(Error::Response("an alias came there meanwhile".to_owned())),
            });
        }
        match old {
            None => values.push(ours),
            Some(old) => match values
                .iter_mut()
                .find(|value| matches!(value, DnsRecord::TXT(text) if text == old))
            {
                Some(value) => *value = ours,
                None => return Err(Error::Response("the text to be replaced is there no more".to_owned())),
            },
        }
        self.updater.set_rrset(&record.name, kind, ttl, values, &record.name).await
    }

    async fn sets(&self, name: &str) -> dns_update::Result<Vec<Set>> {
        let path = format!("/2013-04-01/hostedzone/{}/rrset", self.id);
        let sets: Sets = self.service.get(&path, &format!("maxitems={SETS_MAX}&name={name}")).await?;
        let sets = sets.resource_record_sets.resource_record_set.into_iter();
        Ok(sets.take_while(|set| plain(&set.name) == name).collect())
    }
}

impl Service {
    /// A signed question. `query` is in the order of its names, with nothing in it to be encoded.
    async fn get<T: for<'de> Deserialize<'de>>(&self, path: &str, query: &str) -> dns_update::Result<T> {
        let (keys, now) = (&self.keys, self.now);
        let (moment, day) = (now.strftime("%Y%m%dT%H%M%SZ").to_string(), now.strftime("%Y%m%d").to_string());
        let mut headers = vec![("host", HOST.to_owned()), ("x-amz-date", moment.clone())];
        if let Some(token) = &keys.session {
            headers.push(("x-amz-security-token", token.expose().to_owned()));
        }
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let request = format!("GET\n{path}\n{query}\n{lines}\n{names}\n{}", hex(&sha256_digest(b"")));
        let region = keys.region.as_deref().unwrap_or(REGION);
        let scope = format!("{day}/{region}/route53/aws4_request");
        let to_sign =
            format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{}", hex(&sha256_digest(request.as_bytes())));
        let signature = hex(&hmac_sha256(&signing_key(&keys.secret, &day, region), to_sign.as_bytes()));
        let id = keys.id.expose();
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
        let question = self.client.get(format!("https://{HOST}{path}?{query}"));
        let question = question.set_header("authorization", authorization);
        let question = headers
            .into_iter()
            // The client says itself which host it asks.
            .filter(|(name, _)| *name != "host")
            .fold(question, |question, (name, value)| question.set_header(name, value));
        let answer = question.send_raw().await?;
        quick_xml::de::from_str(&answer)
            .map_err(|error| Error::Parse(format!("not what Route 53 answers: {error}")))
    }
}

fn signing_key(secret: &Secret, day: &str, region: &str) -> Vec<u8> {
    let day = hmac_sha256(format!("AWS4{}", secret.expose()).as_bytes(), day.as_bytes());
    let service = hmac_sha256(&hmac_sha256(&day, region.as_bytes()), b"route53");
    hmac_sha256(&service, b"aws4_request")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// What a text says, if it is certain that writing it again writes the same.
fn faithful(value: &str) -> dns_update::Result<String> {
    if value.contains('\\') || !value.is_ascii() {
        return Err(Error::Unsupported(
            "a text at this name has escapes in it, which cannot be kept as they are; add ours by hand"
                .to_owned(),
        ));
    }
    Ok(unquoted(value))
}

fn mail_host(value: &str) -> dns_update::Result<MXRecord> {
    let (priority, exchange) = value
        .split_once(' ')
        .and_then(|(priority, host)| Some((priority.parse().ok()?, host.trim().to_owned())))
        .ok_or_else(|| Error::Parse("an MX record that is none".to_owned()))?;
    Ok(MXRecord { exchange, priority })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_alias_records_is_read() {
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
        let sets: Sets = quick_xml::de::from_str(xml).unwrap();
        let [alias, texts] = sets.resource_record_sets.resource_record_set.as_slice() else { unreachable!() };
        assert!(
            alias.r#type == "A" && alias.ttl.is_none() && alias.resource_records.resource_record.is_empty()
        );
        let values: Vec<String> =
            texts.resource_records.resource_record.iter().map(|e| unquoted(&e.value)).collect();
        assert_eq!((texts.ttl, values), (Some(300), vec!["v=spf1 mx -all".to_owned(), "MS=1".to_owned()]));
    }

    #[test]
    fn what_would_not_come_back_the_same_is_left_alone() {
        assert_eq!(faithful(r#""plain text""#).unwrap(), "plain text");
        assert!(faithful(r#""caf\303\251""#).is_err());
        assert!(faithful(r#""a \"quoted\" word""#).is_err());
    }
}
