//! Status and text of errors that the visitor can correct.

use ::affiliate::error::{AffiliateError, ConflictReason};

use super::texts;
use crate::prelude::*;

/// Status and text of an error that the visitor can correct; other errors become a `Problem`.
pub(super) fn refusal_text(state: &AppState, refusal: AffiliateError) -> Result<(StatusCode, String)> {
    match &refusal {
        AffiliateError::Fields(fields) => {
            // The reason of an error without a field is a whole sentence.
            let message = |(name, reason): &(String, String)| match name.as_str() {
                "" => reason.clone(),
                name => format!("{} {reason}", texts::field_label(name)),
            };
            let messages: Vec<String> = fields.iter().map(message).collect();
            Ok((StatusCode::BAD_REQUEST, messages.join("; ")))
        }
        AffiliateError::Conflict(ConflictReason::PortalLinkExpired) => Ok((StatusCode::GONE, refusal.to_string())),
        AffiliateError::Conflict(_) => Ok((StatusCode::CONFLICT, texts::to_sentence(&refusal.to_string()))),
        // The visitor cannot change the program's plan.
        AffiliateError::Quota(_) => {
            Ok((StatusCode::CONFLICT, "The program does not accept more partners at the moment".to_owned()))
        }
        AffiliateError::Forbidden(_) | AffiliateError::WrongMove(_) => {
            Ok((StatusCode::FORBIDDEN, texts::to_sentence(&refusal.to_string())))
        }
        AffiliateError::NotFound(_) => Ok((StatusCode::NOT_FOUND, texts::to_sentence(&refusal.to_string()))),
        _ => Err(refusal.into_problem(state)),
    }
}
