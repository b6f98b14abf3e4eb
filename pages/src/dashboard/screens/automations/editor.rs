//! The page of an automation: its trigger and steps in one form, and what saving would change.

use super::definition_text::definition_text;
use super::step_card::{CardContext, StepCard, StepCounts, comparison_list, insert_step};
use super::step_form::{OPERATORS, find, trigger_fields};
use super::working_copy::WorkingCopy;
use super::{AutomationDetail, automation_page, call, path, read_automation};
use crate::dashboard::form::{FormErrors, belongs_to, plain};
use crate::dashboard::kit::diff::LineDiff;
use crate::dashboard::kit::text::input_value;
use crate::dashboard::prelude::*;

/// The form's name.
pub const FORM: &str = "steps";
/// The id of the form, by which the script moves steps.
const FORM_ID: &str = "steps-form";

#[derive(Debug, Deserialize)]
struct TemplateName {
    id: String,
    alias: Option<String>,
    name: String,
}

/// The runs of the current version by step.
#[answer]
struct CountedSteps {
    steps: Vec<StepCounts>,
    runs: u64,
    has_more: bool,
}

/// The templates that a step can send, with the ones that the steps name already.
async fn template_choices(context: &Context<'_>, copy: &WorkingCopy) -> Vec<(String, String)> {
    let mut choices = vec![(String::new(), "None: subject and body below".to_owned())];
    let published = Call::new("list_templates").query("status", "published").query("limit", "100");
    let found: Vec<TemplateName> = context.read_allowed("templates", &published).await.unwrap_or_default();
    choices.extend(found.into_iter().map(|template| (template.alias.unwrap_or(template.id), template.name)));
    for step in &copy.steps {
        let named = find(step, "template");
        if !choices.iter().any(|(value, _)| value == named) {
            choices.push((named.to_owned(), named.to_owned()));
        }
    }
    choices
}

async fn read_counts(context: &Context<'_>, automation: &AutomationDetail) -> CountedSteps {
    if automation.activated_at.is_none() || !context.allows("count_automation_steps") {
        return CountedSteps::default();
    }
    let counts = context.read_field("step_counts", &call("count_automation_steps", &automation.id)).await;
    counts.unwrap_or_default()
}

/// The page.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let stored = WorkingCopy::stored(automation);
    let is_entered = context.failure_of(FORM).is_some();
    let mut copy = if is_entered { WorkingCopy::entered(context.form()) } else { stored.clone() };
    let focus = if context.is_preview() { copy.apply(&action(context.form())) } else { None };
    let failure = context.refused.as_ref().map(|refused| with_one_mode(&refused.failure));
    let templates = template_choices(context, &copy).await;
    let counted = read_counts(context, automation).await;
    let fields = copy.fields();
    let card = CardContext {
        fields: &fields,
        failure: failure.as_ref(),
        templates: &templates,
        stored: &stored.steps,
        counts: &counted.steps,
        focus,
        steps: copy.steps.len(),
        may_edit: context.allows("update_automation"),
        path: &context.request.path,
    };
    let editor = StepsEditor { context, automation, copy: &copy, card: &card, counted: &counted };
    let mut page = automation_page(context, automation, &automation.name, editor.view());
    page.trail.pop();
    page = page.actions(status_buttons(context, automation));
    let shown = json!({"trigger": automation.trigger, "steps": automation.steps});
    Ok(page
        .same_as(call("get_automation", &automation.id))
        .same_as(call("update_automation", &automation.id).json(shown))
        .into())
}

/// The API names comparisons `all` or `any`; the controls of both have the name `all`.
fn with_one_mode(failure: &Failure) -> Failure {
    let fields = failure.fields.iter().map(|(name, text)| (name.replace(".any[", ".all["), text.clone()));
    Failure { fields: fields.collect(), ..failure.clone() }
}

/// The action of a button, or of a step that was dragged.
fn action(form: &Fields) -> String {
    // A browser that goes back keeps the positions of a drag, so a button counts more.
    match (form.get("preview"), form.get("save"), form.get("from"), form.get("to")) {
        ("", "", from, to) if !from.is_empty() && !to.is_empty() => format!("move-{from}-{to}"),
        (preview, ..) => preview.to_owned(),
    }
}

