//! Evaluates DMARC (RFC 9989): finds the policy of the author's domain, and checks alignment.
//!
//! ```text
//! author ─► DNS tree walk (at most 8 names, in parallel) ─► policy, organizational domain ─► alignment ─► result
//! ```
//!
//! A name with two DMARC records is treated as having none (RFC 9989 4.10, RFC 7489 6.6.3). Invalid tags of a record
//! are ignored (RFC 9989 4.7).

use futures_util::future::join_all;
use hickory_resolver::proto::rr::RecordType;
use message::address::DomainName;
use message::dmarc::DmarcPolicy;
use message::received::AuthResult;

use crate::resolver::{Resolver, parse_wire_name, txt_strings};

/// Maximum names queried in a tree walk (RFC 9989 4.10).
const STEPS_MAX: usize = 8;

/// A DNS lookup failed temporarily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DmarcUnavailable;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct DmarcRecord {
    policy: Option<DmarcPolicy>,
    subdomain_policy: Option<DmarcPolicy>,
    missing: Option<DmarcPolicy>,
    strict_dkim: bool,
    strict_spf: bool,
    /// The `psd=` tag: whether the name is a public suffix, below which domains are registered.
    is_public_suffix: Option<bool>,
    is_test: bool,
    wants_reports: bool,
}

/// The records of a tree walk, the longest name first.
struct DnsTreeWalk(Vec<(DomainName, DmarcRecord)>);

/// A domain that SPF or DKIM authenticates, or may authenticate after a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthenticatedIdentifier {
    pub(super) domain: DomainName,
    /// True if the result is a pass; false if a DNS lookup failed temporarily.
    pub(super) is_verified: bool,
}

/// Returns the DMARC result and the policy for an author's domain. `spf` is the identifier of the reverse path, `dkim`
/// those of the signatures.
pub(super) async fn evaluate(
    resolver: &Resolver,
    author: &DomainName,
    spf: Option<AuthenticatedIdentifier>,
    dkim: &[AuthenticatedIdentifier],
) -> Result<(AuthResult, DmarcPolicy), DmarcUnavailable> {
    let walk = DnsTreeWalk::fetch(resolver, author).await?;
    let organisation = walk.organizational_domain(author);
    let own = walk.0.iter().find(|(name, _)| name == author);
    let of_organisation = || walk.0.iter().find(|(name, _)| *name == organisation).or(walk.0.last());
    let Some((name, record)) = own.or_else(of_organisation) else {
        return Ok((AuthResult::None, DmarcPolicy::None));
    };
    let Some(policy) = record.policy_for(name == author, resolver, author).await? else {
        return Ok((AuthResult::None, DmarcPolicy::None));
    };
    let mut unknown = false;
    let spf = spf.iter().map(|proof| (proof, record.strict_spf));
    for (proof, strict) in spf.chain(dkim.iter().map(|proof| (proof, record.strict_dkim))) {
        match is_aligned(resolver, &proof.domain, author, &organisation, strict).await {
            Ok(true) if proof.is_verified => return Ok((AuthResult::Pass, policy)),
            Ok(true) | Err(DmarcUnavailable) => unknown = true,
            Ok(false) => {}
        }
    }
    Ok((if unknown { AuthResult::TempError } else { AuthResult::Fail }, policy))
}

/// RFC 9989 4.10.2: the domains are equal, or in relaxed mode have the same organizational domain.
async fn is_aligned(
    resolver: &Resolver,
    domain: &DomainName,
    author: &DomainName,
    organisation: &DomainName,
    strict: bool,
) -> Result<bool, DmarcUnavailable> {
    if domain == author {
        return Ok(true);
    }
    if strict || !domain.is_within(organisation) {
        return Ok(false);
    }
    Ok(DnsTreeWalk::fetch(resolver, domain).await?.organizational_domain(domain) == *organisation)
}

impl DnsTreeWalk {
    async fn fetch(resolver: &Resolver, domain: &DomainName) -> Result<Self, DmarcUnavailable> {
        let lookups = walk_names(domain).into_iter().map(|name| async {
            let found = fetch_record(resolver, &name).await;
            (name, found)
        });
        let mut walk = Vec::new();
        for (name, found) in join_all(lookups).await {
            let Some(record) = found? else { continue };
            let is_last = record.is_public_suffix.is_some();
            walk.push((name, record));
            if is_last {
                break;
            }
        }
        Ok(Self(walk))
    }

    /// The organizational domain of `start` (RFC 9989 4.10.2).
    fn organizational_domain(&self, start: &DomainName) -> DomainName {
        for (name, record) in &self.0 {
            match record.is_public_suffix {
                Some(false) => return name.clone(),
                Some(true) if name != start => return child_towards(name, start),
                _ => {}
            }
        }
        self.0.last().map_or_else(|| start.clone(), |(name, _)| name.clone())
    }
}

