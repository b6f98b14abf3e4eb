//! A letter: a send request that was read, before its template is filled in.
//!
//! ```text
//! fields ─► Letter ─► template resolved, rendered, inherited from ─► Draft
//! ```
//!
//! What the request says goes before what the template says; the bodies are the template's alone
//! (completions-email.md 2.3).

use std::borrow::Cow;

use mail::address::Mailbox;
use mail::compose::{Attachment, Composition, CustomHeader};
use mail::draft::{Draft, DraftContent, SendOptions, SubmissionEnvelope};
use mail::email::{Category, Ingress, Tag};
use mail::template::{CompiledTemplate, RenderedTemplate, TemplateUse};
use mail::unsubscribe;
use queue::accept::RenderTemplateError;
use store::access::Tenant;

use super::recipients::RecipientLists;
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::templates::render_error_problem;

/// What is said of a header field of the customer's own in whose place managed unsubscribe puts ours.
fn replaced_header_warning(name: &str) -> String {
    format!("`headers.{name}` was replaced by managed unsubscribe; `unsubscribe: false` keeps your own")
}

/// The warning where the token stands and no link replaces it.
const NO_UNSUBSCRIBE_LINK: &str =
    "`{{unsubscribe_url}}` stays as it is: managed unsubscribe is off; `unsubscribe: true` puts the link in";

fn unsubscribe_warnings(parts: &Composition, is_managed: bool) -> Vec<String> {
    if is_managed {
        let own = parts.headers.iter().filter(|header| unsubscribe::is_unsubscribe_header(header.name()));
        return own.map(|header| replaced_header_warning(header.name())).collect();
    }
    let mut texts = [Some(&parts.subject), parts.html.as_ref(), parts.text.as_ref()].into_iter().flatten();
    let has_token = texts.any(|text| matches!(unsubscribe::insert_link(text, ""), Cow::Owned(_)));
    has_token.then(|| NO_UNSUBSCRIBE_LINK.to_owned()).into_iter().collect()
}

/// A send request that was read.
#[derive(Debug)]
pub struct SendEmail {
    /// The author.
    pub from: Option<Mailbox>,
    /// To whom.
    pub recipients: RecipientLists,
    /// Where answers go.
    pub reply_to: Vec<Mailbox>,
    /// The subject.
    pub subject: Option<String>,
    /// The HTML.
    pub html: Option<String>,
    /// The plain text.
    pub text: Option<String>,
    /// Header fields of the customer's own.
    pub headers: Vec<CustomHeader>,
    /// Files.
    pub attachments: Vec<Attachment>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// What it is for.
    pub category: Option<Category>,
    /// What is asked beyond that.
    pub options: SendOptions,
    /// The template, and what it is filled with.
    pub template: Option<TemplateUse>,
}

impl SendEmail {
    /// Makes a draft of it. What will not be as it was asked is told in `warnings`.
    ///
    /// # Errors
    /// No such template, one that cannot be filled with what was given, or one that leaves out what the
    /// request leaves out.
    pub async fn into_draft(
        mut self,
        room: &AppState,
        tenant: &Tenant,
        warnings: &mut Vec<String>,
    ) -> Result<Draft, Problem> {
        if let Some(wanted) = self.template.take() {
            let own_subject = self.subject.is_some();
            let filled = room.intake.render_template(tenant, wanted, own_subject).await;
            let (compiled, rendered) = filled.map_err(|error| match error {
                RenderTemplateError::NotFound => Problem::not_found("template"),
                RenderTemplateError::Unpublished => {
                    let text = "The template was never published: POST /templates/{id}/publish does it";
                    Problem::new(ErrorCode::NOT_FOUND, text)
                }
                RenderTemplateError::Render(error) => render_error_problem(&error),
                RenderTemplateError::Read(error) => error.into(),
            })?;
            self.inherit_from_template(&compiled, rendered);
        }
        let draft = self.into_draft_without_template()?;
        if let DraftContent::Parts(parts) = &draft.content {
            warnings.extend(unsubscribe_warnings(parts, draft.manages_unsubscribe()));
        }
        Ok(draft)
    }

    fn inherit_from_template(&mut self, template: &CompiledTemplate, rendered: RenderedTemplate) {
        self.from = self.from.take().or_else(|| template.from().cloned());
        if self.reply_to.is_empty() {
            self.reply_to = template.reply_to().to_vec();
        }
        self.subject = self.subject.take().or(rendered.subject);
        (self.html, self.text) = (rendered.html, rendered.text);
        template.apply_defaults(&mut self.category, &mut self.options);
    }

    /// Makes a draft of what there is, without a template.
    ///
    /// # Errors
    /// What is left out.
    pub fn into_draft_without_template(self) -> Result<Draft, Problem> {
        let needed = |name: &str| Problem::field(name, "is required: the template has none");
        let from = self.from.ok_or_else(|| needed("from"))?;
        let subject = self.subject.filter(|subject| !subject.trim().is_empty());
        let parts = Composition {
            from: from.clone(),
            to: self.recipients.to,
            cc: self.recipients.cc,
            bcc: self.recipients.bcc,
            reply_to: self.reply_to,
            subject: subject.ok_or_else(|| needed("subject"))?,
            html: self.html,
            text: self.text,
            headers: self.headers,
            attachments: self.attachments,
        };
        if parts.html.is_none() && parts.text.is_none() {
            return Err(needed("html"));
        }
        Ok(Draft {
            ingress: Ingress::Api,
            from: Some(from),
            envelope: SubmissionEnvelope::default(),
            recipients: self.recipients.envelope,
            content: DraftContent::Parts(Box::new(parts)),
            tags: self.tags,
            category: self.category.unwrap_or_default(),
            options: self.options,
        })
    }
}
