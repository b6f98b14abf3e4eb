//! A parsed send request before its template is rendered.
//!
//! ```text
//! fields ─► SendEmail ─► resolve and render template, inherit its defaults ─► Draft
//! ```
//!
//! Fields of the request take precedence over the template's. The bodies always come from the template,
//! if the request names one.

use std::borrow::Cow;

use message::address::Mailbox;
use message::compose::{Attachment, Composition, CustomHeader};
use model::draft::{Draft, DraftContent, SendOptions, SubmissionEnvelope};
use model::email::{Category, Ingress, Tag};
use model::template::{CompiledTemplate, RenderedTemplate, TemplateUse};
use model::unsubscribe;
use queue::intake::RenderTemplateError;

use super::recipients::RecipientLists;
use crate::prelude::*;
use crate::templates::render_error::render_error_problem;

/// Warning for a custom header that managed unsubscribe replaces.
fn replaced_header_warning(name: &str) -> String {
    format!("`headers.{name}` was replaced by managed unsubscribe; `unsubscribe: false` keeps your own")
}

/// Warning for a token that is not replaced by a link.
const NO_UNSUBSCRIBE_LINK: &str =
    "`{{unsubscribe_url}}` was not replaced because managed unsubscribe is off; set `unsubscribe: true`";

fn unsubscribe_warnings(parts: &Composition, is_managed: bool) -> Vec<String> {
    if is_managed {
        let unsubscribe_headers =
            parts.headers.iter().filter(|header| unsubscribe::is_unsubscribe_header(header.name()));
        return unsubscribe_headers.map(|header| replaced_header_warning(header.name())).collect();
    }
    let mut texts = [Some(&parts.subject), parts.html.as_ref(), parts.text.as_ref()].into_iter().flatten();
    let has_token = texts.any(|text| matches!(unsubscribe::insert_link(text, ""), Cow::Owned(_)));
    has_token.then(|| NO_UNSUBSCRIBE_LINK.to_owned()).into_iter().collect()
}

/// A parsed send request.
#[derive(Debug, Default)]
pub struct SendEmail {
    /// `None` is allowed only with a template.
    pub from: Option<Mailbox>,
    /// The header fields and the envelope recipients.
    pub recipients: RecipientLists,
    pub reply_to: Vec<Mailbox>,
    pub subject: Option<String>,
    pub html: Option<String>,
    pub text: Option<String>,
    pub headers: Vec<CustomHeader>,
    pub attachments: Vec<Attachment>,
    pub tags: Vec<Tag>,
    pub category: Option<Category>,
    pub options: SendOptions,
    /// The template and its variables.
    pub template: Option<TemplateUse>,
}

impl SendEmail {
    /// Renders the template and converts the request to a draft. Deviations from the request are added to `warnings`.
    ///
    /// # Errors
    /// The template does not exist, is not published, cannot be rendered with the variables, or lacks a field that the
    /// request lacks as well.
    pub async fn into_draft(mut self, state: &AppState, tenant: &Tenant, warnings: &mut Vec<String>) -> Result<Draft> {
        if let Some(template_use) = self.template.take() {
            let own_subject = self.subject.is_some();
            let template_result = state.accounts.templates.render(tenant, template_use, own_subject).await;
            let (compiled, rendered) = template_result.map_err(|error| match error {
                RenderTemplateError::NotFound => Problem::not_found("template"),
                RenderTemplateError::Unpublished => {
                    let text = "The template has no published version; publish it with POST /templates/{id}/publish";
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

    /// Converts the request to a draft without rendering a template.
    pub fn into_draft_without_template(self) -> Result<Draft> {
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
