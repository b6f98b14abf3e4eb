//! A test email of a template.

use super::preview::{render_version, sample_field};
use super::versions::version_choices;
use super::{call, path, read_template, template_page};
use crate::dashboard::prelude::*;

fn test_form(viewer: &str, versions: Vec<(String, String)>, from: &str, sample: &Value) -> Form<'static> {
    let fields = vec![
        Field::new("to", "To", Control::Lines { rows: 2 }).required().value(viewer).help("One address per line."),
        Field::text("from", "From")
            .value(from)
            .placeholder("Acme <hi@example.com>")
            .help("Leave empty for the template's sender."),
        Field::new("version", "Version", Control::Select(versions)).value("draft"),
        Field { name: "variables".into(), ..sample_field("variables", sample) },
    ];
    Form::new("test", "Send the test email", fields)
}

/// The form, and the email that was sent last.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let template = &read_template(context, &call("get_template", context.id())).await?;
    let rendered = render_version(context, &template.id, "draft", &json!({})).await.unwrap_or_default();
    let versions = version_choices(context, template).await?;
    let viewer = context.viewer.map_or("", |viewer| viewer.email.as_str());
    let form = test_form(viewer, versions, "", &rendered.suggested_variables);
    let sent = context.query().get("email");
    let sent = sent.starts_with("msg_").then(|| format!("/dashboard/emails/{}", encode(sent)));
    let body = maud! {
        @if let Some(sent) = &sent { p { a href=(sent) { "Look at the email" } " and what happened to it." } }
        div.card {
            p.help { "A test email is like any other email: it counts towards your plan, and suppressed addresses are \
                refused." }
            (form.within(context))
        }
    };
    let example = json!({"to": viewer, "variables": rendered.suggested_variables});
    let same = call("test_template", &template.id).json(example);
    Ok(template_page(context, template, "Test email", body).same_as(same).into())
}

/// Sends the email.
pub async fn send(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = test_form("", Vec::new(), "", &Value::Null).read(context.form())?;
    if let Some(number) = body["version"].as_str().and_then(|text| text.parse::<u32>().ok()) {
        body["version"] = Value::from(number);
    }
    let id: String = context.read_field("id", &call("test_template", context.id()).json(body)).await?;
    Ok(Outcome::done(format!("{}/test?email={}", path(context.id()), encode(&id)), "tested"))
}