/// Saves name, trigger and steps.
pub async fn save(context: &Context<'_>) -> Result<Outcome, Failure> {
    if action(context.form()).starts_with("move-") {
        return Err(Failure::preview());
    }
    let body = WorkingCopy::entered(context.form()).read()?;
    let automation = read_automation(context, &call("get_automation", context.id())).await?;
    context.check_seen(automation.updated_at.as_deref().unwrap_or_default())?;
    context.act(&call("update_automation", context.id()).json(body), path(context.id()), "changed").await
}

/// Status, and the button for the next one.
fn status_buttons(context: &Context<'_>, automation: &AutomationDetail) -> impl Renderable {
    let is_active = automation.status == "active";
    let (action, label) = if is_active { ("pause", "Pause") } else { ("activate", "Activate") };
    maud! {
        (Badge::of(&automation.status))
        @if context.allows("update_automation") {
            form.inline method="post" action=(context.request.path) {
                input type="hidden" name="csrf" value=(context.csrf());
                input type="hidden" name="form" value=(action);
                button.button.primary[!is_active] type="submit" { (label) }
            }
        }
    }
}

struct StepsEditor<'e> {
    context: &'e Context<'e>,
    automation: &'e AutomationDetail,
    copy: &'e WorkingCopy,
    card: &'e CardContext<'e>,
    counted: &'e CountedSteps,
}

impl StepsEditor<'_> {
    fn save_label(&self) -> String {
        let next = self.automation.version + 1;
        match (self.automation.status.as_str(), &self.automation.activated_at) {
            ("active", _) => format!("Save as version {next} and activate"),
            (_, Some(_)) => format!("Save as version {next}"),
            (_, None) => "Save".to_owned(),
        }
    }

    /// The trigger's rows, and a row for each step: errors of steps are shown by their cards.
    fn shown(&self) -> Vec<Field> {
        let mut shown = trigger_fields();
        shown.push(Field::text("name", "Name"));
        shown.push(Field::text("trigger.filter", "Filter"));
        shown.extend(
            (0..self.copy.steps.len())
                .map(|n| Field::new(format!("steps[{n}]"), "Step", crate::dashboard::form::Control::Text)),
        );
        shown
    }

    fn view(&self) -> impl Renderable {
        let (context, card, automation) = (self.context, self.card, self.automation);
        let shown = self.shown();
        let failure = card.failure.filter(|_| context.failure_of(FORM).is_some());
        let base = path(&automation.id);
        let seen = automation.updated_at.as_deref().unwrap_or_default();
        maud! {
            form.steps-form id=(FORM_ID) method="post" action=(context.request.path) data-preview="changes" data-once="" {
                input type="hidden" name="csrf" value=(context.csrf());
                input type="hidden" name="form" value=(FORM);
                input type="hidden" name=(seen_version::FIELD) value=(input_value(context.shown_version(seen)));
                // The script sets them when a step is dragged.
                input type="hidden" name="from" value="";
                input type="hidden" name="to" value="";
                // The first button answers the Enter key, so it saves nothing.
                button.hidden type="submit" name="preview" value="1" tabindex="-1" aria-hidden="true" { "Show the changes" }
                @if let Some(failure) = failure { (context.mark_shown(FORM)) (FormErrors { failure, fields: &shown }) }
                (trigger_card(card, find(&self.copy.head, "name")))
                section aria-labelledby="steps-title" {
                    h2 #steps-title { "Steps" }
                    @if automation.activated_at.is_some() {
                        p.help {
                            (counts_note(automation, self.counted))
                        }
                    }
                    @if self.copy.steps.is_empty() { p.soft { "There are no steps yet. Add the first one, usually an \
                        email." } }
                    ol.step-list data-reorder=[card.may_edit.then_some(FORM_ID)] {
                        @for (n, step) in self.copy.steps.iter().enumerate() { (StepCard { card, n, step }) }
                    }
                    (insert_step(card, self.copy.steps.len()))
                }
                section data-fragment="changes" { (changes(automation, self.copy)) }
                @if card.may_edit {
                    div.buttons.save-bar {
                        button.button.primary type="submit" name="save" value="1" { (self.save_label()) }
                        button.button type="submit" name="preview" value="1" formaction={ (card.path) "#changes" } { "Show the changes" }
                        @if context.allows("dry_run_automation") {
                            button.button type="submit" formaction={ (base) "/test" } { "Test these steps…" }
                        }
                        @if context.allows("replay_automation") {
                            button.button type="submit" formaction={ (base) "/replay" } { "Replay past events…" }
                        }
                    }
                }
            }
        }
    }
}

