//! The fields `template` and `variables` of a send request.
//!
//! `template` is an alias, an id, or an object `{id|alias, version?, variables?}`. Field names of other providers are
//! accepted as aliases. A text that is neither a valid id nor a valid alias is answered 404 when the template is
//! resolved.

use httpd::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields};
use model::raw_number;
use model::template::render::VARIABLES_BYTES_MAX;
use model::template::{ALIAS_BYTES_MAX, TemplateKey, TemplateRef, TemplateUse};
use schema::Schemas;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

const OBJECT_NAMES: FieldNames = FieldNames {
    known: &[("id", "id"), ("alias", "alias"), ("version", "version"), ("variables", "variables")],
    foreign: &[("Id", "id"), ("Alias", "alias"), ("Version", "version"), ("Variables", "variables")],
};

/// Parses `template` and `variables`. Returns `None` if no template was given or it is invalid.
pub fn read_template(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<TemplateUse> {
    let outer = fields.value("variables").map(|value| (value, "variables"));
    let Some(value) = fields.value("template") else {
        if outer.is_some() && !fields.is_present_or_misnamed("template") {
            notes.errors.add("variables", "requires `template`");
        }
        return None;
    };
    let (reference, inner) = match JsonKind::of_value(value) {
        JsonKind::Text => (parse_template_ref(value, "template", notes), None),
        JsonKind::Object => read_template_object(value, notes),
        _ => {
            notes.errors.add("template", "must be an alias, an id or an object {id or alias, version, variables}");
            (None, None)
        }
    };
    if outer.is_some() && inner.is_some() {
        notes.errors.add("variables", "cannot be given both here and in `template`");
    }
    let variables = match inner.or(outer) {
        Some((value, name)) => parse_variables(value, name, notes)?,
        None => Map::new(),
    };
    reference.map(|reference| TemplateUse { reference, variables: Value::Object(variables) })
}

type VariablesField<'a> = (&'a RawValue, &'static str);

fn read_template_object<'a>(
    value: &'a RawValue,
    notes: &mut FieldDiagnostics,
) -> (Option<TemplateRef>, Option<VariablesField<'a>>) {
    let object = fields::parse_object(value).map_err(|text| notes.errors.add("template", text));
    let Ok(object) = object else { return (None, None) };
    let fields = ObjectFields::from_object(object, &OBJECT_NAMES, "template.", notes);
    let reference = match (fields.value("id"), fields.value("alias")) {
        (Some(id), None) => parse_template_ref(id, "template.id", notes),
        (None, Some(alias)) => parse_template_ref(alias, "template.alias", notes),
        (Some(_), Some(_)) => {
            notes.errors.add("template", "must have either an id or an alias, not both");
            None
        }
        (None, None) => {
            if !fields.is_present_or_misnamed("id") && !fields.is_present_or_misnamed("alias") {
                notes.errors.add("template", "must have an id or an alias");
            }
            None
        }
    };
    let version = fields.value("version").map(parse_version);
    let version = version.transpose().map_err(|text| notes.errors.add("template.version", text));
    let variables = fields.value("variables").map(|value| (value, "template.variables"));
    let reference = match (reference, version) {
        (Some(reference), Ok(version)) => Some(TemplateRef { version, ..reference }),
        _ => None,
    };
    (reference, variables)
}

fn parse_template_ref(value: &RawValue, name: &str, notes: &mut FieldDiagnostics) -> Option<TemplateRef> {
    let text = fields::parse_text(value).and_then(|text| match text.len() {
        0 => Err("is empty".to_owned()),
        1..=ALIAS_BYTES_MAX => Ok(text),
        _ => Err(format!("is longer than {ALIAS_BYTES_MAX} bytes")),
    });
    let text = text.map_err(|error| notes.errors.add(name, error)).ok()?;
    Some(TemplateRef { key: TemplateKey::parse(&text), version: None })
}

/// Parses the number of a version.
///
/// # Errors
/// The value is not a positive number.
pub(crate) fn parse_version(value: &RawValue) -> Result<u32, String> {
    let number = raw_number::parse_integer::<u32>(value.get()).filter(|number| *number > 0);
    number.ok_or_else(|| "must be the number of a version".to_owned())
}

/// Schema of a version's number.
pub(crate) fn version_schema(_: &mut Schemas) -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": u32::MAX})
}

