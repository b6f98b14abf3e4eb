//! Serves the MTA-STS policy (RFC 8461 3.3) of domains that this service receives mail for. It informs senders that
//! the mail host supports TLS with a valid certificate.
//!
//! The policy is fetched from `mta-sts.{domain}`. The domain's owner points this name to the service, which (or a proxy
//! in front of it) needs a certificate for it.

use http::header::HOST;
use http::uri::Authority;
use httpd::response::{IntoResponse, Response};
use message::address::DomainName;
use message::mta_sts::format_policy;
use model::domain::SendingDomain;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

pub fn operations() -> Vec<Operation> {
    vec![
        OperationTag::new("domains")
            .get("/.well-known/mta-sts.txt", "Get the MTA-STS policy of the domain in the `Host` header")
            .errors(&[ErrorCode::NOT_FOUND])
            .public("mta_sts_policy", get),
    ]
}

/// The domain of the requested policy, from the `Host` header.
#[derive(Debug)]
pub struct MtaStsPolicyQuery(Option<DomainName>);

impl FromRequest for MtaStsPolicyQuery {
    fn read(call: &Request) -> Result<Self> {
        let host = call.headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let name = host.and_then(|host| host.host().to_ascii_lowercase().strip_prefix("mta-sts.")?.parse().ok());
        Ok(Self(name))
    }
}

/// A policy file (RFC 8461 3.2).
#[derive(Debug)]
pub struct MtaStsPolicyFile(String);

impl IntoResponse for MtaStsPolicyFile {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The policy file (RFC 8461 3.2)", "examples":
            ["version: STSv1\r\nmode: enforce\r\nmx: mx.example.net\r\nmax_age: 604800\r\n"]})
    }

    fn into_response(self) -> Result<Response> {
        Ok(Self::with_body(self.0))
    }
}

/// `GET /.well-known/mta-sts.txt`.
///
/// # Errors
/// The service receives no mail for the domain or has no policy.
pub async fn get(state: State, MtaStsPolicyQuery(domain): MtaStsPolicyQuery) -> Result<MtaStsPolicyFile> {
    let unknown = || Problem::new(ErrorCode::NOT_FOUND, "No MTA-STS policy for this host");
    let (Some(policy), Some(domain)) = (&state.options.mta_sts, domain) else { return Err(unknown()) };
    let facts = state.accounts.domains.facts();
    let is_ours = domain == facts.mail_host || domain == facts.return_path_host;
    let receives_mail = || async {
        let found = store::domain::find_by_name(&state.services.store, &domain).await?;
        Ok::<_, store::engine::ReadError>(found.as_ref().is_some_and(SendingDomain::accepts_inbound))
    };
    if is_ours || receives_mail().await? {
        Ok(MtaStsPolicyFile(format_policy(policy.mode, &policy.mx)))
    } else {
        Err(unknown())
    }
}
