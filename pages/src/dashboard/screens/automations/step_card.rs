//! A step in the list: what it does, its runs, its buttons, and its controls.

use super::step_form::{DAYS, OPERATORS, Pairs, StepKind, comparison_fields, find, naming_fields, step_fields};
use super::working_copy::{ORIGIN, STEPS_MAX, kind_of};
use crate::dashboard::form::{FieldView, belongs_to, plain};
use crate::dashboard::kit::text::input_value;
use crate::dashboard::prelude::*;

/// The runs that are at a step, and what became of the others there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StepCounts {
    pub waiting: u64,
    pub passed: u64,
    pub failed: u64,
    /// Completed although other steps follow.
    pub ended: u64,
    pub cancelled: u64,
}

/// A step in a line. `fields` has all steps.
fn summary(kind: StepKind, step: &Pairs, fields: &Fields) -> String {
    let value = |name: &str| find(step, name).trim();
    match kind {
        StepKind::SendEmail => match (value("template"), value("subject")) {
            ("", "") => "Choose a template, or write a subject and a body".into(),
            ("", subject) => format!("“{subject}”"),
            (template, _) => format!("Template {template}"),
        },
        StepKind::Delay => match (value("duration"), value("until")) {
            ("", "") => "Enter how long".into(),
            ("", until) => format!("Until {until}{}", window_summary(step)),
            (duration, _) => format!("For {duration}{}", window_summary(step)),
        },
        StepKind::WaitForEvent => match (value("event"), value("timeout")) {
            ("", _) => "Choose the event".into(),
            (event, timeout) => format!("{event}, at most {timeout}"),
        },
        StepKind::Condition => condition_summary(step, fields),
        StepKind::Sms => format!("To {}", value("to")),
    }
}

/// The days and hours in which a delay ends: `, then until Monday or Friday, 09:00-17:00 Europe/Berlin`.
fn window_summary(step: &Pairs) -> String {
    let value = |name: &str| find(step, name).trim();
    let is_chosen = |day: &str| step.iter().any(|(name, value)| name == "window.days" && value == day);
    let days: Vec<_> = DAYS.iter().filter(|(word, ..)| is_chosen(word)).map(|(_, _, name)| *name).collect();
    let days = match days.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    let parts: Vec<_> = [days.as_str(), value("window.hours")].into_iter().filter(|part| !part.is_empty()).collect();
    match (parts.join(", "), value("window.tz")) {
        (window, _) if window.is_empty() => String::new(),
        (window, zone) => format!(", then until {window} {zone}").trim_end().to_owned(),
    }
}

fn condition_summary(step: &Pairs, fields: &Fields) -> String {
    let first = |part: &str| find(step, &format!("all[0].{part}"));
    if first("field").is_empty() {
        return "Enter what to check".into();
    }
    let operator = OPERATORS.iter().find(|(word, _)| *word == first("op")).map_or("", |(_, label)| label);
    let more = if find(step, "all[1].field").is_empty() { "" } else { " …" };
    let otherwise = match find(step, "on_false") {
        "skip_to" => format!("go to {}", target_label(find(step, "target").trim(), fields)),
        _ => "end".into(),
    };
    format!("{} {operator} {}{more}, else {otherwise}", first("field"), first("value"))
}

/// The step that a condition goes to, by its number on the page; a key that no step has stays as it is.
fn target_label(target: &str, fields: &Fields) -> String {
    let has_key = |n: &usize| fields.get(&format!("steps[{n}].key")).trim() == target;
    let keyed = || (0..STEPS_MAX).find(has_key).filter(|_| !target.is_empty());
    // The API counts from 0.
    let index: Option<usize> = target.parse().ok().or_else(keyed);
    index.map_or_else(|| target.to_owned(), |n| format!("step {}", n.saturating_add(1)))
}

