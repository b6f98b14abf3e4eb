//! Forms as rows of fields: rendered with values and errors, and read into the JSON body of an operation.

use hypertext::{Buffer, prelude::*};
use serde_json::{Map, Value};

use super::backend::Failure;
use super::context::Context;
pub use super::form_field::{ChoiceGroup, Control, Empty, Field, choices};
use super::form_key;
use super::identity_proof::{PROOF, proof_field};
use super::kit::text::{input_value, sentence_case};
use super::request::Fields;
use super::seen_version;

/// Hidden fields that keep what was sent when the form is shown again.
const KEPT_HIDDEN: [&str; 2] = [form_key::FIELD, seen_version::FIELD];

#[must_use]
#[derive(Debug, Clone)]
pub struct Form<'a> {
    /// The name in the page table.
    pub name: &'a str,
    /// The label of the button.
    pub submit: &'a str,
    pub fields: Vec<Field>,
    /// The button warns: it deletes, or cannot be taken back.
    pub danger: bool,
    /// Another submit button, with its field and label. The browser does not require the fields that it does not need.
    pub other: Option<(&'a str, &'a str)>,
    /// The button is one of several beside each other, and not the main one.
    pub secondary: bool,
    /// The form takes files.
    pub multipart: bool,
    /// A part of the page that the script replaces with the answer while the person types.
    pub preview: Option<&'a str>,
}

impl<'a> Form<'a> {
    pub fn new(name: &'a str, submit: &'a str, fields: Vec<Field>) -> Self {
        Self { name, submit, fields, danger: false, other: None, secondary: false, multipart: false, preview: None }
    }

    pub fn danger(mut self) -> Self {
        self.danger = true;
        self
    }

    pub fn other(mut self, name: &'a str, label: &'a str) -> Self {
        self.other = Some((name, label));
        self
    }

    pub fn secondary(mut self) -> Self {
        self.secondary = true;
        self
    }

    /// The form in a context: with the values and errors of the last attempt.
    pub fn within<'c>(&'c self, context: &'c Context<'c>) -> FormView<'c> {
        FormView { form: self, context }
    }

    /// Reads the fields that belong to the operation's body.
    ///
    /// # Errors
    /// A number is no number, or JSON is no JSON; the failure names the fields.
    pub fn read(&self, fields: &Fields) -> Result<Value, Failure> {
        read_fields(&self.fields, fields)
    }
}

/// Reads fields into a JSON object.
pub fn read_fields(rows: &[Field], fields: &Fields) -> Result<Value, Failure> {
    let (mut body, mut failure) = (Map::new(), None::<Failure>);
    for field in rows.iter().filter(|field| field.empty != Empty::Ignored) {
        match field.read(fields) {
            Ok(None) => {}
            Ok(Some(value)) => insert(&mut body, &field.name, value),
            Err(message) => match &mut failure {
                Some(failure) => {
                    failure.fields.insert(field.name.clone().into_owned(), message);
                }
                None => failure = Some(Failure::field(&field.name, message)),
            },
        }
    }
    failure.map_or(Ok(Value::Object(body)), Err)
}

/// Inserts a value at a dotted path.
pub fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// A form with the values and errors of the last attempt.
#[derive(Clone, Copy)]
pub struct FormView<'c> {
    form: &'c Form<'c>,
    context: &'c Context<'c>,
}