/// The names of a tree walk: the name itself and its ancestors; for a long name only the last seven of them.
fn walk_names(domain: &DomainName) -> Vec<DomainName> {
    let parents = std::iter::successors(domain.parent(), DomainName::parent);
    let mut parents: Vec<DomainName> = parents.collect();
    let skipped = parents.len().saturating_sub(STEPS_MAX - 1);
    let mut steps = vec![domain.clone()];
    steps.extend(parents.drain(skipped..));
    steps
}

/// The name one label below `ancestor`, in the direction of `start`.
fn child_towards(ancestor: &DomainName, start: &DomainName) -> DomainName {
    let walk = std::iter::successors(Some(start.clone()), DomainName::parent);
    walk.take_while(|name| name != ancestor).last().unwrap_or_else(|| start.clone())
}

/// Fetches the DMARC record of a name, if it has exactly one.
async fn fetch_record(resolver: &Resolver, domain: &DomainName) -> Result<Option<DmarcRecord>, DmarcUnavailable> {
    // If the name is too long for the label, there is no record.
    let Some(name) = parse_wire_name(&format!("_dmarc.{domain}")) else { return Ok(None) };
    let found = resolver.records(&name, RecordType::TXT).await.map_err(|_| DmarcUnavailable)?;
    let mut records = txt_strings(found.as_deref()).filter_map(|text| DmarcRecord::parse(&text));
    Ok(records.next().filter(|_| records.next().is_none()))
}

impl DmarcRecord {
    /// Parses a text; `None` if it is not a DMARC record, which begins with `v=DMARC1`.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(|part| part.split_once('=').unwrap_or((part, "")));
        let (first, version) = parts.next()?;
        if first.trim() != "v" || version.trim() != "DMARC1" {
            return None;
        }
        let mut record = Self::default();
        for (name, value) in parts {
            let value = value.trim();
            let is_value = |word: &str| value.eq_ignore_ascii_case(word);
            match name.trim().to_ascii_lowercase().as_str() {
                "p" => record.policy = parse_policy(value),
                "sp" => record.subdomain_policy = parse_policy(value),
                "np" => record.missing = parse_policy(value),
                "adkim" => record.strict_dkim = is_value("s"),
                "aspf" => record.strict_spf = is_value("s"),
                "psd" if is_value("y") => record.is_public_suffix = Some(true),
                "psd" if is_value("n") => record.is_public_suffix = Some(false),
                "t" => record.is_test = is_value("y"),
                "rua" => record.wants_reports = value.to_ascii_lowercase().contains("mailto:"),
                _ => {}
            }
        }
        Some(record)
    }

    /// The policy for an author's domain; `None` if the record has no policy and requests no reports (RFC 9989 4.7).
    async fn policy_for(
        &self,
        is_own_record: bool,
        resolver: &Resolver,
        author: &DomainName,
    ) -> Result<Option<DmarcPolicy>, DmarcUnavailable> {
        let Some(policy) = self.policy.or(self.wants_reports.then_some(DmarcPolicy::None)) else {
            return Ok(None);
        };
        let subdomain_policy = self.subdomain_policy.unwrap_or(policy);
        let missing = self.missing.unwrap_or(subdomain_policy);
        let policy = match is_own_record {
            true => policy,
            false if missing == subdomain_policy => subdomain_policy,
            false if resolver.exists(author).await.map_err(|_| DmarcUnavailable)? => subdomain_policy,
            false => missing,
        };
        Ok(Some(match policy {
            DmarcPolicy::Reject if self.is_test => DmarcPolicy::Quarantine,
            DmarcPolicy::Quarantine if self.is_test => DmarcPolicy::None,
            policy => policy,
        }))
    }
}

fn parse_policy(word: &str) -> Option<DmarcPolicy> {
    DmarcPolicy::from_word(&word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn the_tree_walk_queries_each_parent_once() {
        let texts = |domain: &str| walk_names(&name(domain)).iter().map(DomainName::to_string).collect::<Vec<String>>();
        assert_eq!(texts("a.b.example"), ["a.b.example", "b.example", "example"]);
        let long = texts("a.b.c.d.e.f.g.h.i.example");
        assert_eq!((long.len(), long[1].as_str()), (8, "d.e.f.g.h.i.example"));
        assert_eq!(child_towards(&name("co.example"), &name("a.b.co.example")), name("b.co.example"));
    }

    #[test]
    fn valid_tags_of_a_record_are_read() {
        let record = DmarcRecord::parse("v=DMARC1; p=reject; sp=Quarantine ; aspf=s; adkim=x; pct=no; t=y; x").unwrap();
        assert_eq!(
            (record.policy, record.subdomain_policy),
            (Some(DmarcPolicy::Reject), Some(DmarcPolicy::Quarantine))
        );
        assert!(record.strict_spf && !record.strict_dkim && record.is_test);
        for none in ["", "v=DMARC2; p=none", "p=none; v=DMARC1", "v=dmarc1; p=none", "v=spf1 -all"] {
            assert_eq!(DmarcRecord::parse(none), None, "{none}");
        }
        assert_eq!(DmarcRecord::parse("v=DMARC1; p=perhaps").unwrap().policy, None);
    }
}
