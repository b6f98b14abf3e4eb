//! Templates: drafts with a preview, published versions and their differences, test emails.
//!
//! ```text
//! /templates ─► /templates/{id} (draft) ─► /publish ─► /versions ─► /versions/{number}
//!                     │                                    └──────► /diff
//!                     ├─► /frame (the HTML body in a sandboxed frame)
//!                     ├─► /compiled (the HTML that an MJML source compiles to)
//!                     └─► /settings, /test, /delete
//! ```

pub mod compiled;
pub mod editor;
pub mod list;
pub mod preview;
pub mod settings;
pub mod test_send;
#[cfg(test)]
mod tests;
pub mod versions;

use hypertext::{Buffer, prelude::*};
use serde::Deserialize;
use serde_json::Value;

use super::encode;
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::kit::badge::{Badge, Tone};
use crate::dashboard::page::Page;
use crate::dashboard::table::{FormRow, PageAccess, PageRow};

const SIGNED_IN: PageAccess = PageAccess::SignedIn;

/// The pages of templates.
pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/templates",
        access: SIGNED_IN,
        reads: &["list_templates"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/templates/new",
        access: SIGNED_IN,
        reads: &["create_template"],
        show: |context| Box::pin(async move { Ok(list::show_new(context)) }),
        forms: &[FormRow {
            name: "create",
            operation: "create_template",
            submit: |context| Box::pin(list::create(context)),
        }],
    },
    PageRow {
        path: "/templates/{id}",
        access: SIGNED_IN,
        reads: &["get_template"],
        show: |context| Box::pin(editor::show(context)),
        forms: &[FormRow {
            name: editor::FORM,
            operation: "update_template",
            submit: |context| Box::pin(editor::save(context)),
        }],
    },
    PageRow {
        path: "/templates/{id}/frame",
        access: SIGNED_IN,
        reads: &["preview_template"],
        show: |context| Box::pin(preview::show_frame(context)),
        forms: &[FormRow {
            name: editor::FORM,
            operation: "preview_template",
            submit: |_| Box::pin(async { Err(Failure::preview()) }),
        }],
    },
    PageRow {
        path: "/templates/{id}/compiled",
        access: SIGNED_IN,
        reads: &["get_template"],
        show: |context| Box::pin(compiled::show(context)),
        forms: &[FormRow {
            name: "convert",
            operation: "update_template",
            submit: |context| Box::pin(compiled::convert(context)),
        }],
    },
    PageRow {
        path: "/templates/{id}/settings",
        access: SIGNED_IN,
        reads: &["get_template"],
        show: |context| Box::pin(settings::show(context)),
        forms: &[
            FormRow {
                name: "settings",
                operation: "update_template",
                submit: |context| Box::pin(settings::save(context)),
            },
            FormRow {
                name: "duplicate",
                operation: "duplicate_template",
                submit: |context| Box::pin(settings::duplicate(context)),
            },
            FormRow {
                name: "status",
                operation: "update_template",
                submit: |context| Box::pin(settings::set_status(context)),
            },
        ],
    },
    PageRow {
        path: "/templates/{id}/delete",
        access: SIGNED_IN,
        reads: &["get_template"],
        show: |context| Box::pin(settings::show_delete(context)),
        forms: &[FormRow {
            name: "delete",
            operation: "delete_template",
            submit: |context| Box::pin(settings::delete(context)),
        }],
    },
    PageRow {
        path: "/templates/{id}/publish",
        access: SIGNED_IN,
        reads: &["get_template"],
        show: |context| Box::pin(versions::show_publish(context)),
        forms: &[FormRow {
            name: "publish",
            operation: "publish_template",
            submit: |context| Box::pin(versions::publish(context)),
        }],
    },
    PageRow {
        path: "/templates/{id}/versions",
        access: SIGNED_IN,
        reads: &["get_template", "list_template_versions"],
        show: |context| Box::pin(versions::show_list(context)),
        forms: &[],
    },
    PageRow {
        path: "/templates/{id}/versions/{number}",
        access: SIGNED_IN,
        reads: &["get_template", "get_template_version"],
        show: |context| Box::pin(versions::show_version(context)),
        forms: &[FormRow {
            name: "roll-back",
            operation: "roll_back_template",
            submit: |context| Box::pin(versions::roll_back(context)),
        }],
    },
    PageRow {
        path: "/templates/{id}/diff",
        access: SIGNED_IN,
        reads: &["get_template", "list_template_versions"],
        show: |context| Box::pin(versions::show_diff(context)),
        forms: &[],
    },
    PageRow {
        path: "/templates/{id}/test",
        access: SIGNED_IN,
        reads: &["get_template", "list_template_versions"],
        show: |context| Box::pin(test_send::show(context)),
        forms: &[FormRow {
            name: "test",
            operation: "test_template",
            submit: |context| Box::pin(test_send::send(context)),
        }],
    },
];

