//! Transfer lookup in the processor's list: transfers of a run (`GET /v1/transfers?transfer_group=`), or all to a
//! destination (`?destination=`).
//!
//! The list is read once for all payouts that are looked up, and only their ids are retained. A transfer belongs to a
//! payout by its `metadata.payout_id`, whatever its amount. Only a list that was read to its end proves that a transfer
//! does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use mail::affiliate::payout::Payout;
use mail::id::{AccountId, PayoutId, PayoutRunId};
use queue::client::http::{HttpGet, HttpResponse, ResponsePermit};
use tokio::time::timeout;
use url::form_urlencoded::Serializer;

use super::transfers::{StripeTransfer, TIMEOUT, TransferClient, TransferResponse, response_of_error};
use crate::offload::offload;
use crate::processor::{PAGE_BYTES_MAX, ProcessorJson, ResponsePage};
use crate::service::AffiliateService;

/// Maximum pages of a run's transfers; beyond that, a missing transfer is not proven.
const PAGES_MAX: usize = 500;
/// Maximum pages of the transfers to a destination.
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

/// Returns the path of a page of filtered transfers.
fn list_path(filter_name: &str, filter_value: &str, after: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair(filter_name, filter_value);
    query.append_pair("limit", "100");
    if let Some(after) = after {
        query.append_pair("starting_after", after);
    }
    format!("/v1/transfers?{}", query.finish())
}

impl AffiliateService {
    /// Looks up which of these payouts of a run have a transfer.
    pub(super) async fn look_up_run(
        &self,
        account: AccountId,
        run: PayoutRunId,
        processor: &TransferClient,
        wanted: BTreeSet<PayoutId>,
    ) -> TransferLookup {
        let mut lookup = TransferLookup::default();
        let pages = self.read_pages(account, run, processor, wanted, &mut lookup);
        if timeout(LOOKUP_TIMEOUT, pages).await.is_err() {
            lookup.mark_gap("the processor took too long to list the transfers of the run");
        }
        lookup
    }

    async fn read_pages(
        &self,
        account: AccountId,
        run: PayoutRunId,
        processor: &TransferClient,
        wanted: BTreeSet<PayoutId>,
        lookup: &mut TransferLookup,
    ) {
        let mut after = None::<String>;
        for _ in 0..PAGES_MAX {
            let mut permit = self.intake.webhooks().response_permit(account);
            let path = list_path("transfer_group", &run.to_string(), after.as_deref());
            let body = match self.fetch_page(processor, &path, &mut permit).await {
                Ok(body) => body,
                Err(response) => {
                    lookup.gap = Some(response);
                    return;
                }
            };
            let (mut read, wanted_payouts) = (std::mem::take(lookup), wanted.clone());
            let (read, next) = offload(body.len(), move || {
                let next = read.read(&body, &wanted_payouts);
                (read, next)
            })
            .await;
            *lookup = read;
            match next {
                Some(next) => after = Some(next),
                None => return,
            }
        }
        lookup.mark_gap(&format!("the run has more transfers than {PAGES_MAX} pages"));
    }

    /// Lists all transfers to a payout's destination.
    pub(super) async fn list_transfers_to(
        &self,
        payout: &Payout,
        processor: &TransferClient,
    ) -> Result<Vec<StripeTransfer>, TransferResponse> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        for _ in 0..DESTINATION_PAGES_MAX {
            let mut permit = self.intake.webhooks().response_permit(payout.account);
            let path = list_path("destination", &payout.destination, after.as_deref());
            let body = self.fetch_page(processor, &path, &mut permit).await?;
            let (transfers, next) = offload(body.len(), move || read_transfers(&body)).await?;
            all.extend(transfers);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
        Err(TransferResponse::NoResponse(format!(
            "there are more transfers than {DESTINATION_PAGES_MAX} pages to its destination"
        )))
    }

    async fn fetch_page(
        &self,
        processor: &TransferClient,
        path: &str,
        permit: &mut ResponsePermit,
    ) -> Result<Bytes, TransferResponse> {
        let get = HttpGet {
            url: processor.url(path),
            headers: processor.headers(),
            timeout: TIMEOUT,
            response_bytes_max: PAGE_BYTES_MAX,
        };
        match self.intake.webhooks().fetch_url_with_permit(get, permit).await {
            Ok(HttpResponse { status: 200, is_complete: true, body, .. }) => Ok(body),
            Ok(HttpResponse { status, .. }) => {
                Err(TransferResponse::NoResponse(format!("the processor answered /v1/transfers with status {status}")))
            }
            Err(error) => Err(response_of_error(&error)),
        }
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
