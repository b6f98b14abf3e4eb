//! Billing webhook: the operator's Stripe account reports which customers have a payment method on file.
//!
//! This is the operator's own processor, of which accounts are customers. It is unrelated to the payment processor that
//! an account connects to its affiliate program. Events that do not concern payment methods are acknowledged and
//! ignored.

use ::affiliate::processor::signature::{self, HEADER};
use accounts::billing::BillingService;
use model::billing::{BillingCustomer, BillingUpdate, PROCESSOR_ID_BYTES_MAX};
use serde::Deserialize;
use serde_json::Map;

use crate::affiliate::processor::EventAcknowledgement;
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

const EVENT_BYTES_MAX: usize = 1 << 20;

pub fn operations() -> Vec<Operation> {
    vec![
        OperationTag::new("account")
            .post("/billing/stripe", "Receive an event from the operator's Stripe account")
            .errors(&[ErrorCode::NOT_FOUND])
            .public("hear_billing", receive_event),
    ]
}

/// `POST /billing/stripe`: the raw body and its signature.
pub struct SignedBillingEvent {
    signature: String,
    body: Bytes,
}

impl FromRequest for SignedBillingEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(EVENT_BYTES_MAX);
    const MEDIA: Media = Media::Signed;
    const BODY: Option<BodySchema> =
        Some(|schemas| schemas.component("ProcessorEventBody", |_| schema::processor_event()));

    fn parameters() -> Vec<Value> {
        let description = "`t=…,v1=…`: the payment processor's signature of the time and the body";
        vec![schema::header_parameter(HEADER, description)]
    }

    fn read(call: &Request) -> Result<Self> {
        let value = call.headers.get(HEADER).and_then(|value| value.to_str().ok());
        Ok(Self { signature: value.unwrap_or_default().to_owned(), body: call.body.clone() })
    }
}

/// The fields of a Stripe event that matter here.
#[derive(Deserialize)]
struct StripeEvent {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    created: i64,
    #[serde(default)]
    data: StripeData,
}

#[derive(Deserialize, Default)]
struct StripeData {
    #[serde(default)]
    object: Value,
    #[serde(default)]
    previous_attributes: Value,
}

/// Reads an id that is given as a string or as an expanded object.
fn object_id(object: &Value, field: &str) -> Option<String> {
    let found = object.get(field)?;
    let id = found.as_str().or_else(|| found.get("id")?.as_str())?;
    (1..=PROCESSOR_ID_BYTES_MAX).contains(&id.len()).then(|| id.to_owned())
}

impl StripeEvent {
    /// The customer and its change; `None` if the event does not concern payment methods.
    fn payment_method_change(&self) -> Option<(String, BillingUpdate)> {
        let StripeData { object, previous_attributes } = &self.data;
        let text = |field: &str| object.get(field).and_then(Value::as_str).map(str::to_owned);
        match self.r#type.as_str() {
            kind @ ("customer.created" | "customer.updated") => {
                let method = object.get("invoice_settings").and_then(|s| object_id(s, "default_payment_method"));
                let metadata = object.get("metadata").and_then(|m| m.get("account_id"));
                let customer = BillingCustomer {
                    at: Timestamp::from_second(self.created).ok()?,
                    is_change: kind == "customer.updated",
                    reference: metadata.and_then(|id| id.as_str()?.parse().ok()),
                    email: text("email").filter(|email| email.len() <= PROCESSOR_ID_BYTES_MAX),
                };
                Some((object_id(object, "id")?, BillingUpdate::Customer(customer, method)))
            }
            "customer.deleted" => Some((object_id(object, "id")?, BillingUpdate::CustomerDeleted)),
            "payment_method.attached" => {
                Some((object_id(object, "customer")?, BillingUpdate::MethodAttached(object_id(object, "id")?)))
            }
            // A detached payment method names its former customer only in `previous_attributes`.
            "payment_method.detached" => Some((
                object_id(previous_attributes, "customer")?,
                BillingUpdate::MethodDetached(object_id(object, "id")?),
            )),
            "setup_intent.succeeded" => Some((
                object_id(object, "customer")?,
                BillingUpdate::MethodAttached(object_id(object, "payment_method")?),
            )),
            "checkout.session.completed" => {
                let account = text("client_reference_id")?.parse().ok()?;
                let at = Timestamp::from_second(self.created).ok()?;
                Some((object_id(object, "customer")?, BillingUpdate::Checkout(at, account)))
            }
            _ => None,
        }
    }
}

