//! Webhook event: an envelope with an object.
//!
//! Parsing has two steps. The envelope shows whether the event concerns the program (mode, account, already processed)
//! and gives the id for the list of failed events. Only then is the object parsed.

use jiff::Timestamp;
use model::affiliate::program::ProcessorMode;

use super::charge::{Charge, ChargeDispute};
use super::checkout::Checkout;
use super::credit_note::CreditNote;
use super::customer::{ConnectedAccount, Customer, Subscription};
use super::invoice::{Invoice, InvoicePayment};
use super::json_reader::{
    FieldProblem, JsonReadError, JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject, body_error, json,
};
use super::metadata::MetadataKeys;
use super::refund::Refund;
use super::state_version::StateVersion;
use super::transfer::ReversedTransfer;

/// Wraps a fetched object as the body of an event with the given time.
pub fn synthesize_event(object: &str, id: &str, kind: &str, at: Timestamp, mode: ProcessorMode) -> String {
    let quoted = serde_json::Value::from;
    format!(
        r#"{{"id":{},"object":"event","type":{},"created":{},"livemode":{},"data":{{"object":{object}}}}}"#,
        quoted(id),
        quoted(kind),
        at.as_second(),
        mode == ProcessorMode::Live
    )
}

/// An event whose object is not parsed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookEvent {
    /// The processor's id; equal for all deliveries of the event.
    pub id: String,
    /// E.g. `invoice.paid`.
    pub kind: String,
    /// The processor's time, in whole seconds.
    pub created: Timestamp,
    /// Live or test mode; `None` if absent.
    pub livemode: Option<bool>,
    /// The connected account of the event; `None` for the endpoint's own account.
    pub account: Option<String>,
    /// JSON of the object; `None` once it was dropped.
    object: Option<Box<str>>,
}

/// Content of an event, by kind of object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookFact {
    /// `checkout.session.completed`, `.async_payment_succeeded`
    CheckoutCompleted(Box<Checkout>),
    /// `customer.created`, `.updated`
    Customer(Customer),
    /// `customer.subscription.created`, `.updated`, `.deleted`
    Subscription(Subscription),
    /// `invoice.paid`, `.payment_succeeded`
    InvoicePaid(Box<Invoice>),
    /// `invoice_payment.paid`
    InvoicePayment(InvoicePayment),
    /// `charge.refunded`; `charge.succeeded` and `.updated` if they carry an exclusion flag, a refund or a dispute
    Charge(Box<Charge>),
    /// `refund.created`, `.updated`, `.failed`, `charge.refund.updated`
    Refund(Refund),
    /// `credit_note.created`, `.updated`, `.voided`
    CreditNote(CreditNote),
    /// `charge.dispute.created`, `.updated`, `.closed`, `.funds_withdrawn`, `.funds_reinstated`: an update may turn an
    /// inquiry into a dispute
    Dispute(ChargeDispute),
    /// `transfer.reversed`
    TransferReversed(ReversedTransfer),
    /// `account.updated`
    AccountUpdated(ConnectedAccount),
    /// Any other type; it has no effect.
    Other(String),
}

impl WebhookEvent {
    /// Parses the body of a webhook, or an event of a [`super::ResponsePage`]. The caller verifies the signature
    /// ([`super::signature`]) and bounds the size.
    ///
    /// # Errors
    /// The body is not JSON, has a reserved field name, or lacks id, type or time.
    pub fn read(body: &[u8]) -> Result<Self> {
        // The body is stored if it fails, and may later be parsed into a tree.
        if model::json::has_reserved_name(body) {
            return Err(body_error(FieldProblem::ReservedName));
        }
        let event = ProcessorJsonObject::parse(json(body)?, "")?;
        Ok(Self {
            id: event.required_id("id")?,
            kind: event.required_id("type")?,
            created: event.required("created", event.time("created")?)?,
            livemode: event.flag("livemode")?,
            account: event.id("account")?,
            object: event.find("data.object").map(Into::into),
        })
    }

    /// Length of the object's JSON.
    pub fn object_bytes(&self) -> usize {
        self.object.as_ref().map_or(0, |object| object.len())
    }

    /// Drops the object's JSON after it was parsed.
    pub fn without_object(self) -> Self {
        Self { object: None, ..self }
    }

    fn parse<T: StripeObject>(&self, reading: &ReadContext<'_>) -> Result<T> {
        let missing = || JsonReadError { field: "data.object".to_owned(), problem: FieldProblem::Missing };
        let object = self.object.as_deref().ok_or_else(missing)?;
        T::from_json(&ProcessorJsonObject::parse(object, "data.object")?, reading)
    }

    /// Parses the object.
    ///
    /// # Errors
    /// The object's type is used and a needed field is missing or invalid.
    pub fn read_fact(&self, keys: &MetadataKeys) -> Result<WebhookFact> {
        let reading = &ReadContext { keys, as_of: StateVersion::event(&self.kind, self.created) };
        Ok(match self.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                WebhookFact::CheckoutCompleted(Box::new(self.parse(reading)?))
            }
            "customer.created" | "customer.updated" => WebhookFact::Customer(self.parse(reading)?),
            "customer.subscription.created" | "customer.subscription.updated" | "customer.subscription.deleted" => {
                WebhookFact::Subscription(self.parse(reading)?)
            }
            "invoice.paid" | "invoice.payment_succeeded" => WebhookFact::InvoicePaid(Box::new(self.parse(reading)?)),
            "invoice_payment.paid" => WebhookFact::InvoicePayment(self.parse(reading)?),
            "charge.refunded" => WebhookFact::Charge(Box::new(self.parse(reading)?)),
            "charge.succeeded" | "charge.updated" => {
                let charge: Charge = self.parse(reading)?;
                // Every payment has such an event; one without an effect needs no stored state.
                if charge.has_no_effect() {
                    return Ok(WebhookFact::Other(self.kind.clone()));
                }
                WebhookFact::Charge(Box::new(charge))
            }
            "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
                WebhookFact::Refund(self.parse(reading)?)
            }
            "credit_note.created" | "credit_note.updated" | "credit_note.voided" => {
                WebhookFact::CreditNote(self.parse(reading)?)
            }
            "charge.dispute.created"
            | "charge.dispute.updated"
            | "charge.dispute.closed"
            | "charge.dispute.funds_withdrawn"
            | "charge.dispute.funds_reinstated" => WebhookFact::Dispute(self.parse(reading)?),
            "transfer.reversed" => WebhookFact::TransferReversed(self.parse(reading)?),
            "account.updated" => WebhookFact::AccountUpdated(self.parse(reading)?),
            other => WebhookFact::Other(other.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_the_guide_is_used() {
        let guide = include_str!("../../../docs/AFFILIATE.md");
        let (_, section) = guide.split_once("## Events of the payment processor").unwrap();
        let (list, _) = section.split_once("Each event's signature").unwrap();
        for kind in list.split('`').skip(1).step_by(2).filter(|word| word.contains('.')) {
            let body = format!(r#"{{"id":"evt_1","type":"{kind}","created":1,"data":{{"object":{{}}}}}}"#);
            let fact = WebhookEvent::read(body.as_bytes()).unwrap().read_fact(&MetadataKeys::default());
            assert!(!matches!(fact, Ok(WebhookFact::Other(_))), "{kind}");
        }
    }
}
