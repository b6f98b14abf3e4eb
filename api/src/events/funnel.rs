//! `GET /funnels`: of those who took the first step, how many took the next ones.
//!
//! What each person did first and when is remembered as events are counted (`store/src/person.rs`): a funnel
//! reads those who took its first step in the range, and no more than [`PEOPLE_MAX`].

use std::ops::Range;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mail::product_event::funnel::{Funnel, GroupBy, STEPS_MAX, StepCounts, basis_points};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use super::counts::parse_event_names;
use crate::call::{FromRequest, Request, RequestSpec};
use crate::emails::view::JsonTimestamp;
use crate::page;
use crate::period::{parse_time_or_date, time_parameter};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// People that a funnel looks at.
const PEOPLE_MAX: usize = 50_000;
/// The longest range: people are kept for as long.
const DAYS_MAX: i64 = 396;
/// The range where none is asked for.
const DAYS: i64 = 30;

/// What `GET /funnels` takes.
#[derive(Debug)]
pub struct FunnelQuery {
    steps: Vec<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    group_by: Option<GroupBy>,
}

impl FromRequest for FunnelQuery {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let items = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": STEPS_MAX,
                           "example": ["visit", "user.created", "user.activated", "subscription.started"]});
        let about = "The steps, in order: names of events, and `visit`. Of a step counts the first time that a \
                     person took it";
        let mut steps = schema::query_parameter("steps", about, items);
        (steps["style"], steps["explode"]) = (json!("form"), json!(false));
        (steps["required"], steps["allowEmptyValue"]) = (json!(true), json!(false));
        let words = json!({"type": "string", "enum": GroupBy::WORDS});
        let parameters = vec![
            steps,
            time_parameter(
                "from",
                "Who took the first step from this time on: a time, or a date of UTC. Left out: 30 days before `to`",
            ),
            time_parameter("to", "The range ends before this time; left out: now"),
            schema::query_parameter(
                "group_by",
                "By the source of the first visit, by `came_from` or by `signup_method`; of 50 groups each is told, \
                 the others as `(other)`",
                words,
            ),
        ];
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let steps = parse_event_names(&given, "steps", STEPS_MAX)?;
        if steps.is_empty() {
            return Err(Problem::field("steps", "is required: `visit,user.created`"));
        }
        if steps.iter().enumerate().any(|(n, step)| steps.iter().skip(n + 1).any(|other| other == step)) {
            return Err(Problem::field("steps", "has a step twice; only the first time of each counts"));
        }
        let group_by = match page::single_value(&given, "group_by")? {
            None => None,
            Some(word) => {
                let words = GroupBy::WORDS.join("`, `");
                let wrong = || Problem::field("group_by", format!("must be one of `{words}`"));
                Some(GroupBy::from_word(word).ok_or_else(wrong)?)
            }
        };
        Ok(Self { steps, from: parse_time_or_date(&given, "from")?, to: parse_time_or_date(&given, "to")?, group_by })
    }
}

impl FunnelQuery {
    fn time_range(&self, now: Timestamp) -> Result<Range<Timestamp>, Problem> {
        // What happens this very moment belongs to it.
        let end = || now.checked_add(SignedDuration::from_millis(1)).unwrap_or(now);
        let to = self.to.unwrap_or_else(end);
        let ago = |days: i64| to.checked_sub(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::MIN);
        let from = self.from.unwrap_or_else(|| ago(DAYS));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        if from < ago(DAYS_MAX) {
            return Err(Problem::field("from", format!("is more than {DAYS_MAX} days before `to`")));
        }
        Ok(from..to)
    }
}

/// How many took a step.
#[derive(Debug, Serialize)]
pub struct FunnelStepView {
    name: String,
    people: u64,
    of_first_bp: u64,
    of_previous_bp: u64,
}

fn step_views(names: &[String], reached: &StepCounts) -> Vec<FunnelStepView> {
    let first = reached.0.first().copied().unwrap_or_default();
    let previous = std::iter::once(first).chain(reached.0.iter().copied());
    let step = |((name, people), previous): ((&String, &u64), u64)| FunnelStepView {
        name: name.clone(),
        people: *people,
        of_first_bp: basis_points(*people, first),
        of_previous_bp: basis_points(*people, previous),
    };
    names.iter().zip(&reached.0).zip(previous).map(step).collect()
}

/// A group, with its own steps.
#[derive(Debug, Serialize)]
pub struct FunnelGroupView {
    group: String,
    steps: Vec<FunnelStepView>,
}

/// The funnel.
#[derive(Debug, Serialize)]
pub struct FunnelView {
    from: JsonTimestamp,
    to: JsonTimestamp,
    steps: Vec<FunnelStepView>,
    groups: Vec<FunnelGroupView>,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct FunnelResponse {
    funnel: FunnelView,
}

impl ToSchema for FunnelResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let funnel = schemas.component("Funnel", |_| {
            let step = schema::object(
                "A step",
                [
                    ("name", schema::string("What was done")),
                    ("people", schema::count("Who took it, and all before it, in order")),
                    ("of_first_bp", schema::count("Their share of those who took the first, in basis points")),
                    ("of_previous_bp", schema::count("Their share of those who took the one before, in basis points")),
                ],
            );
            let group = schema::object(
                "A group",
                [
                    ("group", schema::string("What they have in common; `(unknown)` where nothing is known")),
                    ("steps", schema::list(step.clone(), "The steps")),
                ],
            );
            schema::object(
                "A funnel; your own people and invited teammates are left out",
                [
                    ("from", schema::time("From when on the first step was taken")),
                    ("to", schema::time("Before when")),
                    ("steps", schema::list(step, "The steps")),
                    ("groups", schema::list(group, "The same by group, if that was asked; the largest first")),
                ],
            )
        });
        schema::object("A funnel", [("funnel", funnel)])
    }
}

/// `GET /funnels`.
///
/// # Errors
/// The range is too long, or there are more people in it than a funnel looks at; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, asked: FunnelQuery) -> Result<FunnelResponse, Problem> {
    let range = asked.time_range(room.intake.clock().now())?;
    super::wait_until_counted(&room).await;
    let mut funnel = Funnel::new(&asked.steps, range.clone(), asked.group_by);
    let first = asked.steps.first().map(String::as_str).unwrap_or_default();
    let (store, who) = (room.intake.store(), (tenant.account().id, first));
    let all =
        store::person::for_each_who_did(store, who, range.clone(), PEOPLE_MAX, |person| funnel.add(person)).await?;
    if !all {
        let text = format!("there are more than {PEOPLE_MAX} people in this time; ask for a shorter one");
        return Err(Problem::field("from", text));
    }
    let mut groups: Vec<_> = funnel.groups.iter().collect();
    groups.sort_by_key(|(name, reached)| (std::cmp::Reverse(reached.0.first().copied()), *name));
    let group = |(name, reached): (&String, &StepCounts)| FunnelGroupView {
        group: name.clone(),
        steps: step_views(&asked.steps, reached),
    };
    let groups = groups.into_iter().map(group).collect();
    let funnel = FunnelView {
        from: JsonTimestamp(range.start),
        to: JsonTimestamp(range.end),
        steps: step_views(&asked.steps, &funnel.all),
        groups,
    };
    Ok(FunnelResponse { funnel })
}
