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

use crate::dashboard::prelude::*;
use crate::dashboard::table::preview;

/// The pages of templates.
pub const PAGES: &[PageRow] = page_rows! {
    "/templates" => list::show, reads ["list_templates"];
    "/templates/new" => list::show_new, reads ["create_template"], forms {
        "create" => list::create, calls "create_template";
    };
    "/templates/{id}" => editor::show, reads ["get_template"], forms {
        editor::FORM => editor::save, calls "update_template";
    };
    "/templates/{id}/frame" => preview::show_frame, reads ["preview_template"], forms {
        editor::FORM => preview, calls "preview_template";
    };
    "/templates/{id}/compiled" => compiled::show, reads ["get_template"], forms {
        "convert" => compiled::convert, calls "update_template";
    };
    "/templates/{id}/settings" => settings::show, reads ["get_template"], forms {
        "settings" => settings::save, calls "update_template";
        "duplicate" => settings::duplicate, calls "duplicate_template";
        "status" => settings::set_status, calls "update_template";
    };
    "/templates/{id}/delete" => settings::show_delete, reads ["get_template"], forms {
        "delete" => settings::delete, calls "delete_template";
    };
    "/templates/{id}/publish" => versions::show_publish, reads ["get_template"], forms {
        "publish" => versions::publish, calls "publish_template";
    };
    "/templates/{id}/versions" => versions::show_list, reads ["get_template", "list_template_versions"];
    "/templates/{id}/versions/{number}" => versions::show_version, reads ["get_template", "get_template_version"], forms {
        "roll-back" => versions::roll_back, calls "roll_back_template";
    };
    "/templates/{id}/diff" => versions::show_diff, reads ["get_template", "list_template_versions"];
    "/templates/{id}/test" => test_send::show, reads ["get_template", "list_template_versions"], forms {
        "test" => test_send::send, calls "test_template";
    };
};

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

fn call(operation: &'static str, id: &str) -> Call {
    Call::new(operation).parameter("id_or_alias", id)
}

async fn read_template(context: &Context<'_>, call: &Call) -> Result<TemplateDetail, Failure> {
    context.read_field("template", call).await
}

fn path(id: &str) -> String {
    format!("/dashboard/templates/{}", encode(id))
}

/// Status, and whether the draft differs from what is published.
fn status_badges(template: &TemplateDetail) -> impl Renderable {
    maud! {
        (Badge::of(&template.status))
        @if template.has_unpublished_changes && template.published_version.is_some() {
            " " (Badge::new("Draft differs", Tone::Warning))
        }
    }
}

/// The tabs of a template, as links.
fn template_tabs(context: &Context<'_>, id: &str) -> impl Renderable {
    let base = path(id);
    let shown = [
        ("", "Content", "get_template"),
        ("/settings", "Settings", "get_template"),
        ("/versions", "Versions", "list_template_versions"),
        ("/diff", "Compare", "list_template_versions"),
        ("/test", "Test email", "test_template"),
        ("/publish", "Publish", "publish_template"),
    ];
    let current = context.request.path.as_str();
    maud! {
        nav.tabs aria-label="Template" {
            @for (suffix, title, operation) in shown {
                @if context.allows(operation) {
                    @let target = format!("{base}{suffix}");
                    a href=(target) aria-current=[current_tab(&target, &base, current)] { (title) }
                }
            }
        }
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
    let page = Page::new(title, maud! { (template_tabs(context, id)) (body) });
    page.below("/dashboard/templates", "Templates").below(path(id), template.name.clone())
}