impl Renderable for FormView<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (form, context) = (self.form, self.context);
        let failure = context.failure_of(form.name);
        context.mark_shown(form.name);
        let entered = failure.map(|_| context.form());
        let is_file = |field: &Field| matches!(field.control, Control::File { .. } | Control::Files { .. });
        let has_files = form.multipart || form.fields.iter().any(is_file);
        let action = context.request.target();
        let has_password = |field: &Field| field.control == Control::Password;
        let is_proof = form.fields.iter().any(|field| field.name == PROOF);
        let proof = failure.filter(|_| !is_proof).and_then(proof_field);
        let asks_password = proof.is_some() || form.fields.iter().any(has_password);
        let username = context.viewer.filter(|_| asks_password).map(|viewer| viewer.email.as_str());
        maud! {
            form.form method="post" action=(action) enctype=[has_files.then_some("multipart/form-data")]
                data-preview=[form.preview] {
                input type="hidden" name="csrf" value=(context.csrf());
                input type="hidden" name="form" value=(form.name);
                @if let Some(username) = username {
                    // Password managers look for the name of the account.
                    input type="text" value=(username) autocomplete="username" readonly hidden;
                }
                @if let Some(failure) = failure { (FormErrors { failure, fields: &form.fields }) }
                @for field in &form.fields {
                    (FieldView { form: form.name, field, entered, failure })
                }
                @if let (Some(field), Some(failure)) = (&proof, failure) {
                    (FieldView { form: form.name, field, entered, failure: Some(failure) })
                }
                div.buttons {
                    button.button.danger[form.danger].primary[!form.danger && !form.secondary] type="submit" { (form.submit) }
                    @if let Some((name, label)) = form.other {
                        button.button type="submit" name=(name) value="1" formnovalidate { (label) }
                    }
                    @if form.preview.is_some() {
                        button.button type="submit" name="preview" value="1" formnovalidate { "Preview" }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// The message of a refused form, and the errors that belong to no field of it.
pub struct FormErrors<'f> {
    pub failure: &'f Failure,
    pub fields: &'f [Field],
}

impl Renderable for FormErrors<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let Self { failure, fields } = *self;
        if failure.message.is_empty() && failure.fields.is_empty() {
            return;
        }
        let is_shown = |name: &str| {
            let mut visible = fields.iter().filter(|field| field.control != Control::Hidden);
            name == PROOF || visible.any(|field| belongs_to(name, &field.name))
        };
        let needs_proof = failure.fields.is_empty() && proof_field(failure).is_some();
        let others: Vec<_> = failure.fields.iter().filter(|(name, _)| !is_shown(name)).collect();
        maud! {
            div.notice.bad[!needs_proof].warning[needs_proof] role="alert" {
                @if needs_proof {
                    p { "Confirm that it is you: enter your password or a one-time password at the end of this form. \
                        Nothing has been changed yet." }
                } @else if others.is_empty() && !failure.fields.is_empty() {
                    p { "Correct the marked fields below, and try again." }
                } @else {
                    p { (plain(&failure.message)) }
                }
                @if !others.is_empty() {
                    ul { @for (name, message) in &others { li { (field_in_words(name)) ": " (plain(message)) } } }
                }
                @if let Some(url) = &failure.upgrade_url { p { a href=(url) { "Change the plan" } } }
            }
        }
        .render_to(buffer);
    }
}

/// True if an error of the API belongs to a field: `to` has the error of `to[2]`.
pub fn belongs_to(error: &str, field: &str) -> bool {
    error.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
}

/// A message of the API without its marks of code, with `html` as its field's label has it.
pub fn plain(message: &str) -> String {
    message.replace("`html`", "HTML").replace('`', "")
}

/// An error of a field as a sentence. The API's messages follow the field's name: `is shorter than 10 characters`.
/// A message that begins with a part of what was entered stays as it is.
fn error_sentence(message: &str, entered: &str) -> String {
    let text = plain(message);
    if text.split_once(": ").is_some_and(|(part, _)| entered.contains(part)) {
        return text;
    }
    if ["is ", "has ", "must ", "cannot ", "needs "].iter().any(|verb| text.starts_with(verb)) {
        return format!("This {text}");
    }
    capitalized(&text)
}

/// A text with its first letter in upper case.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// The part of a field that has an error: `[2].name` is "Entry 3, name".
fn part_in_words(part: &str) -> String {
    let entry = part.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let found = entry.and_then(|(number, rest)| Some((number.parse::<u32>().ok()?, rest)));
    match found {
        Some((number, "")) => format!("Entry {}", number.saturating_add(1)),
        Some((number, rest)) => format!("Entry {}, {}", number.saturating_add(1), rest.trim_start_matches('.')),
        None => part.trim_start_matches('.').to_owned(),
    }
}

/// The name of a field that the form does not have: `steps[1].wait` is "Steps, entry 2, wait".
fn field_in_words(name: &str) -> String {
    let (field, part) = name.split_at(name.find(['[', '.']).unwrap_or(name.len()));
    match part {
        "" => sentence_case(field),
        part => format!("{}, {}", sentence_case(field), part_in_words(part).replacen("Entry", "entry", 1)),
    }
}

/// A field with its label, help and error.
pub struct FieldView<'f> {
    pub form: &'f str,
    pub field: &'f Field,
    /// The values of the last attempt.
    pub entered: Option<&'f Fields>,
    pub failure: Option<&'f Failure>,
}

