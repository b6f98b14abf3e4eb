//! An event: an envelope, and in it an object that became something.
//!
//! It is read in two steps. The envelope says whether the event is for us at all (its mode, its account, seen before), and
//! names it in the list of those that failed; only then is the object read.

use jiff::Timestamp;
use mail::affiliate::program::ProcessorMode;

use super::account::ConnectedAccount;
use super::as_of::StateVersion;
use super::charge::Charge;
use super::checkout::Checkout;
use super::credit_note::CreditNote;
use super::customer::Customer;
use super::dispute::ChargeDispute;
use super::invoice::{Invoice, InvoicePayment};
use super::marks::MetadataKeys;
use super::reading::{FieldProblem, JsonReadError, ProcessorJsonObject, ReadContext, body_error, json};
use super::refund::Refund;
use super::subscription::Subscription;
use super::transfer::ReversedTransfer;

/// The body of an event that nobody sent: an object as it was asked for, as of that time.
#[must_use]
pub fn synthesize_event(object: &str, (id, kind): (&str, &str), (at, mode): (Timestamp, ProcessorMode)) -> String {
    let quoted = serde_json::Value::from;
    format!(
        r#"{{"id":{},"object":"event","type":{},"created":{},"livemode":{},"data":{{"object":{object}}}}}"#,
        quoted(id),
        quoted(kind),
        at.as_second(),
        mode == ProcessorMode::Live
    )
}

/// An event, its object not read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookEvent {
    /// The processor's id: one event, however often it is sent.
    pub id: String,
    /// Its type: `invoice.paid`.
    pub kind: String,
    /// When it was created, by the processor's clock, to the second.
    pub created: Timestamp,
    /// Whether it is about real money, where that is said.
    pub livemode: Option<bool>,
    /// The connected account that it happened in; none for the endpoint's own.
    pub account: Option<String>,
    /// The text of its object.
    object: Option<Box<str>>,
}

/// What an event tells.
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
    /// `charge.refunded`; `charge.succeeded` and `.updated`, whose flag excludes what it paid
    Charge(Box<Charge>),
    /// `refund.created`, `.updated`, `.failed`, `charge.refund.updated`
    Refund(Refund),
    /// `credit_note.created`, `.updated`, `.voided`
    CreditNote(CreditNote),
    /// `charge.dispute.created`, `.updated`, `.closed`, `.funds_withdrawn`, `.funds_reinstated`: an inquiry becomes a
    /// dispute by an update
    Dispute(ChargeDispute),
    /// `transfer.reversed`
    TransferReversed(ReversedTransfer),
    /// `account.updated`
    AccountUpdated(ConnectedAccount),
    /// Anything else, by its type: nothing follows from it.
    Other(String),
}

impl WebhookEvent {
    /// Reads the body of a webhook, or an event of a [`super::Page`]. Its signature is [`super::signature`]'s, its size the
    /// caller's to bound.
    ///
    /// # Errors
    /// It is no JSON, or no event: without id, type or time.
    pub fn read(body: &[u8]) -> Result<Self, JsonReadError> {
        // It is kept when it fails, and others may make a tree of it.
        if mail::json::has_reserved_name(body) {
            return Err(body_error(FieldProblem::ReservedName));
        }
        let event = ProcessorJsonObject::of(json(body)?, "")?;
        Ok(Self {
            id: event.required_id("id")?,
            kind: event.required_id("type")?,
            created: event.required("created", event.time("created")?)?,
            livemode: event.flag("livemode")?,
            account: event.id("account")?,
            object: event.find("data.object").map(Into::into),
        })
    }

    /// How long the text of its object is.
    #[must_use]
    pub fn object_bytes(&self) -> usize {
        self.object.as_ref().map_or(0, |object| object.len())
    }

    /// The same without its object, which is read.
    #[must_use]
    pub fn without_object(self) -> Self {
        Self { object: None, ..self }
    }

    /// Reads its object.
    ///
    /// # Errors
    /// The object is of a kind that matters and cannot be read.
    pub fn read_fact(&self, keys: &MetadataKeys) -> Result<WebhookFact, JsonReadError> {
        let reading = &ReadContext { keys, as_of: StateVersion::event(&self.kind, self.created) };
        let object = || {
            let missing = || JsonReadError { field: "data.object".to_owned(), problem: FieldProblem::Missing };
            ProcessorJsonObject::of(self.object.as_deref().ok_or_else(missing)?, "data.object")
        };
        Ok(match self.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                WebhookFact::CheckoutCompleted(Box::new(Checkout::of(&object()?, reading)?))
            }
            "customer.created" | "customer.updated" => WebhookFact::Customer(Customer::of(&object()?, reading)?),
            "customer.subscription.created" | "customer.subscription.updated" | "customer.subscription.deleted" => {
                WebhookFact::Subscription(Subscription::of(&object()?, reading)?)
            }
            "invoice.paid" | "invoice.payment_succeeded" => {
                WebhookFact::InvoicePaid(Box::new(Invoice::of(&object()?, reading)?))
            }
            "invoice_payment.paid" => WebhookFact::InvoicePayment(InvoicePayment::of(&object()?, reading)?),
            "charge.refunded" => WebhookFact::Charge(Box::new(Charge::of(&object()?, reading)?)),
            "charge.succeeded" | "charge.updated" => {
                let charge = Charge::of(&object()?, reading)?;
                // One is kept for each payment; those that say nothing new are not.
                if charge.has_no_effect() {
                    return Ok(WebhookFact::Other(self.kind.clone()));
                }
                WebhookFact::Charge(Box::new(charge))
            }
            "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
                WebhookFact::Refund(Refund::of(&object()?, reading)?)
            }
            "credit_note.created" | "credit_note.updated" | "credit_note.voided" => {
                WebhookFact::CreditNote(CreditNote::of(&object()?, reading)?)
            }
            "charge.dispute.created"
            | "charge.dispute.updated"
            | "charge.dispute.closed"
            | "charge.dispute.funds_withdrawn"
            | "charge.dispute.funds_reinstated" => WebhookFact::Dispute(ChargeDispute::of(&object()?, reading)?),
            "transfer.reversed" => WebhookFact::TransferReversed(ReversedTransfer::of(&object()?, reading)?),
            "account.updated" => WebhookFact::AccountUpdated(ConnectedAccount::of(&object()?, reading)?),
            other => WebhookFact::Other(other.to_owned()),
        })
    }
}
