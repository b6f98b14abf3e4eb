//! JSON views of suppressions.

use message::reply::Enhanced;
use model::suppression::{Suppression, SuppressionReason, SuppressionSource};

use crate::prelude::*;

/// The reply of the remote host
#[derive(Debug, Serialize, ToSchema)]
pub struct SuppressionDetailView {
    /// SMTP reply code
    smtp_code: Option<u16>,
    /// Enhanced status code (RFC 3463)
    #[schema(as = Option<String>)]
    enhanced_code: Option<Enhanced>,
    /// Text of the reply
    diagnostic: String,
}

/// A suppressed address or domain
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Suppression")]
pub struct SuppressionView {
    /// Id (`sup_…`)
    id: SuppressionId,
    /// The address in lower case, as used for comparison; or `@domain.tld` for a whole domain
    email: String,
    /// Reason
    reason: SuppressionReason,
    /// Source
    source: SuppressionSource,
    /// The email that caused it
    email_id: Option<EmailId>,
    detail: Option<SuppressionDetailView>,
    /// Note
    note: Option<String>,
    /// Expiry; null means never
    expires_at: Option<JsonTimestamp>,
    /// Time of creation
    created_at: JsonTimestamp,
}

impl SuppressionView {
    pub fn from_suppression(suppression: &Suppression) -> Self {
        Self {
            id: suppression.id,
            email: suppression.target.key(),
            reason: suppression.reason,
            source: suppression.source,
            email_id: suppression.email,
            detail: suppression.detail.as_ref().map(|detail| SuppressionDetailView {
                smtp_code: detail.smtp_code,
                enhanced_code: detail.enhanced_code,
                diagnostic: detail.diagnostic.clone(),
            }),
            note: suppression.note.clone(),
            expires_at: suppression.expires_at.map(JsonTimestamp),
            created_at: JsonTimestamp(suppression.created_at),
        }
    }
}

list_response! { pub SuppressionList { suppressions: SuppressionView } as "SuppressionList" }

object_response! { "A suppression", pub SuppressionResponse { suppression: SuppressionView } as "OneSuppression" }

impl SuppressionResponse {
    pub fn from_suppression(suppression: &Suppression) -> Self {
        Self { suppression: SuppressionView::from_suppression(suppression) }
    }
}