impl FieldView<'_> {
    fn error(&self) -> Option<String> {
        let failure = self.failure?;
        let errors = failure.fields.iter().filter(|(name, _)| belongs_to(name, &self.field.name));
        let texts: Vec<_> = errors
            .map(|(name, text)| match name.strip_prefix(&*self.field.name).unwrap_or_default() {
                "" => error_sentence(text, self.value()),
                part => format!("{}: {}", part_in_words(part), plain(text)),
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    fn value(&self) -> &str {
        match self.entered {
            // Passwords are not sent back.
            Some(_) if self.field.control == Control::Password => "",
            // A hidden field names the object of its form: other forms of the page have the same name.
            Some(_) if self.field.control == Control::Hidden && !KEPT_HIDDEN.contains(&&*self.field.name) => {
                &self.field.value
            }
            Some(entered) => entered.find(&self.field.name).unwrap_or_default(),
            None => &self.field.value,
        }
    }
}

impl Renderable for FieldView<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (field, value) = (self.field, self.value());
        if field.control == Control::Hidden {
            maud! { input type="hidden" name=(field.name) value=(input_value(value)); }.render_to(buffer);
            return;
        }
        let id = format!("{}-{}", self.form, field.name.replace(['.', '[', ']'], "-"));
        let id = id.as_str();
        let error = self.error();
        let (help_id, error_id) = (format!("{id}-help"), format!("{id}-error"));
        let described = match (&field.help, &error) {
            (Some(_), Some(_)) => Some(format!("{help_id} {error_id}")),
            (Some(_), None) => Some(help_id.clone()),
            (None, Some(_)) => Some(error_id.clone()),
            (None, None) => None,
        };
        let view = ControlView { id, field, value, entered: self.entered, described, invalid: error.is_some() };
        let is_group = matches!(field.control, Control::Radio(_) | Control::Checkboxes(_) | Control::CheckboxGroups(_));
        let optional = !field.required && !is_group && !matches!(field.control, Control::Checkbox | Control::Select(_));
        maud! {
            div.field.check[field.control == Control::Checkbox].wrong[error.is_some()] {
                @if is_group {
                    fieldset aria-describedby=[view.described.as_deref()] {
                        legend { (field.label) }
                        (view)
                    }
                } @else if field.control == Control::Checkbox {
                    (view)
                    label for=(id) { (field.label) }
                } @else {
                    label for=(id) { (field.label) @if optional { span.optional { " optional" } } }
                    (view)
                }
                @if let Some(help) = &field.help { p.help id=(help_id) { (help) } }
                @if let Some(error) = &error { p.error id=(error_id) { (error) } }
            }
        }
        .render_to(buffer);
    }
}

struct ControlView<'f> {
    id: &'f str,
    field: &'f Field,
    value: &'f str,
    entered: Option<&'f Fields>,
    described: Option<String>,
    invalid: bool,
}

