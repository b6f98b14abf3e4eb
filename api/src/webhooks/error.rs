//! Problem responses of webhook endpoints and deliveries.

use events::webhooks::WebhookError;
use queue::intake::submit_error::SubmitError;

use crate::prelude::*;

pub(crate) fn webhook_not_found() -> Problem {
    Problem::not_found("webhook")
}

pub(crate) fn endpoint_disabled() -> Problem {
    wrong_status("disabled", "The webhook endpoint is disabled: enable it first")
}

fn wrong_status(status: &str, text: &str) -> Problem {
    Problem::new(ErrorCode::VALIDATION_ERROR, text).with_details(json!({"status": status}))
}

impl IntoProblem for WebhookError {
    fn into_problem(self, state: &AppState) -> Problem {
        let conflict = |text: &str| Problem::new(ErrorCode::CONFLICT, text);
        match self {
            Self::Unknown => webhook_not_found(),
            Self::UnknownDelivery => Problem::not_found("delivery"),
            Self::TooMany => conflict("The account has the maximum number of webhook endpoints: delete one"),
            Self::Disabled => endpoint_disabled(),
            Self::Pending => wrong_status("pending", "The delivery is still pending and needs no replay"),
            Self::Changed => conflict("The webhook endpoint was changed concurrently; get it and try again"),
            Self::Unavailable => Problem::unavailable("Webhook deliveries cannot be queued at the moment", 1),
            Self::Seal => Problem::internal(self),
            Self::Read(error) => error.into(),
            Self::Commit(error) => SubmitError::from(error).into_problem(state),
        }
    }
}
