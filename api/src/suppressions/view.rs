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

object_view! {
    /// A suppressed address or domain
    #[schema(name = "Suppression")]
    pub struct SuppressionView, pub fn from_suppression(suppression: &Suppression) {
        /// Id (`sup_…`)
        id: SuppressionId = suppression.id,
        /// The address in lower case, as used for comparison; or `@domain.tld` for a whole domain
        email: String = suppression.target.key(),
        /// Reason
        reason: SuppressionReason = suppression.reason,
        /// Source
        source: SuppressionSource = suppression.source,
        /// The email that caused it
        email_id: Option<EmailId> = suppression.email,
        detail: Option<SuppressionDetailView> = suppression.detail.as_ref().map(|detail| SuppressionDetailView {
            smtp_code: detail.smtp_code,
            enhanced_code: detail.enhanced_code,
            diagnostic: detail.diagnostic.clone(),
        }),
        /// Note
        note: Option<String> = suppression.note.clone(),
        /// Expiry; null means never
        expires_at: Option<JsonTimestamp> = suppression.expires_at.map(JsonTimestamp),
        /// Time of creation
        created_at: JsonTimestamp = JsonTimestamp(suppression.created_at),
    }
}

list_response! { pub SuppressionList { suppressions: SuppressionView } as "SuppressionList" }

object_response! { "A suppression", pub SuppressionResponse { suppression: SuppressionView } as "OneSuppression" }