/// The values of a step in one order, without those that mean nothing.
fn comparable(step: &Pairs) -> Pairs {
    let means_nothing = |name: &str, value: &str| {
        let prefix = name.strip_suffix("mode");
        value.trim().is_empty() || prefix.is_some_and(|prefix| find(step, &format!("{prefix}all[0].field")).is_empty())
    };
    let filled = step.iter().filter(|(name, value)| !means_nothing(name, value));
    // JSON with other spaces is the same.
    let written = filled.map(|(name, value)| match serde_json::from_str::<serde_json::Value>(value) {
        Ok(json) if name == "variables" => (name.clone(), json.to_string()),
        _ => (name.clone(), value.trim().to_owned()),
    });
    let mut pairs: Pairs = written.collect();
    pairs.sort();
    pairs
}

/// True if a field is needed seldom; it is shown below the others. The bodies of an email are, with a template.
fn is_rare(kind: StepKind, local: &str, has_template: bool) -> bool {
    match local {
        "name" | "key" | "from" | "reply_to" | "category" | "tags" | "template_version" | "match"
        | "include_machine" => true,
        "to" => kind == StepKind::SendEmail,
        "html" | "text" => has_template,
        local => local.starts_with("window."),
    }
}

/// The state that all cards of a page share.
pub struct CardContext<'e> {
    pub fields: &'e Fields,
    pub failure: Option<&'e Failure>,
    pub templates: &'e [(String, String)],
    pub stored: &'e [Pairs],
    pub counts: &'e [StepCounts],
    /// The step that the last button was about.
    pub focus: Option<usize>,
    pub steps: usize,
    pub may_edit: bool,
    /// The page's path, so that a button leads back to its step.
    pub path: &'e str,
}

impl CardContext<'_> {
    /// A field with its value and error.
    pub fn field<'f>(&'f self, field: &'f Field) -> FieldView<'f> {
        FieldView { form: super::editor::FORM, field, entered: Some(self.fields), failure: self.failure }
    }
}

/// The controls of comparisons, and a row for another one.
///
/// `prefix`: `steps[2].`, `steps[1].filter.` or `trigger.filter.`. `action`: the value of the button that adds a row.
pub fn comparison_list(card: &CardContext<'_>, prefix: &str, title: &str, action: String) -> impl Renderable {
    let filled = (0..).take_while(|n| card.fields.find(&format!("{prefix}all[{n}].field")).is_some()).count();
    let rows = if card.may_edit { filled + 1 } else { filled };
    let mode_id = format!("{}mode", prefix.replace(['.', '[', ']'], "-"));
    let is_any = card.fields.get(&format!("{prefix}mode")) == "any";
    maud! {
        fieldset.comparisons {
            legend { (title) }
            div.field {
                label.hidden for=(mode_id) { "Combine with" }
                select id=(mode_id) name={ (prefix) "mode" } {
                    option value="all" { "All of these are true" }
                    option value="any" selected[is_any] { "At least one of these is true" }
                }
            }
            @for n in 0..rows {
                div.row { @for field in &comparison_fields(prefix, n) { (card.field(field)) } }
            }
            @if card.may_edit {
                button.button.small type="submit" name="preview" value=(action)
                    formaction={ (card.path) "#" (action.replace("row-", "step-")) } { "Add another comparison" }
            }
        }
    }
}

pub struct StepCard<'c, 'e> {
    pub card: &'c CardContext<'e>,
    pub n: usize,
    pub step: &'c Pairs,
}

impl StepCard<'_, '_> {
    fn stored(&self) -> Option<&Pairs> {
        self.card.stored.get(self.origin()?)
    }

    fn origin(&self) -> Option<usize> {
        find(self.step, ORIGIN).parse().ok()
    }

    fn is_edited(&self) -> bool {
        self.stored().is_some_and(|stored| comparable(stored) != comparable(self.step))
    }

