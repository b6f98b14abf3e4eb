//! The HTML that an MJML source compiles to, and the change to HTML as the source.

use super::{TemplateDetail, call, path, read_template, template_page};
use crate::dashboard::prelude::*;

fn convert_form(template: &TemplateDetail) -> Form<'static> {
    let confirm = Field::new("confirm", "Remove the MJML source of the draft", Control::Checkbox).ignored();
    let fields = vec![confirm, seen_version::field(&template.draft_version.to_string())];
    Form::new("convert", "Convert to HTML", fields).danger()
}

/// The compiled HTML of the draft.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    if template.mjml.is_none() {
        return Ok(View::SeeOther(path(&template.id)));
    }
    let html = template.html.as_deref().unwrap_or_default();
    let form = convert_form(template);
    let size = file_size(u64::try_from(html.len()).unwrap_or(u64::MAX));
    let body = maud! {
        p { "The draft as saved, compiled: " (size) ". Variables are filled in for each email." }
        pre.wrap tabindex="0" role="group" aria-label="Compiled HTML" { (html) }
        (copy_button(html, "the compiled HTML"))
        @if context.allows("update_template") {
            section.card {
                h2 { "Convert to HTML" }
                p.help {
                    "From then on, you edit this HTML. The draft's MJML source is removed; published versions keep \
                     theirs."
                }
                (form.within(context))
            }
        }
    };
    let same = call("update_template", &template.id).json(json!({"mjml": null}));
    Ok(template_page(context, template, "Compiled HTML", body).same_as(same).into())
}

/// Keeps the compiled HTML and removes the source.
pub async fn convert(context: &Context<'_>) -> Result<Outcome, Failure> {
    if context.form().find("confirm").is_none() {
        return Err(Failure::field("confirm", "Tick this box to convert: the MJML source is removed"));
    }
    let mut body = json!({"mjml": null});
    if let Ok(version) = context.form().get(seen_version::FIELD).parse::<u32>() {
        body["if_version"] = version.into();
    }
    context.act(&call("update_template", context.id()).json(body), path(context.id()), "changed").await
}
