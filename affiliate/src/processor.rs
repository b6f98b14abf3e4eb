//! What the payment processor tells: Stripe, or anything that speaks in the shapes of its webhooks.
//!
//! ```text
//! header, body ─► [signature] ─► [Event] ─► [Fact] ─► who keeps the newest of each, and computes anew
//! answers to GET ─► [Page] ────────────────► [Invoice], [Charge], … : the same readers
//! ```
//!
//! Of an answer nothing is kept but its bytes: objects are slices of them, and are read one by one.
//!
//! Bytes and time come in, typed facts go out: no store, no network. What is not asked for is passed over; what is
//! asked for and cannot be read is an [`Unreadable`] that names the field.
//!
//! # State, not changes
//!
//! Events come in any order and more than once. So nothing here says "500 less": a fact says how its object stood
//! ([`Charge::amount_refunded`] is all that was refunded so far, a [`ChargeDispute`] has a status), and [`AsOf`] says when.
//! Who keeps facts lets the newest win, object by object, and computes anew from what is kept.
//!
//! # Two shapes
//!
//! Stripe's version of 2025-03-31 (Basil) moved much: an invoice's subscription, its payments, its taxes, its lines'
//! prices. Each reader names the places where a thing may stand, the older ones first where both can be there. An id
//! may be a text or the object itself, at each of them.

mod account;
mod as_of;
mod charge;
mod checkout;
mod credit_note;
mod customer;
mod dispute;
mod event;
mod invoice;
mod marks;
mod page;
mod reading;
mod refund;
pub mod signature;
mod subscription;
mod transfer;

pub use account::ConnectedAccount;
pub use as_of::{ObjectStage, StateVersion};
pub use charge::Charge;
pub use checkout::Checkout;
pub use credit_note::CreditNote;
pub use customer::Customer;
pub use dispute::ChargeDispute;
pub use event::{WebhookEvent, WebhookFact, synthesize_event};
pub use invoice::{Invoice, InvoicePayment, Payment, invoice_line};
pub use marks::{MetadataKeys, ReferralHint, ReferralMetadata};
pub use page::{ProcessorJson, ResponsePage};
pub use reading::{
    AMOUNT_MAX, FieldProblem, JsonReadError, OBJECT_BYTES_MAX, PAGE_BYTES_MAX, PAGE_OBJECTS, ReadContext,
};
pub use refund::{ChargeFigure, Refund, RefundFigure, refunded};
pub use subscription::{Subscription, SubscriptionStatus};
pub use transfer::{ReversedTransfer, TransferResponseBody};