    /// Errors of the step that belong to none of its controls.
    fn stray_errors(&self, fields: &[Field]) -> Vec<&str> {
        let prefix = format!("steps[{}]", self.n);
        let errors = self.card.failure.into_iter().flat_map(|failure| &failure.fields);
        let own = errors.filter(|(name, _)| belongs_to(name, &prefix));
        let is_shown = |name: &str| fields.iter().any(|field| belongs_to(name, &field.name)) || name.contains(".all[");
        own.filter(|(name, _)| !is_shown(name)).map(|(_, text)| text.as_str()).collect()
    }

    fn has_errors(&self) -> bool {
        let prefix = format!("steps[{}]", self.n);
        self.card.failure.is_some_and(|failure| failure.fields.keys().any(|name| belongs_to(name, &prefix)))
    }
}

impl Renderable for StepCard<'_, '_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (card, n) = (self.card, self.n);
        let Some(kind) = kind_of(self.step) else { return };
        let prefix = format!("steps[{n}]");
        let mut fields = step_fields(kind, &prefix, card.templates);
        fields.extend(naming_fields(&prefix));
        let errors = self.stray_errors(&fields);
        let has_template = !find(self.step, "template").is_empty();
        let local = |field: &Field| {
            field.name.strip_prefix(&prefix).map_or("", |local| local.trim_start_matches('.')).to_owned()
        };
        let (rare, usual): (Vec<&Field>, Vec<&Field>) =
            fields.iter().partition(|field| is_rare(kind, &local(field), has_template));
        let has_rare_error = card.failure.is_some_and(|failure| {
            rare.iter().any(|field| failure.fields.keys().any(|name| belongs_to(name, &field.name)))
        });
        let is_open = self.has_errors() || card.focus == Some(n) || self.is_edited();
        let name = find(self.step, "name");
        let comparisons = match kind {
            StepKind::Condition => Some((format!("{prefix}."), "True if")),
            StepKind::WaitForEvent => Some((format!("{prefix}.filter."), "Only events for which")),
            _ => None,
        };
        maud! {
            li id={ "step-" (n) } {
                @if n > 0 { div.between { (insert_step(card, n)) } }
                div.step-card {
                input type="hidden" name={ (prefix) ".type" } value=(kind.word());
                @if let Some(origin) = self.origin() {
                    input type="hidden" name={ (prefix) "." (ORIGIN) } value=(origin);
                }
                div.step-head {
                    span.step-number aria-hidden="true" { (n + 1) }
                    div.step-title {
                        h3 {
                            (kind.label())
                            @if !name.is_empty() { span.soft { " · " (name) } }
                        }
                        p { (summary(kind, self.step, card.fields)) }
                    }
                    (step_state(self.origin().and_then(|origin| card.counts.get(origin)), self.stored().is_none(), self.is_edited()))
                    @if card.may_edit { (step_buttons(card, n)) }
                }
                @for error in &errors { p.error { (plain(error)) } }
                details open[is_open] {
                    summary { @if card.may_edit { "Edit" } @else { "Show" } span.hidden { " step " (n + 1) } }
                    div.step-fields {
                        @for field in &usual { (card.field(field)) }
                        @if let Some((prefix, title)) = &comparisons {
                            (comparison_list(card, prefix, title, format!("row-{n}")))
                        }
                        details.more-settings open[has_rare_error] {
                            summary { "More settings" span.hidden { " of step " (n + 1) } }
                            div.step-fields { @for field in &rare { (card.field(field)) } }
                        }
                    }
                }
                }
            }
        }
        .render_to(buffer);
    }
}