fn counts_note(automation: &AutomationDetail, steps: &CountedSteps) -> impl Renderable {
    let (automation, counts) = (automation, automation.counts);
    let (has_more, number) = (steps.has_more, counted(steps.runs, "run"));
    let runs = format!("{}/runs", path(&automation.id));
    maud! {
        (grouped(counts.running + counts.waiting)) " in progress, " (grouped(counts.completed)) " completed, "
        (grouped(counts.failed)) " failed, " (grouped(counts.cancelled)) " cancelled. "
        @if has_more {
            "The counts next to the steps are for version " (automation.version) ", in the latest 1,000 runs. "
        } @else {
            "The counts next to the steps are for version " (automation.version) " (" (number) "). "
        }
        a href=(runs) { "All runs" }
        @if automation.status == "active" { ". Runs that have started stay on their version." }
    }
}

fn trigger_card(card: &CardContext<'_>, name: &str) -> impl Renderable {
    let rows = trigger_fields();
    let event = match card.fields.get("trigger.event") {
        "" => "no event yet",
        event => event,
    };
    let name_field = Field::text("name", "Name").required();
    let is_wrong = card
        .failure
        .is_some_and(|failure| failure.fields.keys().any(|name| belongs_to(name, "trigger") || name == "name"));
    let is_open = is_wrong || card.steps == 0 || card.focus.is_none() && name.is_empty();
    maud! {
        section.card.trigger id="step-trigger" aria-labelledby="trigger-title" {
            h2 #trigger-title { "Trigger " code { (event) } }
            p.soft.small { (trigger_summary(card.fields)) }
            details open[is_open] {
                summary { "Edit name and trigger" }
                div.step-fields {
                    (card.field(&name_field))
                    @for field in &rows { (card.field(field)) }
                    (comparison_list(card, "trigger.filter.", "Only events for which", "row-trigger".into()))
                }
            }
        }
    }
}

/// The rules of a trigger besides its event, in a line.
fn trigger_summary(fields: &Fields) -> String {
    let mut sentences = vec![match fields.get("trigger.reentry") {
        "once" => "One run per person, ever.".to_owned(),
        "while_not_running" => "One run per person at a time.".to_owned(),
        _ => "Every event starts a run.".to_owned(),
    }];
    let field = fields.get("trigger.filter.all[0].field");
    if !field.is_empty() {
        let word = fields.get("trigger.filter.all[0].op");
        let operator = OPERATORS.iter().find(|(operator, _)| *operator == word).map_or(word, |(_, label)| label);
        let more = if fields.get("trigger.filter.all[1].field").is_empty() { "" } else { " …" };
        sentences.push(format!("Only if {field} {operator} {}{more}.", fields.get("trigger.filter.all[0].value")));
    }
    let cancelling = fields.get("trigger.cancel_on_events").lines().collect::<Vec<_>>().join(", ");
    if !cancelling.is_empty() {
        sentences.push(format!("Cancelled by {cancelling}."));
    }
    sentences.join(" ")
}

/// The changes that saving would make.
fn changes(automation: &AutomationDetail, copy: &WorkingCopy) -> Fragment {
    // The form trims values, so the stored definition is read through it too.
    let stored = WorkingCopy::stored(automation)
        .read()
        .unwrap_or_else(|_| json!({"name": automation.name, "trigger": automation.trigger, "steps": automation.steps}));
    let before = definition_text(&stored);
    let after = match copy.read() {
        Ok(definition) => definition_text(&definition),
        // The form says which field is wrong when it is sent.
        Err(failure) => {
            return Fragment::new(maud! {
                div #changes.notice.bad { @for (name, text) in &failure.fields { p { code { (name) } ": " (plain(text)) } } }
            });
        }
    };
    if before == after {
        return Fragment::new(maud! { span #changes {} });
    }
    let title = match automation.status.as_str() {
        "active" => "Changes against the active version",
        _ => "Unsaved changes",
    };
    Fragment::new(maud! {
        h2 #changes { (title) }
        (LineDiff { caption: title, before: &before, after: &after })
    })
}

/// The definition in a form: name, trigger and steps.
///
/// # Errors
/// A field has no such value.
pub fn entered_definition(context: &Context<'_>) -> Result<Value, Failure> {
    WorkingCopy::entered(context.form()).read()
}