impl ControlView<'_> {
    fn input(&self, kind: &str, buffer: &mut Buffer) {
        let field = self.field;
        let (min, max) = match field.control {
            Control::Number { min, max } => (min, max),
            _ => (None, None),
        };
        // Browsers ignore `off` for passwords, and would fill in that of the dashboard.
        let autocomplete = match (&field.control, field.autocomplete) {
            (Control::Password, "off") => "new-password",
            (_, autocomplete) => autocomplete,
        };
        let is_decimal = matches!(field.control, Control::Money { .. } | Control::Percent);
        maud! {
            input id=(self.id) name=(field.name) type=(kind) value=(input_value(self.value)) required[field.required]
                placeholder=[(!field.placeholder.is_empty()).then_some(field.placeholder)]
                min=[min] max=[max] inputmode=[is_decimal.then_some("decimal")] autocomplete=(autocomplete)
                aria-describedby=[self.described.as_deref()] aria-invalid=[self.invalid.then_some("true")];
        }
        .render_to(buffer);
    }

    fn area(&self, rows: u8, is_code: bool, buffer: &mut Buffer) {
        let field = self.field;
        // The parser drops a line feed after the start tag, so one precedes the text (HTML, "textarea").
        maud! {
            textarea.mono[is_code] id=(self.id) name=(field.name) rows=(rows) required[field.required]
                placeholder=[(!field.placeholder.is_empty()).then_some(field.placeholder)]
                spellcheck=[is_code.then_some("false")] autocomplete=(field.autocomplete)
                aria-describedby=[self.described.as_deref()] aria-invalid=[self.invalid.then_some("true")] {
                "\n" (input_value(self.value))
            }
        }
        .render_to(buffer);
    }

    /// Whether a choice of several is made.
    fn is_chosen(&self, choice: &str) -> bool {
        match self.entered {
            Some(entered) => entered.all(&self.field.name).any(|value| value == choice),
            None => self.field.value.split('\n').any(|value| value == choice),
        }
    }

    fn groups(&self, groups: &[ChoiceGroup], buffer: &mut Buffer) {
        let mut numbered = Vec::new();
        let mut first = 0;
        for group in groups {
            numbered.push((first, group));
            first += group.choices.len();
        }
        maud! {
            div.choice-groups {
                @for &(first, group) in &numbered {
                    div role="group" aria-labelledby={ (self.id) "-group-" (first) } {
                        p.choice-title id={ (self.id) "-group-" (first) } { (group.title) }
                        (choice_list(self, "checkbox", &group.choices, first))
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// Choices of a control; their ids are numbered from `first`.
fn choice_list(control: &ControlView<'_>, kind: &str, choices: &[(String, String)], first: usize) -> impl Renderable {
    maud! {
        @for (n, (choice, label)) in choices.iter().enumerate() {
            @let n = n + first;
            div.choice {
                input id={ (control.id) "-" (n) } type=(kind) name=(control.field.name) value=(choice)
                    checked[control.is_chosen(choice)];
                label for={ (control.id) "-" (n) } { (label) }
            }
        }
    }
}

impl Renderable for ControlView<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let field = self.field;
        match &field.control {
            Control::Text | Control::Money { .. } | Control::Percent => self.input("text", buffer),
            Control::Email => self.input("email", buffer),
            Control::Url => self.input("url", buffer),
            Control::Password => self.input("password", buffer),
            Control::Number { .. } => self.input("number", buffer),
            Control::DateTime => self.input("datetime-local", buffer),
            Control::Area { rows } | Control::Lines { rows } => self.area(*rows, false, buffer),
            Control::Code { rows } | Control::Json { rows } => self.area(*rows, true, buffer),
            Control::Select(choices) => maud! {
                select id=(self.id) name=(field.name) aria-describedby=[self.described.as_deref()]
                    aria-invalid=[self.invalid.then_some("true")] {
                    @for (choice, label) in choices {
                        option value=(choice) selected[choice == self.value] { (label) }
                    }
                }
            }
            .render_to(buffer),
            Control::Radio(choices) => choice_list(self, "radio", choices, 0).render_to(buffer),
            Control::Checkboxes(choices) => choice_list(self, "checkbox", choices, 0).render_to(buffer),
            Control::CheckboxGroups(groups) => self.groups(groups, buffer),
            Control::Checkbox => maud! {
                input id=(self.id) type="checkbox" name=(field.name) value="true"
                    checked[self.value == "true"] aria-describedby=[self.described.as_deref()];
            }
            .render_to(buffer),
            Control::File { accept } | Control::Files { accept } => maud! {
                input id=(self.id) type="file" name=(field.name) accept=[(!accept.is_empty()).then_some(*accept)]
                    multiple[matches!(field.control, Control::Files { .. })] required[field.required]
                    aria-describedby=[self.described.as_deref()];
            }
            .render_to(buffer),
            Control::Hidden => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_become_bodies() {
        let fields = vec![
            Field::text("name", "Name"),
            Field::new("to", "To", Control::Lines { rows: 2 }),
            Field::new("data.count", "Count", Control::Number { min: None, max: None }),
            Field::new("on", "On", Control::Checkbox),
            Field::text("note", "Note").empty(Empty::Null),
            Field::text("password", "Password").ignored(),
        ];
        let form = Form::new("x", "Save", fields);
        let body = form.read(&Fields::parse(b"name=+A+&to=a%40b.example%2C+c%0A%0Ad&data.count=7&note=&password=x"));
        let expected =
            json!({"name": "A", "to": ["a@b.example", "c", "d"], "data": {"count": 7}, "on": false, "note": null});
        assert_eq!(body.unwrap(), expected);
        let failure = form.read(&Fields::parse(b"data.count=x")).unwrap_err();
        assert_eq!(failure.fields["data.count"], "Enter a whole number");
    }

    #[test]
    fn errors_belong_to_fields() {
        assert!(belongs_to("to[2]", "to") && belongs_to("to", "to") && belongs_to("data.x", "data"));
        assert!(!belongs_to("token", "to"));
        let parts = ["[2]", "[0].name", ".plan", "[x]"].map(part_in_words);
        assert_eq!(error_sentence("is `x`", ""), "This is x");
        assert_eq!(error_sentence("there is no such domain", "a.example"), "There is no such domain");
        let list = "10.0.0.1\nada@example.com";
        let message = "ada@example.com: a network has the form 203.0.113.0/24";
        assert_eq!(error_sentence(message, list), message);
        assert_eq!(parts, ["Entry 3", "Entry 1, name", "plan", "[x]"]);
        assert_eq!(error_sentence("`html` or `text` is required", ""), "HTML or text is required");
        let names = ["steps", "reply_to", "steps[1].wait", "trigger.event"].map(field_in_words);
        assert_eq!(names, ["Steps", "Reply to", "Steps, entry 2, wait", "Trigger, event"]);
    }
}
