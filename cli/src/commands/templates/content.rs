//! `TemplateContent`: what a template says, as the API and as files.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::CliError;

pub(super) const SETTINGS_FILE: &str = "template.toml";
pub(super) const HTML_FILE: &str = "body.html";
pub(super) const MJML_FILE: &str = "body.mjml";
pub(super) const TEXT_FILE: &str = "body.txt";

/// The content of `template.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplateSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    reply_to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preheader: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unsubscribe_enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    variables: Vec<DeclaredVariable>,
}

/// A variable that a template declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredVariable {
    key: String,
    #[serde(default = "string_type", rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "is_false")]
    required: bool,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    fallback_value: Value,
}

fn string_type() -> String {
    "string".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    })
}

/// Settings and bodies of a template.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TemplateContent {
    pub(super) settings: TemplateSettings,
    /// `None` if the body is written in MJML: the server compiles it.
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mjml: Option<String>,
}

impl TemplateContent {
    pub(super) fn from_api(template: &Value) -> Result<Self, CliError> {
        let names =
            ["name", "category", "from", "reply_to", "subject", "preheader", "unsubscribe_enabled", "variables"];
        let fields = names.iter().map(|name| ((*name).to_owned(), template[*name].clone()));
        let fields = Value::Object(fields.filter(|(_, value)| !value.is_null()).collect());
        let settings = serde_json::from_value(fields).map_err(|error| {
            CliError::Failed(format!("the server's template {} cannot be written: {error}", template["id"]))
        })?;
        let body = |name: &str| template[name].as_str().map(str::to_owned);
        let mjml = body("mjml");
        let html = if mjml.is_some() { None } else { body("html") };
        Ok(Self { settings, html, text: body("text"), mjml })
    }

    /// Adds the values that the server gives to settings that are not set, so that contents can be compared.
    pub(super) fn with_defaults(mut self, alias: &str) -> Self {
        let settings = &mut self.settings;
        settings.name.get_or_insert_with(|| alias.to_owned());
        let category = settings.category.get_or_insert_with(|| "transactional".to_owned());
        let is_required = category.as_str() != "transactional";
        settings.unsubscribe_enabled.get_or_insert(is_required);
        self
    }

    /// All fields as the API takes them; null removes a field.
    pub(super) fn to_request(&self) -> Value {
        let settings = &self.settings;
        let mut request = json!({
            "from": settings.from,
            "reply_to": settings.reply_to,
            "subject": settings.subject,
            "preheader": settings.preheader,
            "variables": settings.variables,
            "text": self.text,
        });
        // A server takes one of them; null for `html` removes both.
        match &self.mjml {
            Some(mjml) => request["mjml"] = json!(mjml),
            None => request["html"] = json!(self.html),
        }
        if settings.reply_to.is_empty() {
            request["reply_to"] = Value::Null;
        }
        // These have no empty value.
        for (name, value) in [
            ("name", json!(settings.name)),
            ("category", json!(settings.category)),
            ("unsubscribe_enabled", json!(settings.unsubscribe_enabled)),
        ] {
            if !value.is_null() {
                request[name] = value;
            }
        }
        request
    }

    /// SHA-256 of the content.
    pub(super) fn digest(&self) -> String {
        let digest = Sha256::digest(json!(self).to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Names and contents of the files.
    pub(super) fn files(&self) -> Result<[(&'static str, Option<String>); 4], CliError> {
        let settings = toml::to_string(&self.settings)
            .map_err(|error| CliError::Failed(format!("a setting cannot be written as TOML: {error}")))?;
        Ok([
            (SETTINGS_FILE, Some(settings)),
            (HTML_FILE, self.html.clone()),
            (MJML_FILE, self.mjml.clone()),
            (TEXT_FILE, self.text.clone()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_survive_files() {
        let template = json!({
            "id": "tpl_1", "name": "Welcome", "category": "product", "unsubscribe_enabled": true, "from": null,
            "reply_to": ["a@example.com"], "subject": "Hi {{name}}", "preheader": null, "html": "<p>\n", "text": null,
            "variables": [
                {"key": "name", "type": "string", "required": false, "fallback_value": null},
                {"key": "n", "type": "number", "required": true, "fallback_value": 1.5},
            ],
        });
        let content = TemplateContent::from_api(&template).unwrap();
        let [(_, settings), (_, html), (_, mjml), (_, text)] = content.files().unwrap();
        let read = TemplateContent { settings: toml::from_str(&settings.unwrap()).unwrap(), html, text, mjml };
        assert_eq!(read, content);
        assert_eq!(read.digest(), content.digest());
        let request = read.to_request();
        assert_eq!((&request["from"], &request["text"]), (&Value::Null, &Value::Null));
        assert_eq!(request["variables"][1]["fallback_value"], 1.5);
        let one: TemplateSettings = toml::from_str("reply_to = 'b@example.com'").unwrap();
        assert_eq!(one.reply_to, ["b@example.com"]);
        assert!(toml::from_str::<TemplateSettings>("subjct = 'x'").is_err());
    }

    #[test]
    fn mjml_takes_the_place_of_html() {
        let template = json!({"id": "tpl_1", "html": "<p>compiled", "mjml": "<mjml>", "text": null});
        let content = TemplateContent::from_api(&template).unwrap();
        assert_eq!((content.html.as_deref(), content.mjml.as_deref()), (None, Some("<mjml>")));
        let request = content.to_request();
        assert_eq!((&request["mjml"], request.get("html")), (&json!("<mjml>"), None));
        assert_ne!(content.digest(), TemplateContent { mjml: None, ..content.clone() }.digest());
    }
}
