//! Tests of rendering: values, escapes, missing variables, and bounds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};

use super::*;
use crate::template::{TemplateVariable, VariableType};

fn settings(variables: Vec<TemplateVariable>) -> TemplateSettings {
    TemplateSettings {
        category: Category::Transactional,
        unsubscribe_enabled: false,
        from: None,
        reply_to: Vec::new(),
        subject: None,
        preheader: None,
        variables,
    }
}

fn variable(key: &str, required: bool, fallback_value: Value) -> TemplateVariable {
    let fallback_value = Some(fallback_value).filter(|value| !value.is_null());
    TemplateVariable { key: key.to_owned(), r#type: VariableType::String, required, fallback_value }
}

fn html(source: &str, declared: Vec<TemplateVariable>) -> ParsedTemplate {
    let bodies = TemplateBodies { html: Some(source.to_owned()), ..TemplateBodies::default() };
    ParsedTemplate::compile(&settings(declared), &bodies).unwrap()
}

fn filled(source: &str, variables: Value) -> String {
    html(source, Vec::new()).render(&variables).unwrap().html.unwrap()
}

fn missing(source: &str, variables: Value) -> Vec<String> {
    html(source, Vec::new()).render(&variables).unwrap_err().missing
}

#[test]
fn variables_are_replaced_by_values() {
    for (source, variables, wanted) in [
        ("Hi {{a.b}}, {{c}}", json!({"a": {"b": "x"}, "c": 5.5}), "Hi x, 5.5"),
        ("{{#if a}}A{{else if b}}B{{else}}C{{/if}}", json!({"b": true}), "B"),
        ("{{#unless a}}none{{/unless}}", json!({}), "none"),
        ("{{#if n includeZero=true}}0{{/if}}{{#if n}}n{{/if}}", json!({"n": 0}), "0"),
        (
            "{{#each l}}{{@index}}{{#if @last}}.{{else}},{{/if}}{{name}}{{../z}} {{/each}}",
            json!({"l": [{"name": "a"}, {"name": "b"}], "z": "!"}),
            "0,a! 1.b! ",
        ),
        ("{{#each o}}{{@key}}={{this}};{{/each}}", json!({"o": {"x": 1, "y": 2}}), "x=1;y=2;"),
        ("{{#each l as |e n|}}{{n}}{{e.v}}{{/each}}", json!({"l": [{"v": "a"}, {"v": "b"}]}), "0a1b"),
        ("{{#each l}}x{{else}}none{{/each}}", json!({"l": []}), "none"),
        ("{{#each l}}{{#with this}}{{@index}}{{v}}{{/with}}{{/each}}", json!({"l": [{"v": 1}]}), "01"),
        ("{{#with u as |who|}}{{who.name}}{{name}}{{@root.x}}{{/with}}", json!({"u": {"name": "a"}, "x": 1}), "aa1"),
        ("{{len}}{{log}}{{not}}{{lookup}}", json!({"len": 1, "log": 2, "not": 3, "lookup": 4}), "1234"),
        ("\\{{a}} {{! c }}{{!-- {{a}} --}}", json!({}), "{{a}} "),
        ("{{u.[first name]}}", json!({"u": {"first name": "A"}}), "A"),
    ] {
        assert_eq!(filled(source, variables), wanted, "{source}");
    }
}

#[test]
fn values_are_escaped_only_in_html() {
    let mut settings = settings(Vec::new());
    settings.subject = Some("{{a}}".to_owned());
    let source = Some("{{a}} {{{a}}} {{a}}".to_owned());
    let program =
        ParsedTemplate::compile(&settings, &TemplateBodies { html: source.clone(), text: source, mjml: None }).unwrap();
    let rendered = program.render(&json!({"a": "<b>\r\n&\"'"})).unwrap();
    assert_eq!(rendered.subject.unwrap(), "<b> &\"'");
    let escaped = "&lt;b&gt;\n&amp;&quot;&#x27;";
    assert_eq!(rendered.html.unwrap(), format!("{escaped} <b>\n&\"' {escaped}"));
    assert_eq!(rendered.text.unwrap(), "<b>\n&\"' <b>\n&\"' <b>\n&\"'");
}

#[test]
fn a_subject_is_one_line() {
    let mut settings = settings(Vec::new());
    settings.subject = Some(" Order {{a}}\n{{b}} ".to_owned());
    let program = ParsedTemplate::compile(&settings, &TemplateBodies::default()).unwrap();
    let rendered = program.render(&json!({"a": "x\r\nBcc: y@z.example", "b": "\u{2028}\u{0}end"})).unwrap();
    assert_eq!(rendered.subject.unwrap(), "Order x Bcc: y@z.example end");
    let error = program.render(&json!({"a": "x".repeat(4_000), "b": ""})).unwrap_err();
    assert_eq!(error.invalid[0].0, "subject");
    assert!(program.render_bodies(&json!({})).is_ok());
}

#[test]
fn missing_variables_are_named() {
    for (source, variables, wanted) in [
        ("{{a}} {{b.c}} {{a}} {{{d}}}", json!({"b": {}}), vec!["a", "b.c", "d"]),
        ("{{a}}{{b}}", json!({"a": null, "b": ""}), vec!["a"]),
        ("{{#if a}}{{b}}{{else}}{{c}}{{/if}}{{#if d}}{{d}}{{/if}}", json!({}), vec!["c"]),
        (
            "{{#each l}}{{p}}{{../q}}{{@root.r}}{{this.s}}{{/each}}",
            json!({"l": [{"p": 1, "s": 1}, {}]}),
            vec!["q", "r", "l[1].p", "l[1].s"],
        ),
        ("{{#each l as |e|}}{{e.p}}{{/each}}", json!({"l": [{}]}), vec!["l[0].p"]),
        ("{{#each l}}x{{/each}}{{#with w}}y{{/with}}", json!({}), vec!["l", "w"]),
        ("{{#each l}}x{{else}}y{{/each}}{{#with w}}y{{else}}z{{/with}}", json!({"z": 1}), vec![]),
        ("{{#with u}}{{a}}{{/with}}", json!({"u": {"b": 1}}), vec!["u.a"]),
    ] {
        let found = html(source, Vec::new()).preview(&variables).1;
        assert!(found.invalid.is_empty(), "{source}: {found:?}");
        assert_eq!(found.missing, wanted, "{source}");
    }
    assert_eq!(missing(&"{{x}}".replace('x', "name"), json!({})), ["name"]);
    let many: String = (0..100).map(|n| format!("{{{{v{n}}}}}")).collect();
    assert_eq!(missing(&many, json!({})).len(), 50);
    // A preview shows the tags of missing variables.
    assert_eq!(html("a {{b}} c", Vec::new()).preview(&json!({})).0.html.unwrap(), "a {{b}} c");
}

#[test]
fn declared_variables_use_their_fallbacks() {
    let declared = vec![
        variable("name", true, json!("friend")),
        variable("code", true, Value::Null),
        variable("extra", false, Value::Null),
    ];
    let program = html("{{name}}|{{extra}}{{extra.deep}}|{{#if code}}{{code}}{{/if}}", declared);
    assert_eq!(program.render(&json!({"code": "c"})).unwrap().html.unwrap(), "friend||c");
    assert_eq!(program.render(&json!({"code": "c", "name": null})).unwrap().html.unwrap(), "friend||c");
    assert_eq!(program.render(&json!({"name": "a"})).unwrap_err().missing, ["code"]);
    let error = program.render(&json!({"name": [], "code": 5})).unwrap_err();
    assert_eq!(error.invalid, [("variables.name".to_owned(), "must be a string".to_owned())]);
}

#[test]
fn the_unsubscribe_token_is_preserved() {
    let mut settings = settings(Vec::new());
    settings.subject = Some("{{unsubscribe_url}}".to_owned());
    let source = "{{unsubscribe_url}} {{{unsubscribe_url}}} {{#each l}}{{unsubscribe_url}}{{../unsubscribe_url}}{{/each}}\
                  {{#if unsubscribe_url}}{{@root.unsubscribe_url}}{{/if}}";
    let bodies = TemplateBodies { html: Some(source.to_owned()), text: Some(source.to_owned()), mjml: None };
    let program = ParsedTemplate::compile(&settings, &bodies).unwrap();
    let rendered = program.render(&json!({"l": [1], "unsubscribe_url": "https://evil.example"})).unwrap();
    let token = "{{unsubscribe_url}}";
    assert_eq!(rendered.subject.unwrap(), token);
    assert_eq!(rendered.html.as_deref(), Some(format!("{token} {token} {token}{token}{token}").as_str()));
    assert_eq!(rendered.text, rendered.html);
    assert!(program.has_unsubscribe_url);
}

#[test]
fn rendered_output_is_bounded() {
    let program = |source: &str| html(source, Vec::new());
    let list: Vec<Value> = (0..1_000).map(|n| json!(n)).collect();
    // These loops produce no output, so the step count bounds them.
    let loops = program("{{#each l}}{{#each @root.l}}{{#each @root.l}}{{/each}}{{/each}}{{/each}}");
    let error = loops.render(&json!({"l": list})).unwrap_err();
    assert!(error.invalid[0].1.contains("loops"), "{error}");
    let large = program("{{#each l}}{{../t}}{{/each}}");
    let error = large.render(&json!({"l": list, "t": "x".repeat(10_000)})).unwrap_err();
    assert!(error.invalid[0].1.contains("bytes"), "{error}");
    for variables in [
        json!({"t": "x".repeat(VARIABLES_BYTES_MAX)}),
        json!({"x".repeat(VARIABLE_NAME_BYTES_MAX + 1): 1}),
        (0..20).fold(json!(1), |inner, _| json!({"a": inner})),
        json!([]),
        json!("x"),
    ] {
        let error = program("x").render(&variables).unwrap_err();
        assert_eq!(error.invalid[0].0, "variables");
    }
    let error = program("{{l.name}}").render(&json!({"l": []})).unwrap_err();
    assert_eq!(error.invalid, [("html".to_owned(), "uses `name` on a list".to_owned())]);
}

#[test]
fn a_preheader_is_first_in_the_body() {
    let mut settings = settings(Vec::new());
    settings.preheader = Some("{{a}} & more".to_owned());
    for (source, start) in [
        ("<html><BODY class=\"x\"><p>y</p></BODY></html>", "<html><BODY class=\"x\"><div style="),
        ("<p>y</p>", "<div style="),
    ] {
        let bodies = TemplateBodies { html: Some(source.to_owned()), text: Some("t".to_owned()), mjml: None };
        let program = ParsedTemplate::compile(&settings, &bodies).unwrap();
        let rendered = program.render(&json!({"a": "<x>"})).unwrap();
        let html = rendered.html.unwrap();
        assert!(html.starts_with(start) && html.contains(">&lt;x&gt; & more</div><p>y</p>"), "{html}");
        assert_eq!(rendered.text.unwrap(), "t");
    }
}

#[test]
fn errors_in_all_parts_are_reported() {
    let mut settings = settings(Vec::new());
    settings.subject = Some("{{a".to_owned());
    let bodies = TemplateBodies { html: Some("\n{{> x}}".to_owned()), text: Some("{{ok}}".to_owned()), mjml: None };
    let errors = ParsedTemplate::compile(&settings, &bodies).unwrap_err();
    let positions: Vec<_> = errors.iter().map(|(part, error)| (*part, error.line, error.column)).collect();
    assert_eq!(positions, [("subject", 1, 1), ("html", 2, 1)]);
}

/// A large template is parsed in pieces (see `template/markup.rs`): the result equals that of the whole.
#[test]
fn rendering_in_pieces_gives_the_same_result() {
    let paragraph = "<p>words and words</p>\n  {{#if a}}\n  {{x}}\n  {{/if}}\n{{~y~}} \\{{z}} \u{e4}\n{{! c }}\n{{y}}";
    let source = paragraph.repeat(200);
    let variables = json!({"a": true, "x": "X", "y": "<Y>"});
    let whole = Handlebars::new().render_template(&source, &variables).unwrap();
    assert_eq!(filled(&source, variables), whole);
}
