//! Sources and the HTML that they compile to.

use model::template::{ParsedTemplate, TemplateBodies, TemplateSettings};
use serde_json::{Value, json};

use super::*;
use crate::{CAROUSEL_IMAGES_MAX, ELEMENTS_MAX};

fn in_column(content: &str) -> String {
    format!("<mjml><mj-body><mj-section><mj-column>{content}</mj-column></mj-section></mj-body></mjml>")
}

fn html_of(source: &str) -> String {
    compile(source).unwrap_or_else(|error| panic!("{error}: {source}")).html
}

fn error_of(source: &str) -> String {
    compile(source).unwrap_err().to_string()
}

fn settings() -> TemplateSettings {
    TemplateSettings {
        category: model::email::Category::Transactional,
        unsubscribe_enabled: false,
        from: None,
        reply_to: Vec::new(),
        subject: None,
        preheader: None,
        variables: Vec::new(),
    }
}

/// The HTML of an email.
fn rendered(source: &str, variables: &Value) -> String {
    let bodies = TemplateBodies { html: Some(html_of(source)), ..TemplateBodies::default() };
    let template = ParsedTemplate::compile(&settings(), &bodies).unwrap();
    template.render(variables).unwrap().html.unwrap()
}

#[test]
fn a_source_becomes_a_page_of_tables() {
    let html =
        html_of(&in_column("<mj-text>Hello</mj-text><mj-image src=\"https://a.example/b.png\" width=\"40px\" />"));
    assert!(html.starts_with("<!doctype html>"), "{html}");
    assert!(html.contains(">Hello</div>") && html.contains("src=\"https://a.example/b.png\""), "{html}");
    assert!(html.contains("width=\"40\""), "{html}");
    // The same source gives the same HTML.
    assert_eq!(
        html,
        html_of(&in_column("<mj-text>Hello</mj-text>\n<mj-image src='https://a.example/b.png' width='40px'/>"))
    );
}

#[test]
fn nothing_is_loaded_from_hosts_that_the_source_does_not_name() {
    let html = html_of(&in_column("<mj-text font-family=\"Roboto\">x</mj-text><mj-text>y</mj-text>"));
    assert!(!html.contains("googleapis"), "{html}");
    let named = "<mjml><mj-head><mj-font name=\"Raleway\" href=\"https://fonts.example/css?a=1&amp;b=2\" /></mj-head>\
                 <mj-body><mj-section><mj-column><mj-text font-family='\"Raleway\", Arial'>x</mj-text></mj-column>\
                 </mj-section></mj-body></mjml>";
    let html = html_of(named);
    assert!(html.contains("href=\"https://fonts.example/css?a=1&amp;b=2\""), "{html}");
    assert!(html.contains("font-family:'Raleway', Arial"), "{html}");
}

#[test]
fn contents_are_kept_byte_for_byte() {
    for content in [
        "<b>one</b>\n<i>two</i>  three &nbsp; &amp; <br> <p>not closed",
        "<td {{#if a}}style=\"x\"{{/if}}>\\{{no tag}} {{{raw}}} {{~b~}}",
        "qzx000000 qzx000001 \u{1f600}\u{fe0f} \u{fdd0}",
        "<!-- {{note}} --> a < b && c > d",
        "{{user.[first name]}} {{#each items as |item n|}}{{n}}: {{item.name}}{{else}}-{{/each}}",
        "{{!-- </mj-text> --}}{{#if \"</mj-text>\"}}x{{/if}}",
    ] {
        assert!(html_of(&in_column(&format!("<mj-text>{content}</mj-text>"))).contains(content), "{content}");
        let raw = format!("<mjml><mj-body><mj-raw>{content}</mj-raw></mj-body></mjml>").replace("mj-text", "mj-raw");
        assert!(html_of(&raw).contains(&content.replace("mj-text", "mj-raw")), "{content}");
    }
    let table = "<tr><td>{{a}}</td></tr>{{#each rows}}<tr><td>{{this}}</td></tr>{{/each}}";
    assert!(html_of(&in_column(&format!("<mj-table>{table}</mj-table>"))).contains(table));
    let style = "a > b { color: red } @media (width <= 400px) { .x { color: {{brand}} } }";
    let source = format!("<mjml><mj-head><mj-style>{style}</mj-style></mj-head><mj-body /></mjml>");
    assert!(html_of(&source).contains(style));
}