/// `POST /billing/stripe`. Stripe resends events that are not answered with 200.
///
/// # Errors
/// No signing secret is configured; the signature or the event is invalid; the store cannot be written.
pub async fn receive_event(state: State, input: SignedBillingEvent) -> Result<EventAcknowledgement> {
    let secrets = &state.options.billing_secrets;
    if secrets.is_empty() {
        return Err(Problem::not_found("Stripe billing endpoint"));
    }
    let now = state.services.clock.now();
    signature::verify(&input.signature, &input.body, secrets, now)
        .map_err(|error| Problem::field(HEADER, error.to_string()))?;
    let event = serde_json::from_slice::<Map<String, Value>>(&input.body)
        .and_then(|object| serde_json::from_value::<StripeEvent>(Value::Object(object)))
        .map_err(|error| Problem::field("body", format!("is not a valid event: {error}")))?;
    let Some((customer, update)) = event.payment_method_change() else {
        return Ok(EventAcknowledgement::ignored(format!("`{}` does not concern payment methods", event.r#type)));
    };
    let billing = BillingService::new(state.services.store.clone(), Arc::clone(&state.accounts.senders));
    match billing.apply_customer_state(&customer, &update).await {
        Ok(Some(_)) => Ok(EventAcknowledgement::processed()),
        Ok(None) => Ok(EventAcknowledgement::ignored(
            "no account matches this customer yet: `client_reference_id`, `metadata.account_id` and the email address \
             are unknown"
                .to_owned(),
        )),
        Err(error) => Err(Problem::outage(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change_of(kind: &str, object: &Value, before: &Value) -> Option<(String, BillingUpdate)> {
        let event = json!({
            "type": kind, "created": 10, "data": {"object": object, "previous_attributes": before},
        });
        serde_json::from_value::<StripeEvent>(event).unwrap().payment_method_change()
    }

    #[test]
    fn ids_are_read_from_strings_and_expanded_objects() {
        let cus = |update| Some(("cus_1".to_owned(), update));
        let card = || "pm_1".to_owned();
        let none = json!(null);
        for customer in [json!("cus_1"), json!({"id": "cus_1", "object": "customer"})] {
            let object = json!({"id": "pm_1", "customer": customer});
            assert_eq!(
                change_of("payment_method.attached", &object, &none),
                cus(BillingUpdate::MethodAttached(card()))
            );
            let (object, before) = (json!({"id": "pm_1", "customer": null}), json!({"customer": customer}));
            assert_eq!(
                change_of("payment_method.detached", &object, &before),
                cus(BillingUpdate::MethodDetached(card()))
            );
            let object = json!({"customer": customer, "payment_method": "pm_1"});
            assert_eq!(change_of("setup_intent.succeeded", &object, &none), cus(BillingUpdate::MethodAttached(card())));
        }
        let settings = json!({"default_payment_method": "pm_1"});
        let object = json!({"id": "cus_1", "email": "a@b.example", "invoice_settings": settings});
        let customer = BillingCustomer {
            at: Timestamp::from_second(10).unwrap(),
            is_change: true,
            reference: None,
            email: Some("a@b.example".to_owned()),
        };
        let expected = BillingUpdate::Customer(customer, Some(card()));
        assert_eq!(change_of("customer.updated", &object, &none), cus(expected));
        assert_eq!(change_of("customer.deleted", &json!({"id": "cus_1"}), &none), cus(BillingUpdate::CustomerDeleted));
    }

    #[test]
    fn irrelevant_events_are_ignored() {
        let none = json!(null);
        for (kind, object) in [
            ("invoice.paid", json!({"customer": "cus_1"})),
            ("payment_method.attached", json!({"id": "pm_1"})),
            ("payment_method.attached", json!({"id": "pm_1", "customer": ""})),
            ("payment_method.detached", json!({"id": "pm_1", "customer": null})),
            ("checkout.session.completed", json!({"customer": "cus_1", "client_reference_id": "somebody"})),
            ("customer.created", json!("cus_1")),
            ("", none.clone()),
        ] {
            assert_eq!(change_of(kind, &object, &none), None, "{kind}");
        }
    }
}
