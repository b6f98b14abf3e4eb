//! The policy of MTA-STS (RFC 8461 3.3) of the domains that we take mail in for: so that who sends to them knows that
//! our host speaks TLS, and shows a good certificate.
//!
//! It is asked for at `mta-sts.{domain}`, a name that the domain's owner lets lead here, with a certificate for it (ours,
//! or a proxy's in front).

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::HOST;
use http::uri::Authority;
use mail::address::DomainName;
use mail::domain::SendingDomain;
use mail::mta_sts::{MtaStsMode, format_policy};
use serde_json::{Value, json};

use crate::call::{FromRequest, IntoResponse, Request, RequestSpec};
use crate::operations::{Operation, operation};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::Schemas;

/// What can be fetched.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let about = "The MTA-STS policy of the domain that the host's name says, if we take its mail in";
    vec![
        operation(Method::GET, "/.well-known/mta-sts.txt", "mta_sts_policy")
            .about("domains", about)
            .errors(&[ErrorCode::NOT_FOUND])
            .public(get),
    ]
}

/// Our own policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnMtaStsPolicy {
    /// What it asks for.
    pub mode: MtaStsMode,
    /// The host that takes mail in.
    pub mx: DomainName,
}

/// Whose policy is asked for.
#[derive(Debug)]
pub struct MtaStsPolicyQuery(Option<DomainName>);

impl FromRequest for MtaStsPolicyQuery {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec::default()
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let host = call.headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let name = host.and_then(|host| host.host().to_ascii_lowercase().strip_prefix("mta-sts.")?.parse().ok());
        Ok(Self(name))
    }
}

/// A policy, as a file.
#[derive(Debug)]
pub struct MtaStsPolicyFile(String);

impl IntoResponse for MtaStsPolicyFile {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "RFC 8461 3.2", "examples":
            ["version: STSv1\r\nmode: enforce\r\nmx: mx.example.net\r\nmax_age: 604800\r\n"]})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.0.into())
    }
}

/// `GET /.well-known/mta-sts.txt`.
///
/// # Errors
/// We take no mail in for that domain, or have no policy.
pub async fn get(
    room: Arc<AppState>,
    MtaStsPolicyQuery(domain): MtaStsPolicyQuery,
) -> Result<MtaStsPolicyFile, Problem> {
    let unknown = || Problem::new(ErrorCode::NOT_FOUND, "No policy of MTA-STS at this name");
    let (Some(own), Some(domain)) = (&room.options.mta_sts, domain) else { return Err(unknown()) };
    let facts = room.intake.domains().facts();
    let is_ours = domain == facts.mail_host || domain == facts.return_path_host;
    let takes_in = || async {
        let found = store::domain::find_by_name(room.intake.store(), &domain).await?;
        Ok::<_, store::engine::ReadError>(found.as_ref().is_some_and(SendingDomain::accepts_inbound))
    };
    if is_ours || takes_in().await? { Ok(MtaStsPolicyFile(format_policy(own.mode, &own.mx))) } else { Err(unknown()) }
}
