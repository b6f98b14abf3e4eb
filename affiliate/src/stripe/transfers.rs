//! Transfers at Stripe: requests (`POST /v1/transfers`), and lookups in the processor's list: transfers of a run (`GET /v1/transfers?transfer_group=`), or all to a
//! destination (`?destination=`).
//!
//! The list is read once for all payouts that are looked up, and only their ids are retained. A transfer belongs to a
//! payout by its `metadata.payout_id`, whatever its amount. Only a list that was read to its end proves that a transfer
//! does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use model::affiliate::payout::Payout;
use model::id::{PayoutId, PayoutRunId};
use net::http_client::{HttpGet, HttpPost, HttpResponse, RequestIdempotency, ResponsePermit};
use store::affiliate::program;
use tokio::time::timeout;
use url::form_urlencoded::Serializer;

use crate::offload::offload;
use crate::payouts::transfers::{
    PayoutGateway, StripeTransfer, TransferRequest, TransferResponse, read_response, response_of_error,
};
use crate::processor::{OBJECT_BYTES_MAX, PAGE_BYTES_MAX, ProcessorJson, ResponsePage};
use crate::stripe::client::{StripeClient, StripeProcessor};

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum pages of a run's transfers; beyond that, a missing transfer is not proven.
const PAGES_MAX: usize = 500;
const DESTINATION_PAGES_MAX: usize = 20;
/// Time limit of reading all pages.
const LOOKUP_TIMEOUT: Duration = Duration::from_mins(5);

/// Result of a lookup.
#[derive(Debug, Default)]
pub(super) struct TransferLookup {
    /// Transfer ids by payout.
    created: BTreeMap<PayoutId, String>,
    /// Why a transfer that was not found may exist nevertheless.
    gap: Option<TransferResponse>,
}

impl TransferLookup {
    /// Returns whether the transfer of a payout was created.
    pub(super) fn response_for(&self, payout: PayoutId) -> TransferResponse {
        match (self.created.get(&payout), &self.gap) {
            (Some(transfer), _) => TransferResponse::Created(transfer.clone()),
            (None, Some(response)) => response.clone(),
            (None, None) => TransferResponse::NotFound,
        }
    }

    fn mark_gap(&mut self, reason: &str) {
        self.gap = Some(TransferResponse::NoResponse(reason.to_owned()));
    }

    /// Records the transfers of a page. Returns the cursor of the next page, if there is one.
    fn read(&mut self, body: &Bytes, wanted: &BTreeSet<PayoutId>) -> Option<String> {
        let Ok(page) = ResponsePage::read(body) else {
            self.mark_gap("the processor answered /v1/transfers with a body that is not a list");
            return None;
        };
        for transfer in &page.objects {
            if transfer.is_too_large() {
                self.mark_gap("a transfer of the run exceeds the size limit");
                continue;
            }
            let payout = transfer.text_at("metadata.payout_id").and_then(|id| id.parse().ok());
            match (payout.filter(|id| wanted.contains(id)), transfer.id()) {
                (Some(payout), Some(id)) => {
                    self.created.insert(payout, id.into_owned());
                }
                (Some(_), None) => self.mark_gap("the transfer has no id"),
                (None, _) => {}
            }
        }
        let next = page.next().map(std::borrow::Cow::into_owned);
        if page.has_more && next.is_none() {
            self.mark_gap("the last transfer of a page has no id");
        }
        next
    }
}

/// Parses a page of transfers. Returns them and the cursor of the next page.
fn read_transfers(body: &Bytes) -> Result<(Vec<StripeTransfer>, Option<String>), TransferResponse> {
    let unreadable =
        |reason: &str| TransferResponse::NoResponse(format!("the processor answered /v1/transfers with {reason}"));
    let page = ResponsePage::read(body).map_err(|_| unreadable("a body that is not a list"))?;
    let read = |transfer: &ProcessorJson| {
        let amount = transfer.number_in("amount")?;
        let is_reversed = transfer.flag_in("reversed").unwrap_or(false)
            || transfer.number_in("amount_reversed").is_some_and(|reversed| reversed >= amount);
        Some(StripeTransfer {
            id: transfer.id()?.into_owned(),
            payout: transfer.text_at("metadata.payout_id").and_then(|id| id.parse().ok()),
            amount,
            currency: transfer.text_in("currency")?.to_lowercase(),
            is_reversed,
        })
    };
    let transfers: Option<Vec<StripeTransfer>> = page.objects.iter().map(read).collect();
    let transfers = transfers.ok_or_else(|| unreadable("an unreadable transfer"))?;
    let next = page.next().map(std::borrow::Cow::into_owned);
    if page.has_more && next.is_none() {
        return Err(unreadable("a page that is empty but not the last"));
    }
    Ok((transfers, next))
}

