//! Parsers of the payment processor's JSON: webhooks and API responses of Stripe, or of a server with the same shapes.
//!
//! ```text
//! header, body ─► [signature] ─► [WebhookEvent] ─► [WebhookFact] ─► the ledger keeps the newest state and recomputes
//! responses to GET ─► [ResponsePage] ────────────► [Invoice], [Charge], … : the same parsers
//! ```
//!
//! Only the bytes of a response are held: objects are slices of them, parsed one by one.
//!
//! Input is bytes and time, output typed facts; the module uses neither store nor network. Fields that are not needed
//! are skipped. A needed field that is invalid is a [`JsonReadError`] with its path.
//!
//! # State, not changes
//!
//! Events arrive in any order and repeatedly. So a fact is the state of an object, not a difference:
//! [`Charge::amount_refunded`] is the total so far, a [`ChargeDispute`] has a status, and [`StateVersion`] orders the
//! versions. The ledger keeps the newest version of each object and recomputes from the stored state.
//!
//! # Two shapes
//!
//! Stripe's API version 2025-03-31 (Basil) moved many fields: an invoice's subscription, payments, taxes and line
//! prices. Each parser lists all paths of a field, the older first where both can exist. An id may be a string or the
//! expanded object.

mod charge;
mod checkout;
mod credit_note;
mod customer;
mod event;
mod invoice;
mod json_reader;
mod metadata;
mod refund;
mod response_page;
pub mod signature;
mod state_version;
mod transfer;

pub use charge::{Charge, ChargeDispute};
pub use checkout::Checkout;
pub use credit_note::CreditNote;
pub use customer::{ConnectedAccount, Customer, Subscription, SubscriptionStatus};
pub use event::{WebhookEvent, WebhookFact, synthesize_event};
pub use invoice::{Invoice, InvoicePayment, Payment, invoice_line};
pub use json_reader::{
    AMOUNT_MAX, FieldProblem, JsonReadError, OBJECT_BYTES_MAX, PAGE_BYTES_MAX, PAGE_OBJECTS, ReadContext, StripeObject,
};
pub use metadata::{MetadataKeys, ReferralHint, ReferralMetadata};
pub use refund::{ChargeFigure, Refund, RefundFigure, refunded};
pub use response_page::{ProcessorJson, ResponsePage};
pub use state_version::{ObjectStage, StateVersion};
pub use transfer::{ReversedTransfer, TransferResponseBody};
