//! One order: from names to a certificate (RFC 8555 7.4).
//!
//! ```text
//! account ─► order ─► a proof for each name, for all nodes to show ─► ready ─► finalize ─► chain and key
//! ```

use instant_acme::{
    Account, AuthorizationStatus, Error, Identifier, NewAccount, NewOrder, Order, OrderStatus, Problem,
};

use super::challenge::{ChallengeMethod, ChallengeResponse, ChallengeResponses};
use super::{AcmeError, CertificateRenewer};

/// The authority has lost our account, or is another one by now (RFC 8555 6.7).
const ACCOUNT_GONE: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

impl CertificateRenewer {
    /// Gets a certificate: its chain and its key, PEM.
    pub(super) async fn order_certificate(&self) -> Result<(String, String), AcmeError> {
        let account = self.load_or_create_account().await?;
        let mut order = match self.create_order(&account).await {
            Err(Error::Api(problem)) if problem.r#type.as_deref() == Some(ACCOUNT_GONE) => {
                self.store.delete_account().await?;
                return Err(Error::Api(problem).into());
            }
            ordered => ordered?,
        };
        let finished = self.complete_order(&mut order).await;
        if let Err(error) = self.publish_responses(ChallengeResponses::new()).await {
            tracing::debug!(%error, "proofs stay in the store");
        }
        finished
    }

    /// Orders, in the place of the certificate that is shown, if the authority follows what replaces what
    /// (RFC 9773 5): an order that does is outside of its limits.
    async fn create_order(&self, account: &Account) -> Result<Order, Error> {
        let identifiers: Vec<Identifier> =
            self.settings.names.iter().map(|name| Identifier::Dns(name.clone())).collect();
        if let Some(old) = self.certificate_id() {
            match account.new_order(&NewOrder::new(&identifiers).replaces(old)).await {
                Ok(order) => return Ok(order),
                // It does not, or has replaced that one, or never made it.
                Err(error) => tracing::debug!(%error, "ordered without saying what it replaces"),
            }
        }
        account.new_order(&NewOrder::new(&identifiers)).await
    }

    /// Proves these names here, and by all other nodes, instead of those that were proved.
    async fn publish_responses(&self, proofs: ChallengeResponses) -> Result<(), AcmeError> {
        if self.store.is_shared() {
            self.store.store_responses(&proofs).await?;
        }
        self.challenges.set_responses(proofs);
        Ok(())
    }

    /// Our account there, made at the first time. The operator has agreed to the terms by configuring it.
    pub(super) async fn load_or_create_account(&self) -> Result<Account, AcmeError> {
        let builder = || Account::builder_with_http(Box::new(self.client.clone()));
        let contact: Vec<&str> = self.settings.contact.iter().map(String::as_str).collect();
        if let Some(credentials) = self.store.read_account().await? {
            return Ok(builder().from_credentials(credentials).await?);
        }
        let wanted = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let (account, credentials) = builder().create(&wanted, self.settings.directory.clone(), None).await?;
        self.store.store_account(&credentials).await?;
        Ok(account)
    }

    async fn complete_order(&self, order: &mut Order) -> Result<(String, String), AcmeError> {
        // One that is ready already was proved a while ago.
        if order.state().status == OrderStatus::Pending {
            self.answer_challenges(order).await?;
            let otherwise = match order.poll_ready(&self.settings.retry_policy).await {
                Ok(OrderStatus::Invalid) => Some(AcmeError::Invalid),
                Err(Error::Api(problem)) => Some(AcmeError::Authority(Error::Api(problem))),
                polled => polled.map(|_| None)?,
            };
            if let Some(otherwise) = otherwise {
                return Err(self.order_error(order).await?.unwrap_or(otherwise));
            }
        }
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&self.settings.retry_policy).await?;
        Ok((chain, key))
    }

    /// Shows the proofs, and says so.
    async fn answer_challenges(&self, order: &mut Order) -> Result<(), AcmeError> {
        let (mut proving, mut proofs) = (Vec::new(), ChallengeResponses::new());
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let offers =
                |way: &&ChallengeMethod| authorization.challenges.iter().any(|one| one.r#type == way.challenge_type());
            let way = self.settings.challenge_methods.iter().find(offers).copied();
            let way = way.ok_or_else(|| AcmeError::NoChallengeMethod { name: name.clone() })?;
            if let Some(challenge) = authorization.challenge(way.challenge_type()) {
                let key_authorization = challenge.key_authorization().as_str().to_owned();
                proofs.insert(name.clone(), ChallengeResponse { token: challenge.token.clone(), key_authorization });
                proving.push((name, way));
            }
        }
        self.publish_responses(proofs).await?;
        if self.store.is_shared() && proving.iter().any(|(_, way)| *way == ChallengeMethod::TlsAlpn) {
            // The authority may ask any node: each has looked twice by then. (HTTP-01 looks when it is asked.)
            tokio::time::sleep(self.settings.poll_interval * 2 + self.settings.poll_interval / 5).await;
        }
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            let name = authorization.identifier().to_string();
            let Some((_, way)) = proving.iter().find(|(proved, _)| *proved == name) else { continue };
            if let Some(mut challenge) = authorization.challenge(way.challenge_type()) {
                challenge.set_ready().await.map_err(|error| match error {
                    Error::Api(problem) if is_challenge_failure(&problem) => {
                        AcmeError::Refused { name, way: *way, why: problem_text(&problem) }
                    }
                    error => error.into(),
                })?;
            }
        }
        Ok(())
    }

    /// Why an order is invalid: the authority says it of a challenge.
    async fn order_error(&self, order: &mut Order) -> Result<Option<AcmeError>, AcmeError> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            authorization.refresh().await?;
            let name = authorization.identifier().to_string();
            for challenge in &authorization.challenges {
                let way = self.settings.challenge_methods.iter().find(|way| way.challenge_type() == challenge.r#type);
                if let (Some(way), Some(problem)) = (way, &challenge.error) {
                    return Ok(Some(AcmeError::Refused { name, way: *way, why: problem_text(problem) }));
                }
            }
        }
        Ok(None)
    }
}

/// Whether the authority has looked, and not seen what it wanted (RFC 8555 6.7).
fn is_challenge_failure(problem: &Problem) -> bool {
    const KINDS: [&str; 6] = ["caa", "connection", "dns", "incorrectResponse", "tls", "unauthorized"];
    let kind = problem.r#type.as_deref().and_then(|kind| kind.strip_prefix("urn:ietf:params:acme:error:"));
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

fn problem_text(problem: &Problem) -> String {
    problem.detail.clone().unwrap_or_else(|| problem.to_string())
}