#[test]
fn tags_survive_in_attributes() {
    for (attribute, value) in [
        ("href", "https://a.example/{{path}}?id={{user.id}}&amp;x={{{raw}}}"),
        ("href", "{{#if url}}{{url}}{{else}}https://a.example/{{/if}}"),
        ("href", "{{user.[home page]}}"),
        ("href", "{{#if \"a > 'b\"}}x{{/if}}"),
        ("alt", "Gr\u{fc}\u{df}e \u{2764}\u{fe0f} \\ {{name}}\n{{!note}}"),
        ("background-color", "{{color}}"),
        ("color", "#{{color}}"),
        ("padding", "10px {{gap}}px"),
    ] {
        let quote = if value.contains('"') { '\'' } else { '"' };
        let given = format!("{attribute}={quote}{}{quote}", value.replace('\'', ""));
        let source = match attribute {
            "alt" => in_column(&format!("<mj-image src=\"a\" {given} />")),
            _ => in_column(&format!("<mj-button {given}>x</mj-button>")),
        };
        assert!(html_of(&source).contains(&value.replace('\'', "")), "{attribute}: {}", html_of(&source));
    }
    let image = in_column("<mj-image src=\"{{logo}}\" alt='say \"hi\" < {{name}}' href=\"{{unsubscribe_url}}\" />");
    let html = html_of(&image);
    assert!(html.contains("src=\"{{logo}}\"") && html.contains("href=\"{{unsubscribe_url}}\""), "{html}");
    assert!(html.contains("alt=\"say &quot;hi&quot; &lt; {{name}}\""), "{html}");
    let lang = "<mjml lang=\"{{lang}}\" dir=\"auto\"><mj-body background-color=\"{{page}}\"></mj-body></mjml>";
    assert!(html_of(lang).contains("lang=\"{{lang}}\"") && html_of(lang).contains("{{page}}"), "{}", html_of(lang));
}

#[test]
fn a_tag_in_a_default_is_used_or_not() {
    let with = |content: &str| {
        format!(
            "<mjml><mj-head><mj-attributes><mj-all color=\"{{{{brand}}}}\" /><mj-class name=\"big\" font-size=\"{{{{n}}}}px\" />\
             <mj-text line-height=\"{{{{line}}}}\" /></mj-attributes></mj-head><mj-body><mj-section><mj-column>{content}\
             </mj-column></mj-section></mj-body></mjml>"
        )
    };
    let html = html_of(&with("<mj-text mj-class=\"big\">x</mj-text>"));
    assert!(
        html.contains("color:{{brand}}") && html.contains("font-size:{{n}}px") && html.contains("{{line}}"),
        "{html}"
    );
    assert!(!html_of(&with("<mj-spacer />")).contains("{{line}}"));
}

#[test]
fn a_tag_that_the_layout_loses_is_an_error() {
    for (content, attribute) in [
        ("<mj-image src=\"a\" width=\"{{w}}\" />", "`width` of `<mj-image>`"),
        ("<mj-text oddity=\"{{w}}\">x</mj-text>", "`oddity` of `<mj-text>`"),
    ] {
        let error = error_of(&in_column(content));
        assert!(error.contains("`{{w}}`") && error.contains(attribute), "{error}");
    }
    let error = error_of(
        "<mjml><mj-body>\n<mj-section>\n <mj-column width=\"{{w}}\"></mj-column></mj-section></mj-body></mjml>",
    );
    assert!(error.starts_with("line 3, column 20: `{{w}}`"), "{error}");
    let error = error_of("<mjml><mj-head><mj-breakpoint width=\"{{w}}\" /></mj-head><mj-body /></mjml>");
    assert!(error.contains("`width` of `<mj-breakpoint>`"), "{error}");
}

