//! One certificate order: from names to a certificate (RFC 8555 7.4).
//!
//! ```text
//! account ─► order ─► a challenge response for each name, served by all nodes ─► ready ─► finalize ─► chain and key
//! ```

use instant_acme::{
    Account, AuthorizationStatus, Error, Identifier, NewAccount, NewOrder, Order, OrderStatus, Problem,
};

use super::challenge::{ChallengeMethod, ChallengeResponse, ChallengeResponses};
use super::{AcmeError, CertificateRenewer};

/// The authority does not have the account: it deleted it, or is another authority (RFC 8555 6.7).
const ACCOUNT_GONE: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

impl CertificateRenewer {
    /// Orders a certificate. Returns its chain and its key as PEM.
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
            tracing::debug!(%error, "challenge responses were not removed from the store");
        }
        finished
    }

    /// Creates the order. It names the active certificate as the one that it replaces, if the authority supports that
    /// (RFC 9773 5): such an order is exempt from rate limits.
    async fn create_order(&self, account: &Account) -> Result<Order, Error> {
        let identifiers: Vec<Identifier> =
            self.settings.names.iter().map(|name| Identifier::Dns(name.clone())).collect();
        if let Some(old) = self.certificate_id() {
            match account.new_order(&NewOrder::new(&identifiers).replaces(old)).await {
                Ok(order) => return Ok(order),
                // Not supported, already replaced, or issued by another authority.
                Err(error) => tracing::debug!(%error, "order without `replaces`: the authority refused it"),
            }
        }
        account.new_order(&NewOrder::new(&identifiers)).await
    }

    /// Replaces the challenge responses that this node, and all nodes that share the store, serve.
    async fn publish_responses(&self, proofs: ChallengeResponses) -> Result<(), AcmeError> {
        if self.store.is_shared() {
            self.store.store_responses(&proofs).await?;
        }
        self.challenges.set_responses(proofs);
        Ok(())
    }

    /// Loads the ACME account, or creates it. By configuring ACME, the operator has agreed to the authority's terms.
    pub(super) async fn load_or_create_account(&self) -> Result<Account, AcmeError> {
        let builder = || Account::builder_with_http(Box::new(self.client.clone()));
        let contact: Vec<&str> = self.settings.contact.iter().map(String::as_str).collect();
        if let Some(credentials) = self.store.read_account().await? {
            return Ok(builder().from_credentials(credentials).await?);
        }
        let new_account = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let (account, credentials) = builder().create(&new_account, self.settings.directory.clone(), None).await?;
        self.store.store_account(&credentials).await?;
        Ok(account)
    }

    async fn complete_order(&self, order: &mut Order) -> Result<(String, String), AcmeError> {
        // A reused order can be ready already.
        if order.state().status == OrderStatus::Pending {
            self.answer_challenges(order).await?;
            let error = match order.poll_ready(&self.settings.retry_policy).await {
                Ok(OrderStatus::Invalid) => Some(AcmeError::Invalid),
                Err(Error::Api(problem)) => Some(AcmeError::Authority(Error::Api(problem))),
                polled => polled.map(|_| None)?,
            };
            if let Some(error) = error {
                return Err(self.order_error(order).await?.unwrap_or(error));
            }
        }
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&self.settings.retry_policy).await?;
        Ok((chain, key))
    }

    /// Publishes the challenge responses, then requests their validation by the authority.
    async fn answer_challenges(&self, order: &mut Order) -> Result<(), AcmeError> {
        let (mut pending, mut responses) = (Vec::new(), ChallengeResponses::new());
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let is_offered = |method: &&ChallengeMethod| {
                authorization.challenges.iter().any(|challenge| challenge.r#type == method.challenge_type())
            };
            let method = self.settings.challenge_methods.iter().find(is_offered).copied();
            let method = method.ok_or_else(|| AcmeError::NoChallengeMethod { name: name.clone() })?;
            if let Some(challenge) = authorization.challenge(method.challenge_type()) {
                let key_authorization = challenge.key_authorization().as_str().to_owned();
                responses.insert(name.clone(), ChallengeResponse { token: challenge.token.clone(), key_authorization });
                pending.push((name, method));
            }
        }
        self.publish_responses(responses).await?;
        if self.store.is_shared() && pending.iter().any(|(_, method)| *method == ChallengeMethod::TlsAlpn) {
            // The authority may connect to any node: wait until each has polled twice. HTTP-01 reads the store on each
            // request.
            tokio::time::sleep(self.settings.poll_interval * 2 + self.settings.poll_interval / 5).await;
        }
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            let name = authorization.identifier().to_string();
            let Some((_, method)) = pending.iter().find(|(pending_name, _)| *pending_name == name) else { continue };
            if let Some(mut challenge) = authorization.challenge(method.challenge_type()) {
                challenge.set_ready().await.map_err(|error| match error {
                    Error::Api(problem) if is_challenge_failure(&problem) => {
                        AcmeError::Refused { name, method: *method, reason: problem_text(&problem) }
                    }
                    error => error.into(),
                })?;
            }
        }
        Ok(())
    }

    /// Finds the challenge error that made an order invalid.
    async fn order_error(&self, order: &mut Order) -> Result<Option<AcmeError>, AcmeError> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            authorization.refresh().await?;
            let name = authorization.identifier().to_string();
            for challenge in &authorization.challenges {
                let method =
                    self.settings.challenge_methods.iter().find(|method| method.challenge_type() == challenge.r#type);
                if let (Some(method), Some(problem)) = (method, &challenge.error) {
                    return Ok(Some(AcmeError::Refused { name, method: *method, reason: problem_text(problem) }));
                }
            }
        }
        Ok(None)
    }
}

/// Returns whether the authority tried to validate the challenge and failed (RFC 8555 6.7).
fn is_challenge_failure(problem: &Problem) -> bool {
    const KINDS: [&str; 6] = ["caa", "connection", "dns", "incorrectResponse", "tls", "unauthorized"];
    let kind = problem.r#type.as_deref().and_then(|kind| kind.strip_prefix("urn:ietf:params:acme:error:"));
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

fn problem_text(problem: &Problem) -> String {
    problem.detail.clone().unwrap_or_else(|| problem.to_string())
}
