//! Funnels: how many people went from one step to the next. The steps are in the address.

use super::events::{EventCounts, top_names};
use crate::dashboard::context::raw;
use crate::dashboard::kit::chart::{FunnelChart, FunnelStep, Unit, percent};
use crate::dashboard::page::render;
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/funnels";
/// Most steps of the API.
const STEPS_MAX: usize = 10;
/// The steps that are shown first, as far as they occur.
const USUAL: [&str; 4] = ["visit", "user.created", "user.activated", "subscription.started"];
/// Names that are offered as next steps.
const OFFERED: usize = 12;

pub const PAGES: &[PageRow] = page_rows! {
    "/funnels" => show, reads ["get_funnel", "count_events"];
};

#[answer]
struct Funnel {
    steps: Vec<StepPeople>,
    groups: Vec<FunnelGroup>,
}

#[answer]
struct StepPeople {
    name: String,
    people: u64,
}

#[answer]
struct FunnelGroup {
    group: String,
    steps: Vec<StepPeople>,
}

fn filters() -> Vec<Filter> {
    let groups = [
        ("", "No groups"),
        ("source", "Source of the first visit"),
        ("came_from", "Self-reported source"),
        ("signup_method", "Sign-up method"),
    ];
    let mut filters = vec![Filter::text("steps", "Steps, separated by commas", "visit, user.created")];
    filters.extend(DateRange::filters());
    filters.push(Filter::select("group_by", "Compare by", choices(&groups)));
    filters
}

/// The steps of a query: without empty and repeated ones.
fn parse_steps(text: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for step in text.split(',').map(str::trim).filter(|step| !step.is_empty()) {
        if steps.iter().all(|other| other != step) && steps.len() < STEPS_MAX {
            steps.push(step.to_owned());
        }
    }
    steps
}

/// The page with other steps.
fn link(context: &Context<'_>, steps: &[String]) -> String {
    let query = context.query().with("steps", &steps.join(",")).with("done", "").to_query();
    format!("{PATH}?{query}")
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, wrong) = DateRange::read(query, context.now());
    let counts: EventCounts = context.read(&EventCounts::call(range, "")).await?;
    // A name with a comma cannot be a step.
    let known: Vec<String> =
        top_names(&counts).iter().map(|total| total.name.clone()).filter(|name| !name.contains(',')).collect();
    let mut steps = parse_steps(query.get("steps"));
    if steps.is_empty() {
        steps =
            USUAL.iter().filter(|step| known.iter().any(|name| name == *step)).map(|step| (*step).to_owned()).collect();
    }
    let steps = &steps;
    let bar = FilterBar { context, filters: &filters() };
    let call = range
        .between_times(Call::new("get_funnel").query("steps", steps.join(",")))
        .query("group_by", query.get("group_by"));
    let shown = match steps.is_empty() {
        true => Ok(None),
        false => match context.read_field::<Funnel>("funnel", &call).await {
            Ok(funnel) => Ok(Some(funnel)),
            Err(failure) if failure.status == 400 => Err(failure),
            Err(failure) => return Err(failure),
        },
    };
    let content = match &shown {
        Ok(None) => render(empty(context)),
        Ok(Some(funnel)) => render(maud! { (chart(funnel)) (groups(funnel)) }),
        Err(failure) => render(Notice { tone: Tone::Bad, text: &failure.message.replace('`', "") }),
    };
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if let Some(wrong) = wrong { (Notice { tone: Tone::Bad, text: wrong }) }
            @if !steps.is_empty() { (step_links(context, steps, &known)) }
            (raw(&content))
        }
    };
    let page = Page::new("Funnels", body)
        .lead("How many people went from one step to the next. For each person, the first time of each step counts.");
    Ok(if steps.is_empty() { page } else { page.same_as(call) }.into())
}

/// Links that take a step away, move it forward, or add one.
fn step_links(context: &Context<'_>, steps: &[String], known: &[String]) -> impl Renderable {
    let without = |n: usize| {
        let mut steps = steps.to_vec();
        steps.remove(n);
        link(context, &steps)
    };
    let earlier = |n: usize| {
        let mut steps = steps.to_vec();
        steps.swap(n, n - 1);
        link(context, &steps)
    };
    let with = |name: &String| link(context, &[steps, std::slice::from_ref(name)].concat());
    let offered: Vec<_> = known.iter().filter(|name| !steps.contains(name)).take(OFFERED).collect();
    let (shown, can_add) = (steps.iter().enumerate(), steps.len() < STEPS_MAX && !offered.is_empty());
    let chips = render(maud! {
        h2.hidden { "Steps" }
        ol.step-names {
            @for (n, step) in shown.clone() {
                li.step-name {
                    (step)
                    @if n > 0 { " " a href=(earlier(n)) aria-label={ "Move " (step) " one step forward" } title="One step forward" { "←" } }
                    @if steps.len() > 1 { " " a href=(without(n)) aria-label={ "Remove " (step) } title="Remove" { "×" } }
                }
            }
        }
        @if can_add {
            p.step-names.small {
                span.soft { "Add: " }
                @for name in &offered { a.step-name href=(with(name)) { "+ " (name) } }
            }
        }
    });
    maud! { (raw(&chips)) }
}

