//! Checks what a definition needs of its account before it is activated: at least one step, published templates,
//! senders on verified domains, an SMS provider. All errors are reported at once, by step (`steps[1]`).

use message::address::Mailbox;
use model::automation::definition::{SendEmailStep, StepAction};
use model::automation::{Automation, AutomationDefinition, STARTED_MAX};
use model::event::EventKind;
use model::template::{TemplateKey, TemplateRef};
use store::automation::TriggerRole;
use store::product_event::ProductEventFilter;

use crate::prelude::*;

/// Prefix of the names of the service's own email events.
const EMAIL_EVENT_PREFIX: &str = "email.";
const NO_SMS_PROVIDER: &str = "no SMS provider is configured (`[sms]`)";

/// Checks that an SMS provider is configured if the definition has SMS steps.
///
/// # Errors
/// No SMS provider is configured.
pub fn check_text_messages(state: &AppState, definition: &AutomationDefinition) -> Result<()> {
    if state.accounts.automations.engine.has_sms_provider() || !definition.has_sms() {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    for (n, step) in definition.steps.iter().enumerate() {
        if matches!(step.action, StepAction::Sms(_)) {
            errors.add(&format!("steps[{n}]"), NO_SMS_PROVIDER);
        }
    }
    Err(errors.into())
}

/// Checks that the events of a definition can occur. Of the service's own events, only those about an email trigger
/// automations. An unknown name with the prefix `email.` is probably a typo, unless the product has sent such an event.
///
/// # Errors
/// An event is unknown; the store cannot be read.
pub async fn check_events(state: &AppState, tenant: &Tenant, definition: &AutomationDefinition) -> Result<()> {
    let mut named = vec![("trigger.event".to_owned(), &definition.trigger.event)];
    let cancelling = definition.trigger.cancel_on_events.iter().enumerate();
    named.extend(cancelling.map(|(n, event)| (format!("trigger.cancel_on_events[{n}]"), event)));
    named.extend(definition.steps.iter().enumerate().filter_map(|(n, step)| match &step.action {
        StepAction::WaitForEvent(wait) => Some((format!("steps[{n}].event"), &wait.event)),
        _ => None,
    }));
    let mut errors = FieldErrors::default();
    for (field, event) in named {
        if let Some(message) = event_error(state, tenant, event).await? {
            errors.add(&field, message);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
}

/// Returns why an event never triggers automations; `None` if it can.
async fn event_error(state: &AppState, tenant: &Tenant, event: &str) -> Result<Option<String>> {
    let trigger_names = || {
        let trigger_names = EventKind::ALL.iter().copied().filter(|kind| kind.can_trigger_automations());
        trigger_names.map(EventKind::name).collect::<Vec<_>>().join(", ")
    };
    match EventKind::from_name_ignoring_case(event) {
        Some(kind) if !kind.can_trigger_automations() => {
            return Ok(Some(format!("cannot trigger automations; these events can: {}", trigger_names())));
        }
        Some(kind) if kind.name() != event => {
            return Ok(Some(format!("must be written `{}`", kind.name())));
        }
        Some(_) => return Ok(None),
        None => {}
    }
    let is_about_emails =
        event.get(..EMAIL_EVENT_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(EMAIL_EVENT_PREFIX));
    if !is_about_emails {
        return Ok(None);
    }
    let filter = ProductEventFilter { name: Some(event.to_owned()), ..ProductEventFilter::default() };
    let sent = store::product_event::list(&state.services.store, tenant.account().id, &filter, 1).await?;
    Ok(sent.events.is_empty().then(|| {
        format!(
            "is unknown: it is not an event of the service ({}), and your product has not sent it yet",
            trigger_names()
        )
    }))
}

/// Checks that a definition can be activated.
///
/// # Errors
/// The missing requirements by field.
pub async fn check_definition(
    state: &AppState,
    tenant: &Tenant,
    automation: &Automation,
    definition: &AutomationDefinition,
) -> Result<()> {
    let mut errors = FieldErrors::default();
    if definition.steps.is_empty() {
        errors.add("steps", "must have at least one step");
    }
    for (n, step) in definition.steps.iter().enumerate() {
        let missing = match &step.action {
            StepAction::SendEmail(email) => email_error(state, tenant, email).await?,
            StepAction::Sms(_) if !state.accounts.automations.engine.has_sms_provider() => {
                Some(NO_SMS_PROVIDER.to_owned())
            }
            _ => None,
        };
        if let Some(text) = missing {
            errors.add(&format!("steps[{n}]"), text);
        }
    }
    let event = &definition.trigger.event;
    let triggered = store::automation::list_triggered(&state.services.store, tenant.account().id, event).await?;
    let others = triggered.iter().filter(|(role, id)| *role == TriggerRole::Starts && *id != automation.id).count();
    if others >= STARTED_MAX {
        errors.add("trigger.event", format!("already starts {STARTED_MAX} automations, which is the maximum"));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
}

async fn email_error(state: &AppState, tenant: &Tenant, email: &SendEmailStep) -> Result<Option<String>> {
    let mut author = None;
    if let Some(named) = &email.template {
        let reference = TemplateRef { key: TemplateKey::parse(&named.name), version: named.version };
        let (store, account) = (&state.services.store, tenant.account().id);
        let found = state.accounts.templates.cache.resolve(store, account, &reference).await?;
        let Some(template) = found else {
            return Ok(Some(format!("template `{}` does not exist or has no published version", named.name)));
        };
        if email.subject.is_none() && !template.has_subject() {
            return Ok(Some("`subject` is required: the template has none".to_owned()));
        }
        author = template.from().cloned();
    }
    let author = match &email.from {
        // A template expression: the sender is authorized when the email is sent.
        Some(text) if text.contains("{{") => return Ok(None),
        Some(text) => match text.trim().parse::<Mailbox>() {
            Ok(author) => author,
            Err(error) => return Ok(Some(format!("`from`: {error}"))),
        },
        None => match author {
            Some(author) => author,
            None => return Ok(Some("`from` is required: neither the step nor its template has one".to_owned())),
        },
    };
    let refused = state.accounts.intake.authorize_sender(tenant, &author.address).await.err();
    match refused {
        Some(refusal) if refusal.is_transient() => Err(refusal.into_problem(state)),
        refused => Ok(refused.map(|refusal| format!("`from`: {refusal}"))),
    }
}
