//! Templates of other services as drafts of ours.
//!
//! - Resend: `GET /templates/{id}` (`alias`, `name`, `subject`, `from`, `html`, `text`, `variables`)
//! - Postmark: `GET /templates/{id}`, or a folder of its command line (`Alias`, `Name`, `Subject`, `HtmlBody`, `TextBody`)
//! - Amazon SES: `GetEmailTemplate` (`TemplateName`, `TemplateContent`), or `GetTemplate` (`Template` with `SubjectPart`, …)
//! - Mailgun: `GET …/templates/{name}?active=yes` (`template` with `name` and `version.template`)

use http::Method;
use serde_json::{Map, Value, json};

use super::service::{Service, normal_name};
use crate::client::{ApiClient, Call};
use crate::error::CliError;

const ALIAS_CHARS_MAX: usize = 100;

/// Reads a template from a row; `None` if the row is none.
pub(super) fn read(service: Service, fields: &Map<String, Value>) -> Option<Result<Value, String>> {
    let get = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let template = match service {
        Service::Resend if fields.contains_key("html") || get("object") == "template" => json!({
            "alias": get("alias"), "name": get("name"), "subject": get("subject"), "from": get("from"),
            "reply_to": get("replyto"), "html": get("html"), "text": get("text"), "variables": variables(&get("variables")),
        }),
        Service::Postmark if fields.contains_key("htmlbody") || fields.contains_key("templatetype") => json!({
            "alias": get("alias"), "name": get("name"), "subject": get("subject"), "html": get("htmlbody"),
            "text": get("textbody"),
        }),
        Service::Ses if fields.contains_key("templatename") => {
            let content = get("templatecontent");
            json!({
                "name": get("templatename"), "subject": content["Subject"], "html": content["Html"], "text": content["Text"],
            })
        }
        Service::Ses if fields.contains_key("template") => {
            let part = get("template");
            json!({
                "name": part["TemplateName"], "subject": part["SubjectPart"], "html": part["HtmlPart"], "text": part["TextPart"],
            })
        }
        Service::Mailgun if get("template").is_object() => {
            let template = get("template");
            let headers = &template["version"]["headers"];
            json!({
                "name": template["name"], "html": template["version"]["template"], "subject": headers["Subject"],
                "from": headers["From"], "reply_to": headers["Reply-To"],
            })
        }
        _ => return None,
    };
    Some(request_of(template))
}

/// Completes a request: an alias, and no empty fields.
fn request_of(template: Value) -> Result<Value, String> {
    let Value::Object(mut request) = template else { return Err("the template is not an object".to_owned()) };
    request.retain(|_, value| !value.is_null() && value != "" && *value != json!([]));
    let named = request.get("alias").or_else(|| request.get("name")).and_then(Value::as_str).unwrap_or_default();
    let alias: String =
        named.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let alias = alias.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let alias: String = alias.chars().take(ALIAS_CHARS_MAX).collect();
    if alias.is_empty() {
        return Err("the template has no name".to_owned());
    }
    if !request.contains_key("html") && !request.contains_key("text") {
        return Err(format!("the template {alias} has neither an HTML nor a text body"));
    }
    request.entry("name").or_insert_with(|| json!(alias));
    request.insert("alias".to_owned(), json!(alias));
    Ok(Value::Object(request))
}

/// Variables that Resend declares, in our words.
fn variables(declared: &Value) -> Value {
    let one = |variable: &Value| {
        let kind = variable["type"].as_str().map(normal_name);
        let known = ["string", "number", "boolean", "object", "list"];
        let kind = kind.filter(|kind| known.contains(&kind.as_str())).unwrap_or_else(|| "string".to_owned());
        json!({"key": variable["key"], "type": kind, "fallback_value": variable["fallback_value"]})
    };
    declared.as_array().map_or(Value::Null, |list| list.iter().map(one).collect())
}

/// Creates the drafts. A template whose alias or name is taken is left as it is.
pub(super) async fn send(client: &ApiClient, templates: &[Value]) -> Result<Value, CliError> {
    let mut results = Vec::new();
    for template in templates {
        let alias = &template["alias"];
        let answer = client.call(&Call::with_json(Method::POST, "/templates", template)).await;
        results.push(match answer {
            Ok(answer) => json!({"alias": alias, "status": "created", "id": answer.json()?["template"]["id"]}),
            Err(CliError::Api(error)) if error.code == "conflict" => json!({"alias": alias, "status": "exists"}),
            // The markup of the other service has something that ours does not have.
            Err(CliError::Api(error)) if [400, 422].contains(&error.status) => {
                json!({"alias": alias, "status": "failed", "error": error.message})
            }
            Err(error) => return Err(error),
        });
    }
    Ok(Value::Array(results))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().iter().map(|(name, value)| (normal_name(name), value.clone())).collect()
    }

    #[test]
    fn templates_of_services_are_read() {
        let ses = fields(
            json!({"TemplateName": "My Template", "TemplateContent": {"Subject": "S", "Html": "<p>", "Text": ""}}),
        );
        let expected = json!({"alias": "my-template", "name": "My Template", "subject": "S", "html": "<p>"});
        assert_eq!(read(Service::Ses, &ses), Some(Ok(expected)));
        let postmark = fields(
            json!({"Alias": "welcome", "Name": "Welcome", "Subject": "S", "TemplateType": "Standard", "TextBody": "t"}),
        );
        let expected = json!({"alias": "welcome", "name": "Welcome", "subject": "S", "text": "t"});
        assert_eq!(read(Service::Postmark, &postmark), Some(Ok(expected)));
        let empty = fields(json!({"template": {"name": "x", "version": {}}}));
        assert!(read(Service::Mailgun, &empty).unwrap().is_err());
        assert_eq!(read(Service::Mailgun, &fields(json!({"address": "a@b.example"}))), None);
    }
}