fn step_state(counts: Option<&StepCounts>, is_new: bool, is_edited: bool) -> impl Renderable {
    let counts = counts.copied().unwrap_or_default();
    maud! {
        p.step-state {
            @if is_new {
                (Badge::new("New", Tone::Active))
            } @else if is_edited {
                (Badge::new("Edited", Tone::Active))
            }
            @if counts.waiting > 0 { (Badge::new(format!("{} here", counts.waiting), Tone::Warning)) }
            @if counts.passed > 0 { (Badge::new(format!("{} passed", counts.passed), Tone::Good)) }
            @if counts.ended > 0 { (Badge::new(format!("{} ended here", counts.ended), Tone::Neutral)) }
            @if counts.failed > 0 { (Badge::new(format!("{} failed", counts.failed), Tone::Bad)) }
            @if counts.cancelled > 0 { (Badge::new(format!("{} cancelled", counts.cancelled), Tone::Neutral)) }
        }
    }
}

fn step_buttons(card: &CardContext<'_>, n: usize) -> impl Renderable {
    let (last, path) = (card.steps - 1, card.path);
    let button = move |verb: &'static str, label: &'static str, to: usize, disabled: bool| {
        let (value, target) = (format!("{verb}-{n}"), format!("{path}#step-{to}"));
        maud! {
            button.button.quiet.small type="submit" name="preview" value=(input_value(&value)) formaction=(target)
                disabled[disabled] { (label) span.hidden { " step " (n + 1) } }
        }
        .memoize()
    };
    maud! {
        div.step-buttons {
            (button("up", "Up", n.saturating_sub(1), n == 0))
            (button("down", "Down", n + 1, n == last))
            (button("copy", "Copy", n + 1, card.steps >= STEPS_MAX))
            (button("remove", "Remove", n, false))
        }
    }
}

/// The buttons that insert a step at a position.
pub fn insert_step(card: &CardContext<'_>, at: usize) -> Fragment {
    if !card.may_edit || card.steps >= STEPS_MAX {
        return Fragment::default();
    }
    Fragment::new(maud! {
        details.insert open[card.steps == 0] {
            summary {
                @if at == card.steps { "Add a step" } @else { "Insert a step" span.hidden { " before step " (at + 1) } }
            }
            div.buttons {
                @for kind in StepKind::ALL {
                    button.button.small type="submit" name="preview" value={ "insert-" (at) "-" (kind.word()) }
                        formaction={ (card.path) "#step-" (at) } { (kind.label()) }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::step_form::to_pairs;
    use super::*;

    #[test]
    fn steps_are_summed_up() {
        let fields = Fields::from_pairs(vec![("steps[2].key".into(), "last".into())]);
        let of = |step: serde_json::Value| {
            let pairs = to_pairs(&step);
            summary(kind_of(&pairs).unwrap(), &pairs, &fields)
        };
        assert_eq!(of(json!({"type": "send_email", "template": "welcome", "subject": "x"})), "Template welcome");
        assert_eq!(of(json!({"type": "wait_for_event", "event": "e", "timeout": "3d"})), "e, at most 3d");
        let window = json!({"days": ["mon", "wed", "fri"], "hours": "09:00-17:00", "tz": "Europe/Berlin"});
        assert_eq!(
            of(json!({"type": "delay", "duration": "2d", "window": window})),
            "For 2d, then until Monday, Wednesday or Friday, 09:00-17:00 Europe/Berlin"
        );
        assert_eq!(
            of(json!({"type": "delay", "until": "x", "window": {"days": ["sat"]}})),
            "Until x, then until Saturday"
        );
        assert_eq!(of(json!({"type": "delay", "duration": "2d", "window": {"tz": "UTC"}})), "For 2d");
        let condition = json!({"type": "condition", "any": [{"field": "event.email", "op": "ends_with", "value": "@a"}], "on_false": "stop"});
        assert_eq!(of(condition), "event.email ends with @a, else end");
        let skip = |target: serde_json::Value| {
            let all = json!([{"field": "event.email", "op": "exists"}]);
            of(json!({"type": "condition", "all": all, "on_false": "skip_to", "target": target}))
        };
        assert!(skip(json!(3)).ends_with("else go to step 4"));
        assert!(skip(json!("last")).ends_with("else go to step 3"));
        assert!(skip(json!("other")).ends_with("else go to other"));
    }
}