#[test]
fn sections_and_columns_repeat() {
    let source = "<mjml><mj-body>
        {{#if trial}}<mj-section><mj-column><mj-text>Trial</mj-text></mj-column></mj-section>
        {{else}}<mj-raw><!-- none --></mj-raw>{{/if}}
        <mj-wrapper>{{#each groups}}<mj-section>
            {{#each this}}<mj-column><mj-raw>{{#if sale}}</mj-raw><mj-text>Sale {{name}}</mj-text><mj-raw>{{/if}}</mj-raw>
            <mj-text>[{{name}}]</mj-text></mj-column>{{/each}}
        </mj-section>{{/each}}</mj-wrapper></mj-body></mjml>";
    let variables = json!({"trial": true, "groups": [[{"name": "A", "sale": true}, {"name": "B", "sale": false}], []]});
    let html = rendered(source, &variables);
    assert_eq!((html.matches("Trial").count(), html.matches("Sale ").count()), (1, 1), "{html}");
    assert!(html.contains("Sale A") && html.contains("[A]") && html.contains("[B]"));
    // Each element that is opened is closed, for Outlook and for the others.
    for name in ["table", "tr", "td", "div", "tbody"] {
        let (opened, closed) = (html.matches(&format!("<{name}")).count(), html.matches(&format!("</{name}>")).count());
        assert_eq!(opened - usize::from(name == "tr") * html.matches("<track").count(), closed, "{name}: {html}");
    }
    assert_eq!(html.matches("<!--[if").count(), html.matches("<![endif]-->").count(), "{html}");
}

#[test]
fn a_block_ends_where_it_began() {
    for (source, place) in [
        ("<mjml><mj-body>{{#if a}}<mj-section>{{/if}}</mj-section></mj-body></mjml>", "`{{/if}}` belongs to a block"),
        ("<mjml><mj-body>{{#if a}}<mj-section>{{else}}</mj-section>{{/if}}</mj-body></mjml>", "`{{else}}` belongs"),
        ("<mjml><mj-body><mj-section>{{#if a}}</mj-section>{{/if}}</mj-body></mjml>", "`{{#if a}}` begins a block"),
        ("<mjml><mj-body><mj-raw>{{#if a}}</mj-raw><mj-section>{{/if}}</mj-section></mj-body></mjml>", "`{{/if}}`"),
        ("<mjml><mj-body><!-- {{#if a}} --><mj-section></mj-section><!-- {{/if}} --></mj-body></mjml>", "a comment"),
        ("<mjml>{{#if a}}<mj-body></mj-body>{{/if}}</mjml>", "is not allowed directly in `<mjml>`"),
        (
            "<mjml><mj-head>{{#if a}}<mj-style>x</mj-style>{{/if}}</mj-head><mj-body /></mjml>",
            "directly in `<mj-head>`",
        ),
        ("{{#if a}}<mjml><mj-body></mj-body></mjml>{{/if}}", "outside of `<mjml>`"),
    ] {
        let error = error_of(source);
        assert!(error.contains(place), "{source}: {error}");
    }
    for content in [
        "<mj-text>{{#if a}}</mj-text><mj-text>{{/if}}</mj-text>",
        "<mj-button href=\"{{#if a}}\" title=\"{{/if}}\">x</mj-button>",
        "<mj-social>{{#if a}}<mj-social-element name=\"x\" href=\"y\" />{{/if}}</mj-social>",
        "{{name}}",
        "text",
        "<mj-button {{a}}>x</mj-button>",
    ] {
        assert!(compile(&in_column(content)).is_err(), "{content}");
    }
}

#[test]
fn comments_are_not_part_of_the_mail() {
    let html = html_of(
        "<?xml version=\"1.0\"?>\n<!-- secret {{x}} --><mjml><!-- secret --><mj-head><!-- secret --></mj-head>\
                        <mj-body><!-- secret {{#if a}}{{b}}{{/if}} --></mj-body></mjml><!-- secret -->\n",
    );
    assert!(!html.contains("secret") && !html.contains("{{"), "{html}");
}

#[test]
fn errors_say_where_and_what_to_do() {
    for (source, expected) in [
        ("", "line 1, column 1: there is no `<mjml>`"),
        ("<p>x</p>", "line 1, column 1: the source must be a single `<mjml>`"),
        ("<mjml></mjml>", "line 1, column 1: `<mjml>` has no `<mj-body>`"),
        ("<mjml><mj-body></mj-body></mjml><mjml></mjml>", "line 1, column 33: the source must be a single"),
        ("<mjml>\n<mj-body>\n  <mj-txt>", "line 3, column 3: `<mj-txt>` is not an element"),
        ("<mjml>\n<mj-body>\n  <mj-Text>", "line 3, column 3: element names must be in lower case"),
        ("<mjml><mj-body><p>", "line 1, column 16: `<p>` is HTML"),
        (
            "<mjml><mj-body><mj-text>x</mj-text>",
            "line 1, column 16: `<mj-text>` is not allowed in `<mj-body>`, only in",
        ),
        (
            "<mjml><mj-body>\n<mj-section>\n</mj-body>",
            "line 3, column 1: `</mj-body>` where `</mj-section>` is expected",
        ),
        ("<mjml><mj-body>\n<mj-section>", "line 2, column 1: `<mj-section>` is not closed"),
        ("<mjml><mj-body></mj-body></mjml></mjml>", "line 1, column 33: `</mjml>` closes"),
        ("<mjml><mj-body></mj-body><mj-body></mj-body></mjml>", "line 1, column 26: there is a second"),
        ("<mjml><mj-body></mj-body><mj-head></mj-head></mjml>", "line 1, column 26: `<mj-head>` must come before"),
        ("<mjml><mj-body width=600></mj-body></mjml>", "line 1, column 16: `width` needs a value in quotes"),
        ("<mjml><mj-body width></mj-body></mjml>", "line 1, column 16: `width` needs"),
        ("<mjml><mj-body width=\"1></mj-body></mjml>", "line 1, column 16: the value of `width` is not closed"),
        ("<mjml><mj-body a=\"1\" a=\"2\"></mj-body></mjml>", "line 1, column 22: `a` is given twice"),
        ("<mjml><mj-body", "line 1, column 7: the tag `<mj-body` is not closed"),
        ("<!DOCTYPE x [<!ENTITY a \"aaa\">]><mjml></mjml>", "line 1, column 1: declarations"),
        ("<mjml><mj-body><![CDATA[x]]></mj-body></mjml>", "line 1, column 16: declarations"),
        ("<mjml><mj-body><!-- x</mj-body></mjml>", "line 1, column 16: the comment is not closed"),
        ("<mjml><mj-body>{{#if x</mj-body></mjml>", "line 1, column 16: the tag is not closed"),
    ] {
        let error = error_of(source);
        assert!(error.starts_with(expected), "{source}: {error}");
    }
    for (content, expected) in [
        ("<mj-text>a\n<mj-text>b</mj-text>", "`<mj-text>` is not allowed in `<mj-text>` of line 1"),
        ("<mj-text>a", "`<mj-text>` is not closed"),
        ("<mj-image src=\"x\">text</mj-image>", "`<mj-image>` must be empty"),
    ] {
        let error = error_of(&in_column(content));
        assert!(error.contains(expected), "{content}: {error}");
    }
}

#[test]
fn includes_are_refused() {
    let include = "<mj-include path=\"/etc/passwd\" />";
    for source in [
        format!("<mjml><mj-head>{include}</mj-head><mj-body></mj-body></mjml>"),
        format!("<mjml><mj-head><mj-attributes>{include}</mj-attributes></mj-head><mj-body></mj-body></mjml>"),
        format!("<mjml><mj-body>{include}</mj-body></mjml>"),
        in_column(include),
        format!("<mjml>{include}</mjml>"),
        include.to_owned(),
    ] {
        let error = error_of(&source);
        assert!(error.contains("`<mj-include>` is refused, because a template cannot read files"), "{error}");
    }
}

#[test]
fn advice_is_given() {
    let source = "<mjml><mj-head><mj-style inline=\"inline\">.a { color: red }</mj-style>\
                  <mj-style inline=\"inline\">.b { color: red }</mj-style></mj-head><mj-body><mj-section>\
                  <mj-column><mj-social><mj-social-element name=\"github\" href=\"https://a.example/\">x</mj-social-element>\
                  <mj-social-element name=\"x\" href=\"https://b.example/\" /></mj-social></mj-column></mj-section></mj-body></mjml>";
    let compiled = compile(source).unwrap();
    assert!(compiled.html.contains(".a { color: red }"), "{}", compiled.html);
    assert_eq!(compiled.warnings.len(), 2, "{:?}", compiled.warnings);
}

#[test]
fn every_element_is_laid_out() {
    let source = include_str!("every_element.mjml");
    let html = html_of(source);
    for word in
        ["Accordion title", "Accordion text", "Button", "carousel-1.png", "hero.png", "Navbar", "Table", "Social"]
    {
        assert!(html.contains(word), "{word}: {html}");
    }
    assert!(!html.contains("qzx") && !html.contains("mj-text>"), "{html}");
}

#[test]
fn deep_sources_do_not_exhaust_the_stack() {
    for opening in ["<mjml>", "<mj-wrapper>", "<mj-section>", "<div>", "<mj-text>", "<!--", "{{#if a}}", "<mj-raw>"] {
        let deep = opening.repeat(MARKUP_BYTES_MAX / opening.len());
        assert!(compile(&deep).is_err(), "{opening}");
        let deep = deep.get(..MARKUP_BYTES_MAX - 20).unwrap_or_default();
        assert!(compile(&format!("<mjml><mj-body>{deep}")).is_err(), "{opening}");
    }
    // HTML in a content may be deep: nobody parses it.
    let deep = format!("<mj-text>{}{}</mj-text>", "<div>".repeat(20_000), "</div>".repeat(20_000));
    assert!(compile(&in_column(&deep)).is_ok());
}

#[test]
fn large_sources_are_bounded() {
    assert!(error_of(&" ".repeat(MARKUP_BYTES_MAX + 1)).contains("longer"));
    let columns =
        |n: usize| format!("<mjml><mj-body><mj-section>{}</mj-section></mj-body></mjml>", "<mj-column />".repeat(n));
    assert!(compile(&columns(600)).is_ok());
    assert!(error_of(&columns(ELEMENTS_MAX)).contains("more than 2000 elements"));
    let images =
        |n: usize| in_column(&format!("<mj-carousel>{}</mj-carousel>", "<mj-carousel-image src=\"a\" />".repeat(n)));
    assert!(compile(&images(CAROUSEL_IMAGES_MAX)).is_ok());
    assert!(error_of(&images(CAROUSEL_IMAGES_MAX + 1)).contains("more than 20 images"));
    let attributes: String = (0..100).map(|n| format!(" a{n}=\"\"")).collect();
    assert!(error_of(&in_column(&format!("<mj-spacer{attributes} />"))).contains("more than 64 attributes"));
    let classes = format!("<mj-text mj-class=\"{}\">x</mj-text>", "a ".repeat(17));
    assert!(error_of(&in_column(&classes)).contains("more than 16 names"));
    // A default of a hundred kilobytes for two thousand elements would be a gigabyte.
    let huge = "x".repeat(100 << 10);
    let source = format!(
        "<mjml><mj-head><mj-attributes><mj-all color=\"{huge}\" font-family=\"{huge}\" /></mj-attributes></mj-head>\
         <mj-body><mj-section><mj-column>{}</mj-column></mj-section></mj-body></mjml>",
        "<mj-text>x</mj-text>".repeat(1_900)
    );
    assert!(error_of(&source).contains("the HTML that it compiles to is longer than 524288 bytes"));
}

/// Elements and tags that begin a search, before a long rest without a match: searches must not go to its end.
#[test]
fn a_long_rest_is_not_searched_again_and_again() {
    let padding = " ".repeat(440 << 10);
    let padded = |content: &str| in_column(&format!("{content}<!--{padding}-->"));
    let comments = "{{!<mj-}}".repeat(2_000);
    for content in [
        "<mj-raw>x</mj-raw>".repeat(1_900),
        "<mj-raw>{{!<mj-}}</mj-raw>".repeat(1_900),
        "<!--{{!x-->}}-->".repeat(1_900),
        "<!--<mj-raw-->".repeat(1_900),
        format!("<mj-raw>{comments}</mj-raw>"),
    ] {
        let html = html_of(&padded(&content));
        assert_eq!(html.matches("{{!<mj-}}").count(), content.matches("{{!<mj-}}").count());
        assert!(html.len() < padding.len(), "a comment is not part of the mail");
    }
    let inside = html_of(&in_column(&format!("<mj-raw>{comments}{padding}</mj-raw>")));
    assert!(inside.contains(&padding) && inside.contains(&comments));
    // An element that stands in another is named, whatever it is called.
    for (content, found) in [
        (
            format!("<mj-text>{comments}<mj-{}</mj-text>", "x".repeat(1_000)),
            format!("`<mj-{}>` is not allowed", "x".repeat(60)),
        ),
        (format!("<mj-text>{comments}</mjml\n</mj-text>"), "`</mjml>` is not allowed".to_owned()),
        (format!("<mj-text>{comments}</mj-tex{padding}"), "`<mj-text>` is not closed".to_owned()),
    ] {
        let error = error_of(&padded(&content).chars().take(MARKUP_BYTES_MAX).collect::<String>());
        assert!(error.contains(&found), "{error}");
    }
}

#[test]
fn odd_values_are_harmless() {
    for value in [
        "-1px",
        "1e39px",
        "NaNpx",
        "infpx",
        "0",
        "%",
        "px",
        "99999999999999999999%",
        "-50%",
        "",
        " ",
        "#",
        "#12",
        "rgb(",
        "\u{1f600}px",
        "1\u{301}px",
        "qzx000000",
        "qz",
        "\\",
        "'",
        "&quot;",
        "&#0;",
        "{",
        "}}",
        "\\{{x}}",
    ] {
        for name in [
            "width",
            "padding",
            "height",
            "border",
            "border-radius",
            "font-size",
            "color",
            "css-class",
            "align",
            "background-url",
            "background-size",
            "background-position",
            "mj-class",
            "direction",
            "full-width",
            "mode",
        ] {
            let attribute = format!("{name}=\"{value}\"");
            let source = format!(
                "<mjml><mj-head><mj-attributes><mj-all {attribute} /></mj-attributes></mj-head><mj-body {attribute}>\
                 <mj-wrapper {attribute}><mj-section {attribute}><mj-group {attribute}><mj-column {attribute}>\
                 <mj-image src=\"a\" {attribute} /><mj-text {attribute}>x</mj-text><mj-button {attribute}>x</mj-button>\
                 <mj-divider {attribute} /><mj-spacer {attribute} /><mj-table {attribute}></mj-table>\
                 </mj-column></mj-group></mj-section></mj-wrapper><mj-hero {attribute}></mj-hero></mj-body></mjml>"
            );
            // It may be refused, but nothing panics.
            let _ = compile(&source);
        }
    }
}