/// Fetches a page of filtered transfers. The permit pays for the bytes: hold it as long as them.
async fn fetch_page(
    client: &StripeClient,
    filter: (&str, &str),
    after: Option<&str>,
) -> Result<(Bytes, ResponsePermit), TransferResponse> {
    let pairs = [Some(filter), Some(("limit", "100")), after.map(|after| ("starting_after", after))];
    let query = Serializer::new(String::new()).extend_pairs(pairs.into_iter().flatten()).finish();
    let mut permit = client.permit();
    let get = HttpGet {
        url: client.url(&format!("/v1/transfers?{query}")),
        headers: client.headers(),
        timeout: TIMEOUT,
        response_bytes_max: PAGE_BYTES_MAX,
    };
    match client.webhooks.fetch_url_with_permit(get, &mut permit).await {
        Ok(HttpResponse { status: 200, is_complete: true, body, .. }) => Ok((body, permit)),
        Ok(HttpResponse { status, .. }) => {
            Err(TransferResponse::NoResponse(format!("the processor answered /v1/transfers with status {status}")))
        }
        Err(error) => Err(response_of_error(&error)),
    }
}

/// Looks up which of these payouts of a run have a transfer.
async fn look_up_run(client: &StripeClient, run: PayoutRunId, wanted: BTreeSet<PayoutId>) -> TransferLookup {
    let mut lookup = TransferLookup::default();
    if timeout(LOOKUP_TIMEOUT, read_pages(client, run, wanted, &mut lookup)).await.is_err() {
        lookup.mark_gap("the processor took too long to list the transfers of the run");
    }
    lookup
}

async fn read_pages(client: &StripeClient, run: PayoutRunId, wanted: BTreeSet<PayoutId>, lookup: &mut TransferLookup) {
    let (run, mut after) = (run.to_string(), None::<String>);
    for _ in 0..PAGES_MAX {
        let (body, _permit) = match fetch_page(client, ("transfer_group", &run), after.as_deref()).await {
            Ok(page) => page,
            Err(response) => {
                lookup.gap = Some(response);
                return;
            }
        };
        let (mut read, wanted) = (std::mem::take(lookup), wanted.clone());
        (*lookup, after) = offload(body.len(), move || {
            let next = read.read(&body, &wanted);
            (read, next)
        })
        .await;
        if after.is_none() {
            return;
        }
    }
    lookup.mark_gap(&format!("the run has more transfers than {PAGES_MAX} pages"));
}

/// Lists all transfers to a payout's destination.
async fn list_transfers_to(client: &StripeClient, payout: &Payout) -> Result<Vec<StripeTransfer>, TransferResponse> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    for _ in 0..DESTINATION_PAGES_MAX {
        let (body, _permit) = fetch_page(client, ("destination", &payout.destination), after.as_deref()).await?;
        let (transfers, next) = offload(body.len(), move || read_transfers(&body)).await?;
        all.extend(transfers);
        after = next;
        if after.is_none() {
            return Ok(all);
        }
    }
    Err(TransferResponse::NoResponse(format!(
        "there are more transfers than {DESTINATION_PAGES_MAX} pages to its destination"
    )))
}

impl StripeProcessor {
    /// Returns the client for a payout's transfer. Fails without an API key, and if the transfer was first requested
    /// from another processor account, which may have created it.
    async fn transfer_client_for(&self, order: &TransferRequest) -> Result<StripeClient, TransferResponse> {
        let found = program::get(&self.context.store, order.payout.account).await;
        let found = found.map_err(|error| TransferResponse::NotSent(error.to_string()))?;
        let connection = found.and_then(|program| {
            let client = self.client_of(&program)?;
            Some((program.processor?.account_id, client))
        });
        let none = || TransferResponse::NotSent("no API key of the payment processor is set".to_owned());
        let (account, processor) = connection.ok_or_else(none)?;
        let first = &order.payout.asking.of;
        if first.is_some() && *first != account {
            let reason = "the transfer was requested from another processor account, which has not answered";
            return Err(TransferResponse::NotSent(reason.to_owned()));
        }
        Ok(processor)
    }
}