/// Parses template variables: an object whose size is checked before it is built. Numbers keep their digits: 19.90 is
/// rendered as 19.90.
pub(crate) fn parse_variables(
    value: &RawValue,
    name: &str,
    notes: &mut FieldDiagnostics,
) -> Option<Map<String, Value>> {
    let outcome = match JsonKind::of_value(value) {
        // Escapes and whitespace can make the JSON longer than its content.
        JsonKind::Object if value.get().len() > 2 * VARIABLES_BYTES_MAX => {
            Err(format!("are larger than {VARIABLES_BYTES_MAX} bytes"))
        }
        JsonKind::Object => match raw_number::parse(value.get()) {
            Ok(Value::Object(variables)) => Ok(variables),
            _ => Err("cannot be read".to_owned()),
        },
        _ => Err("must be an object".to_owned()),
    };
    outcome.map_err(|text| notes.errors.add(name, text)).ok()
}

/// Schema of `variables`.
pub(crate) fn variables_schema(_: &mut Schemas) -> Value {
    json!({"type": "object", "description": "The template's variables by name"})
}

/// Schema of `template`, without its description.
pub(super) fn template_schema() -> Value {
    let reference = json!({"type": "string", "minLength": 1, "maxLength": ALIAS_BYTES_MAX});
    let version = version_schema(&mut Schemas::default());
    let described = |schema, text| schema::describe(schema, Some(text));
    json!({"oneOf": [
        reference,
        schema::object_with("A template", &[], [
            ("id", described(reference.clone(), "Its id")),
            ("alias", described(reference.clone(), "The template's alias, instead of its id")),
            ("version", described(version, "A version other than the published one")),
            ("variables", variables_schema(&mut Schemas::default())),
        ]),
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Option<TemplateUse>, Vec<String>> {
        let text = body.to_string();
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(
            fields::parse_body(text.as_bytes()).unwrap(),
            &crate::emails::send_fields::FIELDS,
            "",
            &mut notes,
        );
        let found = read_template(&fields, &mut notes);
        if notes.errors.is_empty() {
            return Ok(found);
        }
        let problem = json!(httpd::problem::Problem::from(notes.errors).batch_entry_error());
        Err(problem["details"]["fields"].as_object().unwrap().keys().cloned().collect())
    }

    #[test]
    fn a_template_reference_has_many_forms() {
        let id = "tpl_01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let parse = |name: &str, version| TemplateRef { key: TemplateKey::parse(name), version };
        for (body, reference, variables) in [
            (json!({"template": "Welcome"}), parse("welcome", None), json!({})),
            (json!({"template": id, "variables": {"a": 1}}), parse(id, None), json!({"a": 1})),
            (json!({"template_id": id, "template_data": {"a": 1}}), parse(id, None), json!({"a": 1})),
            (json!({"templateId": "x", "templateData": {}}), parse("x", None), json!({})),
            (json!({"template_alias": "x", "data_variables": {"a": []}}), parse("x", None), json!({"a": []})),
            (json!({"templateAlias": "x", "dataVariables": {}}), parse("x", None), json!({})),
            (json!({"template": "x", "dynamic_template_data": {"a": null}}), parse("x", None), json!({"a": null})),
            (
                json!({"template": {"id": id, "version": 3, "variables": {"a": "b"}}}),
                parse(id, Some(3)),
                json!({"a": "b"}),
            ),
            (json!({"template": {"alias": "x"}, "variables": {"a": "b"}}), parse("x", None), json!({"a": "b"})),
            (json!({"template": "not an alias"}), parse("not an alias", None), json!({})),
        ] {
            assert_eq!(read(&body).unwrap(), Some(TemplateUse { reference, variables }), "{body}");
        }
        assert_eq!(read(&json!({})), Ok(None));
        assert_eq!(read(&json!({"template": null, "variables": null})), Ok(None));
    }

    #[test]
    fn errors_are_reported_by_field() {
        for (body, named) in [
            (json!({"template": ""}), "template"),
            (json!({"template": 5}), "template"),
            (json!({"template": "x".repeat(101)}), "template"),
            (json!({"template": "x", "template_id": "y"}), "template"),
            (json!({"template": {}}), "template"),
            (json!({"template": {"id": "a", "alias": "b"}}), "template"),
            (json!({"template": {"id": 5}}), "template.id"),
            (json!({"template": {"Id": "a"}}), "template.Id"),
            (json!({"template": {"alias": "a", "version": 0}}), "template.version"),
            (json!({"template": {"alias": "a", "version": "1"}}), "template.version"),
            (json!({"template": {"alias": "a", "variables": []}}), "template.variables"),
            (json!({"template": {"alias": "a", "variables": {}}, "variables": {}}), "variables"),
            (json!({"template": "a", "variables": "x"}), "variables"),
            (json!({"template": "a", "variables": {"a": "x".repeat(600_000)}}), "variables"),
            (json!({"variables": {}}), "variables"),
            (json!({"TemplateAlias": "a", "variables": {}}), "TemplateAlias"),
            (json!({"template": "a", "TemplateModel": {}}), "TemplateModel"),
        ] {
            assert_eq!(read(&body).unwrap_err(), [named], "{body}");
        }
    }
}