/// A template: its draft, and what is published. Lists leave the bodies out; a version has the content alone.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TemplateDetail {
    pub id: String,
    pub name: String,
    pub alias: Option<String>,
    pub category: String,
    pub unsubscribe_enabled: bool,
    pub from: Option<String>,
    pub reply_to: Vec<String>,
    pub subject: Option<String>,
    pub preheader: Option<String>,
    pub html: Option<String>,
    /// The source of `html`; `None` for a template that is written in HTML.
    pub mjml: Option<String>,
    pub text: Option<String>,
    pub variables: Vec<DeclaredVariable>,
    pub status: String,
    pub draft_version: u32,
    pub published_version: Option<u32>,
    pub has_unpublished_changes: bool,
    pub published_at: Option<String>,
    pub updated_at: Option<String>,
}

/// A declared variable of a template.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeclaredVariable {
    pub key: String,
    pub r#type: String,
    pub required: bool,
    pub fallback_value: Value,
}

#[derive(Debug, Deserialize)]
struct OneTemplate {
    template: TemplateDetail,
}

fn call(operation: &'static str, id: &str) -> Call {
    Call::new(operation).parameter("id_or_alias", id)
}

async fn read_template(context: &Context<'_>, call: &Call) -> Result<TemplateDetail, Failure> {
    Ok(context.read::<OneTemplate>(call).await?.template)
}

fn path(id: &str) -> String {
    format!("/dashboard/templates/{}", encode(id))
}

/// Status, and whether the draft differs from what is published.
struct StatusBadges<'t>(&'t TemplateDetail);

impl Renderable for StatusBadges<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let template = self.0;
        maud! {
            (Badge::of(&template.status))
            @if template.has_unpublished_changes && template.published_version.is_some() {
                " " (Badge::new("Draft differs", Tone::Warning))
            }
        }
        .render_to(buffer);
    }
}

/// The tabs of a template, as links.
struct TemplateTabs<'t> {
    context: &'t Context<'t>,
    id: &'t str,
}

impl Renderable for TemplateTabs<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let base = path(self.id);
        let shown = [
            ("", "Content", "get_template"),
            ("/settings", "Settings", "get_template"),
            ("/versions", "Versions", "list_template_versions"),
            ("/diff", "Compare", "list_template_versions"),
            ("/test", "Test email", "test_template"),
            ("/publish", "Publish", "publish_template"),
        ];
        let current = self.context.request.path.as_str();
        maud! {
            nav.tabs aria-label="Template" {
                @for (suffix, title, operation) in shown {
                    @if self.context.allows(operation) {
                        @let target = format!("{base}{suffix}");
                        a href=(target) aria-current=[current_tab(&target, &base, current)] { (title) }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// `aria-current` of a tab: `page` on its page, `true` on a page below it.
pub fn current_tab(target: &str, base: &str, current: &str) -> Option<&'static str> {
    if target == current {
        return Some("page");
    }
    let is_below = target != base && current.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'));
    is_below.then_some("true")
}

/// A page of a template with its tabs.
fn template_page(context: &Context<'_>, template: &TemplateDetail, title: &str, body: impl Renderable) -> Page {
    let id = template.id.as_str();
    let page = Page::new(title, maud! { (TemplateTabs { context, id }) (body) });
    page.below("/dashboard/templates", "Templates").below(path(id), template.name.clone())
}
