//! Problem responses of webhook endpoints and deliveries.

use events::webhooks::WebhookError;

use crate::prelude::*;
use crate::submit_problem;

pub(crate) fn webhook_not_found() -> Problem {
    Problem::not_found("webhook")
}

pub(crate) fn endpoint_disabled() -> Problem {
    wrong_status("disabled", "The webhook endpoint is disabled: enable it first")
}

fn wrong_status(status: &str, text: &str) -> Problem {
    Problem::new(ErrorCode::VALIDATION_ERROR, text).with_details(json!({"status": status}))
}

pub(crate) fn webhook_error_problem(error: WebhookError, state: &AppState) -> Problem {
    let conflict = |text: &str| Problem::new(ErrorCode::CONFLICT, text);
    match error {
        WebhookError::Unknown => webhook_not_found(),
        WebhookError::UnknownDelivery => Problem::not_found("delivery"),
        WebhookError::TooMany => conflict("The account has the maximum number of webhook endpoints: delete one"),
        WebhookError::Disabled => endpoint_disabled(),
        WebhookError::Pending => wrong_status("pending", "The delivery is still pending and needs no replay"),
        WebhookError::Changed => conflict("The webhook endpoint was changed concurrently; get it and try again"),
        WebhookError::Unavailable => Problem::unavailable("Webhook deliveries cannot be queued at the moment", 1),
        WebhookError::Seal => Problem::internal(error),
        WebhookError::Read(error) => error.into(),
        WebhookError::Commit(error) => submit_problem::from_refusal(error.into(), state.upgrade_url()),
    }
}
