//! Webhook endpoints: create, list, change, test, delete; their deliveries and replays
//! (docs/WEBHOOKS.md).

pub mod deliveries;
pub(crate) mod error;
pub mod request;
pub mod test_delivery;
pub mod view;

use message::address::DomainName;
use message::address_pattern::AddressPattern;
use model::quota::Noun;
use model::webhook::{DisabledReason, Webhook};

use self::request::{CreateWebhook, RotateWebhookSecret, UpdateWebhook, WebhookPath};
use self::view::{WebhookList, WebhookResponse, WebhookView, WebhookWithSecretResponse};
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// The operations on webhook endpoints.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("webhooks");
    vec![
        tag.post("/webhooks", "Create a webhook endpoint (its secret is shown once)")
            .errors(&[ErrorCode::NOT_FOUND])
            .storage_cost(&[(Noun::Webhooks, 1)])
            .risk(Risk::Secret)
            .full_key_or_session(("create_webhook", "webhooks.create"), create),
        tag.get("/webhooks", "List webhook endpoints, newest first")
            .full_key_or_session(("list_webhooks", "webhooks.list"), list),
        tag.get("/webhooks/{id}", "Get a webhook endpoint").full_key_or_session(("get_webhook", "webhooks.get"), get),
        tag.patch("/webhooks/{id}", "Update a webhook endpoint")
            .mails_later()
            .full_key_or_session(("update_webhook", "webhooks.update"), update),
        tag.delete("/webhooks/{id}", "Delete a webhook endpoint")
            .full_key_or_session(("delete_webhook", "webhooks.delete"), delete),
        tag.post("/webhooks/{id}/rotate-secret", "Rotate the secret of a webhook endpoint")
            .risk(Risk::Secret)
            .full_key_or_session(("rotate_webhook_secret", "webhooks.rotateSecret"), rotate_secret),
        tag.post("/webhooks/{id}/test", "Send a test event to a webhook endpoint")
            .full_key_or_session(("test_webhook", "webhooks.test"), test_delivery::send_test),
        tag.get("/webhooks/{id}/deliveries", "List deliveries, newest first")
            .full_key_or_session(("list_webhook_deliveries", "webhooks.deliveries.list"), deliveries::list),
        tag.get("/webhooks/{id}/deliveries/{delivery_id}", "Get a delivery with its body and attempts")
            .full_key_or_session(("get_webhook_delivery", "webhooks.deliveries.get"), deliveries::get),
        tag.post("/webhooks/{id}/deliveries/{delivery_id}/replay", "Replay a delivery")
            .full_key_or_session(("replay_webhook_delivery", "webhooks.deliveries.replay"), deliveries::replay),
        tag.post("/webhooks/{id}/replay", "Replay deliveries of a time range")
            .full_key_or_session(("replay_webhook_deliveries", "webhooks.replay"), deliveries::replay_many),
    ]
}

/// Loads the names of these domains; all of them must belong to the account.
async fn find_domains(state: &AppState, tenant: &Tenant, ids: &[DomainId]) -> Result<Vec<(DomainId, DomainName)>> {
    let mut domains = Vec::with_capacity(ids.len());
    for id in ids {
        let found = store::domain::get(&state.services.store, tenant.account().id, *id).await?;
        let domain = found.ok_or_else(|| Problem::not_found("domain"))?;
        domains.push((*id, domain.name));
    }
    Ok(domains)
}

/// Checks that patterns are for the account's own domains; an account receives no mail for others.
async fn check_addresses(state: &AppState, tenant: &Tenant, addresses: &[AddressPattern]) -> Result<()> {
    let mut domains: Vec<&DomainName> = addresses.iter().map(AddressPattern::domain).collect();
    domains.sort_unstable();
    domains.dedup();
    for name in domains {
        let found = store::domain::find_by_name(&state.services.store, name).await?;
        if found.is_none_or(|domain| domain.account != tenant.account().id) {
            let text = format!("`{name}` is not a domain of this account");
            return Err(Problem::field("inbound_addresses", text));
        }
    }
    Ok(())
}

fn check_url(state: &AppState, url: &str) -> Result<()> {
    state.accounts.webhooks.check_webhook_url(url).map_err(|text| Problem::field("url", text))
}