impl PayoutGateway for StripeProcessor {
    fn transfer<'a>(&'a self, order: &'a TransferRequest) -> BoxFuture<'a, TransferResponse> {
        Box::pin(async move {
            let client = match self.transfer_client_for(order).await {
                Ok(client) => client,
                Err(response) => return response,
            };
            let mut headers = client.headers();
            headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
            headers.push(("idempotency-key", order.key.clone()));
            let post = HttpPost {
                url: client.url("/v1/transfers"),
                headers,
                body: order.request_body().into(),
                timeout: TIMEOUT,
                idempotency: RequestIdempotency::Idempotent,
            };
            match client.webhooks.post_url(post, OBJECT_BYTES_MAX).await {
                Ok(HttpResponse { status, body, .. }) => read_response(status, &body),
                Err(error) => response_of_error(&error),
            }
        })
    }

    fn look_up<'a>(&'a self, orders: &'a [TransferRequest]) -> BoxFuture<'a, Vec<TransferResponse>> {
        Box::pin(async move {
            let mut clients = Vec::new();
            for order in orders {
                clients.push(self.transfer_client_for(order).await);
            }
            // All orders belong to one run, and so to one program.
            let lookup = match (clients.iter().find_map(|client| client.as_ref().ok()), orders.first()) {
                (Some(client), Some(order)) => {
                    let wanted = orders.iter().map(|order| order.payout.id).collect();
                    look_up_run(client, order.payout.run, wanted).await
                }
                _ => TransferLookup::default(),
            };
            let response = |(order, client): (&TransferRequest, Result<StripeClient, TransferResponse>)| {
                client.map_or_else(|response| response, |_| lookup.response_for(order.payout.id))
            };
            orders.iter().zip(clients).map(response).collect()
        })
    }

    fn list_transfers_to_destination<'a>(
        &'a self,
        order: &'a TransferRequest,
    ) -> BoxFuture<'a, Result<Vec<StripeTransfer>, TransferResponse>> {
        Box::pin(async move { list_transfers_to(&self.transfer_client_for(order).await?, &order.payout).await })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn transfers_are_read_with_their_reversals() {
        let id = PayoutId::new(Timestamp::UNIX_EPOCH, 1);
        let body = format!(
            r#"{{"object":"list","has_more":true,"data":[
                {{"id":"tr_1","amount":2000,"currency":"USD","amount_reversed":2000,"metadata":{{"payout_id":"{id}"}}}},
                {{"id":"tr_2","amount":5,"currency":"usd","reversed":false,"metadata":{{}}}}]}}"#
        );
        let (transfers, next) = read_transfers(&Bytes::from(body)).unwrap();
        let [first, second] = transfers.try_into().unwrap();
        assert_eq!(
            (first.payout, first.amount, first.currency.as_str(), first.is_reversed),
            (Some(id), 2_000, "usd", true)
        );
        assert_eq!((second.payout, second.is_reversed, next.as_deref()), (None, false, Some("tr_2")));
        assert!(read_transfers(&Bytes::from_static(br#"{"has_more":false,"data":[{"id":"tr_1"}]}"#)).is_err());
    }

    #[test]
    fn only_a_complete_list_proves_that_a_transfer_is_absent() {
        let [first, second] = [1, 2].map(|n| PayoutId::new(Timestamp::UNIX_EPOCH, n));
        let read = |list: &str, has_more: bool| {
            let mut lookup = TransferLookup::default();
            let body = Bytes::from(format!(r#"{{"object":"list","data":[{list}],"has_more":{has_more}}}"#));
            let next = lookup.read(&body, &BTreeSet::from([first, second]));
            (lookup.response_for(first), matches!(lookup.response_for(second), TransferResponse::NotFound), next)
        };
        let created = |id: &str| TransferResponse::Created(id.to_owned());
        let transfer = format!(r#"{{"id":"tr_1","metadata":{{"payout_id":"{first}"}}}}"#);
        assert_eq!(read(&transfer, false), (created("tr_1"), true, None));
        assert_eq!(read(&transfer, true), (created("tr_1"), true, Some("tr_1".to_owned())));
        let large = format!(r#"{{"id":"tr_0","description":"{}"}}"#, "x".repeat(1 << 17));
        assert_eq!(read(&format!("{large},{transfer}"), false), (created("tr_1"), false, None));
        let (response, is_absent, _) = read(r#"{"id":"tr_9","metadata":null}"#, false);
        assert!(response == TransferResponse::NotFound && is_absent);
        let (response, _, next) = read(r#"{"metadata":{}}"#, true);
        assert!(matches!(response, TransferResponse::NoResponse(_)) && next.is_none(), "{response:?}");
    }
}