fn chart(funnel: &Funnel) -> impl Renderable {
    let steps: Vec<_> =
        funnel.steps.iter().map(|step| FunnelStep { name: step.name.clone(), people: step.people }).collect();
    let (first, last) = (steps.first().map_or(0, |step| step.people), steps.last().map_or(0, |step| step.people));
    let text = match percent(last, first) {
        Some(rate) if steps.len() > 1 => {
            format!("{} of the people in the first step completed the last one.", Unit::Percent.exact(rate))
        }
        _ => "Nobody completed the first step in this range.".to_owned(),
    };
    let chart = render(FunnelChart { title: "Funnel", steps: &steps });
    let one = steps.len() == 1 && first > 0;
    maud! {
        div.card {
            @if !one { p.soft { (text) } }
            (raw(&chart))
            @if steps.len() == 1 { p.soft { "Add a second step to see who continued." } }
        }
    }
}

fn groups(funnel: &Funnel) -> impl Renderable {
    let columns = std::iter::once("Group".to_owned())
        .chain(funnel.steps.iter().map(|step| step.name.clone()))
        .chain(std::iter::once("First to last".to_owned()));
    let columns: Vec<_> = columns.collect();
    let numbers: Vec<_> = columns.iter().skip(1).map(String::as_str).collect();
    let table =
        Table::with_columns("The funnel by group", columns.clone()).numbers(&numbers).rows(&funnel.groups, |group| {
            let (first, last) = (group.steps.first(), group.steps.last());
            let rate = percent(last.map_or(0, |step| step.people), first.map_or(0, |step| step.people));
            let row =
                group.steps.iter().fold(Row::new().cell(&group.group), |row, step| row.cell(grouped(step.people)));
            row.cell(rate.map_or_else(|| "–".to_owned(), |rate| Unit::Percent.exact(rate)))
        });
    let table = if table.is_empty() { String::new() } else { render(table) };
    maud! { @if !table.is_empty() { section { h2 { "By group" } (raw(&table)) } } }
}

fn empty<'a>(context: &Context<'_>) -> EmptyState<'a> {
    EmptyState {
        title: "No events for a funnel",
        text: "A funnel counts people from step to step: for example from their first visit to user.created and on to \
               subscription.started. Send these events, and choose the steps above.",
        action: context.allows("send_event").then_some(("/dashboard/events/new", "Send a test event")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};

    fn backend() -> FakeBackend {
        let steps = json!([{"name": "visit", "people": 200}, {"name": HOSTILE, "people": 50}]);
        FakeBackend::new()
            .answer("count_events", json!({"totals": [{"name": "visit", "count": 9}, {"name": HOSTILE, "count": 7}]}))
            .answer("get_funnel", json!({"funnel": {"steps": steps, "groups": [{"group": HOSTILE, "steps": steps}]}}))
    }

    #[test]
    fn funnels_are_drawn() {
        let backend = backend();
        let page = html(backend.get("/funnels?steps=visit,+x,x&group_by=source"));
        assert_harmless(&page);
        assert!(
            page.contains("25.0\u{202f}% of the people in the first step completed the last one.")
                && page.contains("By group")
        );
        assert!(page.contains("steps=x%2Cvisit") && page.contains("aria-label=\"Remove visit\""));
        assert!(backend.calls("get_funnel")[0].query.contains(&("steps".to_owned(), "visit,x".to_owned())));
        html(backend.get("/funnels"));
        assert!(backend.calls("get_funnel")[1].query.contains(&("steps".to_owned(), "visit".to_owned())));
    }

    #[test]
    fn funnels_without_events_and_refused_ones_are_explained() {
        let none = FakeBackend::new().answer("count_events", json!({"totals": []}));
        assert!(html(none.get("/funnels")).contains("No events for a funnel"));
        let refused = backend().refuse("get_funnel", Failure::field("group_by", "must be one of `source`"));
        assert!(html(refused.get("/funnels?group_by=x")).contains("must be one of source"));
    }

    #[test]
    fn steps_are_read_from_the_address() {
        assert_eq!(parse_steps(" visit, user.created,,visit , x"), ["visit", "user.created", "x"]);
        assert_eq!(parse_steps("a,b,c,d,e,f,g,h,i,j,k,l").len(), STEPS_MAX);
        assert!(parse_steps(" , ").is_empty());
    }
}