/// `POST /webhooks`.
///
/// # Errors
/// A field is invalid; 409 when there are too many endpoints; the store cannot be written.
pub async fn create(state: State, tenant: Tenant, input: CreateWebhook) -> Result<WebhookWithSecretResponse> {
    let CreateWebhook { url, options: input } = input;
    check_url(&state, &url)?;
    let domains = find_domains(&state, &tenant, &input.domain_ids.unwrap_or_default()).await?;
    let addresses = input.inbound_addresses.unwrap_or_default();
    check_addresses(&state, &tenant, &addresses).await?;
    let now = state.services.clock.now();
    let mut settings = Webhook {
        id: WebhookId::new(now, 0),
        account: tenant.account().id,
        url,
        events: input.events.unwrap_or_default(),
        enabled: true,
        description: input.description.flatten(),
        domains,
        addresses,
        retry: input.retry_policy.unwrap_or_default(),
        secret: model::domain::SealedSecret(String::new()),
        former_secrets: Vec::new(),
        failing_since: None,
        disabled_reason: None,
        created_at: now,
        updated_at: now,
    };
    if input.enabled == Some(false) {
        settings.set_disabled(Some(DisabledReason::Customer));
    }
    let (webhook, secret) = state.accounts.webhooks.create_webhook(settings).await.or_problem(&state)?;
    Ok(WebhookWithSecretResponse { webhook: WebhookView::from_webhook(&webhook), secret })
}

/// `GET /webhooks`.
pub async fn list(state: State, tenant: Tenant, page: PageParameters) -> Result<WebhookList> {
    let before = page.before_id(paging::KIND_WEBHOOK)?.map(WebhookId::from_bytes);
    let mut all = store::webhook::list(&state.services.store, tenant.account().id).await?;
    all.retain(|webhook| before.is_none_or(|before| webhook.id < before));
    all.reverse();
    let next_cursor = page.cut(&mut all, |last| paging::after_id(paging::KIND_WEBHOOK, last.id.to_bytes()));
    let webhooks = all.iter().map(WebhookView::from_webhook).collect();
    Ok(WebhookList::new(webhooks, next_cursor))
}

/// `GET /webhooks/{id}`.
pub async fn get(state: State, tenant: Tenant, WebhookPath(id): WebhookPath) -> Result<WebhookResponse> {
    let found = state.accounts.webhooks.webhook(tenant.account().id, id).await;
    Ok(WebhookResponse { webhook: WebhookView::from_webhook(&found.or_problem(&state)?) })
}

/// `PATCH /webhooks/{id}`.
pub async fn update(
    state: State,
    tenant: Tenant,
    (WebhookPath(id), input): (WebhookPath, UpdateWebhook),
) -> Result<WebhookResponse> {
    let UpdateWebhook { url, options: input } = input;
    if let Some(url) = &url {
        check_url(&state, url)?;
    }
    let domains = match &input.domain_ids {
        Some(ids) => Some(find_domains(&state, &tenant, ids).await?),
        None => None,
    };
    if let Some(addresses) = &input.inbound_addresses {
        check_addresses(&state, &tenant, addresses).await?;
    }
    let changed = state.accounts.webhooks.change_webhook(tenant.account().id, id, |webhook| {
        set_given(&mut webhook.url, &url);
        set_given(&mut webhook.events, &input.events);
        set_given(&mut webhook.description, &input.description);
        set_given(&mut webhook.domains, &domains);
        set_given(&mut webhook.addresses, &input.inbound_addresses);
        webhook.retry = input.retry_policy.unwrap_or(webhook.retry);
        match input.enabled {
            Some(true) if !webhook.enabled => webhook.set_disabled(None),
            Some(false) if webhook.enabled => webhook.set_disabled(Some(DisabledReason::Customer)),
            _ => {}
        }
    });
    Ok(WebhookResponse { webhook: WebhookView::from_webhook(&changed.await.or_problem(&state)?) })
}

/// `DELETE /webhooks/{id}`.
pub async fn delete(state: State, tenant: Tenant, WebhookPath(id): WebhookPath) -> Result<OkResponse> {
    state.accounts.webhooks.delete_webhook(tenant.account().id, id).await.or_problem(&state)?;
    Ok(OkResponse::OK)
}

/// `POST /webhooks/{id}/rotate-secret`.
pub async fn rotate_secret(
    state: State,
    tenant: Tenant,
    (WebhookPath(id), RotateWebhookSecret { grace_hours }): (WebhookPath, RotateWebhookSecret),
) -> Result<WebhookWithSecretResponse> {
    let grace = Duration::from_secs(grace_hours * 3_600);
    let (webhook, secret) =
        state.accounts.webhooks.rotate_webhook_secret(tenant.account().id, id, grace).await.or_problem(&state)?;
    Ok(WebhookWithSecretResponse { webhook: WebhookView::from_webhook(&webhook), secret })
}
