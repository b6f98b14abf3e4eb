//! `GET /funnels`: how many of the people who did the first step also did the following ones.
//!
//! The first time of each event is stored per person when events are counted (`store/src/person.rs`). A funnel reads
//! the people who did its first step in the range, at most [`PEOPLE_MAX`].

use std::ops::Range;

use jiff::SignedDuration;
use model::product_event::funnel::{Funnel, GroupBy, STEPS_MAX, StepCounts, basis_points};

use super::counts::event_names;
use crate::prelude::*;
use crate::time_range::time_or_date;

/// Maximum number of people per funnel.
const PEOPLE_MAX: usize = 50_000;
/// Longest range; person data is retained for this time.
const DAYS_MAX: i64 = 396;
/// Default range.
const DAYS: i64 = 30;

/// Query of `GET /funnels`.
#[derive(Debug)]
pub struct FunnelQuery {
    steps: Vec<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    group_by: Option<GroupBy>,
}

impl RequestQuery for FunnelQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let about = "The steps in order: event names and `visit`. For each person the first \
                     occurrence of a step counts";
        let schema = || {
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": STEPS_MAX,
                   "example": ["visit", "user.created", "user.activated", "subscription.started"]})
        };
        let steps = event_names(query, "steps", about, schema, STEPS_MAX)?;
        query.require();
        let from = "Start of the range of the first step, a time or a UTC date. Default: 30 days before `to`";
        let (from, to) = (
            time_or_date(query, "from", from)?,
            time_or_date(query, "to", "End of the range (exclusive). Default: now")?,
        );
        let group_by = query.word(
            "group_by",
            "Group by the source of the first visit, by `came_from` or by `signup_method`; at most 50 groups, \
             the others as `(other)`",
        )?;
        if steps.is_empty() {
            return Err(Problem::field("steps", "is required, like `visit,user.created`"));
        }
        if steps.iter().enumerate().any(|(n, step)| steps.iter().skip(n + 1).any(|other| other == step)) {
            return Err(Problem::field("steps", "has a duplicate step; only the first occurrence of each counts"));
        }
        Ok(Self { steps, from, to, group_by })
    }
}

impl FunnelQuery {
    fn time_range(&self, now: Timestamp) -> Result<Range<Timestamp>> {
        // Includes events of the current millisecond.
        let end = || now.checked_add(SignedDuration::from_millis(1)).unwrap_or(now);
        let to = self.to.unwrap_or_else(end);
        let ago = |days: i64| to.checked_sub(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::MIN);
        let from = self.from.unwrap_or_else(|| ago(DAYS));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        if from < ago(DAYS_MAX) {
            return Err(Problem::field("from", format!("must be at most {DAYS_MAX} days before `to`")));
        }
        Ok(from..to)
    }
}

/// A set-up step
#[derive(Debug, Serialize, ToSchema)]
pub struct FunnelStepView {
    /// The event name
    name: String,
    /// People who did this step after all previous steps, in order
    people: u64,
    /// Share of the people who did the first step, in basis points
    of_first_bp: u64,
    /// Share of the people who did the previous step, in basis points
    of_previous_bp: u64,
}

fn step_views(names: &[String], counts: &StepCounts) -> Vec<FunnelStepView> {
    let first = counts.0.first().copied().unwrap_or_default();
    let previous = std::iter::once(first).chain(counts.0.iter().copied());
    let step = |((name, people), previous): ((&String, &u64), u64)| FunnelStepView {
        name: name.clone(),
        people: *people,
        of_first_bp: basis_points(*people, first),
        of_previous_bp: basis_points(*people, previous),
    };
    names.iter().zip(&counts.0).zip(previous).map(step).collect()
}

/// A group
#[derive(Debug, Serialize, ToSchema)]
pub struct FunnelGroupView {
    /// The group's value; `(unknown)` if there is none
    group: String,
    /// The steps
    steps: Vec<FunnelStepView>,
}

/// A funnel; your own team and invited teammates are excluded
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Funnel")]
pub struct FunnelView {
    /// Start of the range in which the first step was done
    from: JsonTimestamp,
    /// End of the range (exclusive)
    to: JsonTimestamp,
    /// The steps
    steps: Vec<FunnelStepView>,
    /// The steps by group, if `group_by` was given; largest group first
    groups: Vec<FunnelGroupView>,
}

object_response! { "A funnel", pub FunnelResponse { funnel: FunnelView } }

/// `GET /funnels`.
///
/// # Errors
/// The range is too long or contains more than [`PEOPLE_MAX`] people; the store cannot be read.
pub async fn get(state: State, tenant: Tenant, request: FunnelQuery) -> Result<FunnelResponse> {
    let range = request.time_range(state.services.clock.now())?;
    super::aggregation::wait_until_counted(&state).await;
    let mut funnel = Funnel::new(&request.steps, range.clone(), request.group_by);
    let first = request.steps.first().map(String::as_str).unwrap_or_default();
    let (store, account) = (&state.services.store, tenant.account().id);
    let all = store::person::for_each_person_with_event(store, account, first, range.clone(), PEOPLE_MAX, |person| {
        funnel.add(person)
    })
    .await?;
    if !all {
        let text = format!("the range contains more than {PEOPLE_MAX} people; use a shorter range");
        return Err(Problem::field("from", text));
    }
    let mut groups: Vec<_> = funnel.groups.iter().collect();
    groups.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.0.first().copied()), *name));
    let group = |(name, counts): (&String, &StepCounts)| FunnelGroupView {
        group: name.clone(),
        steps: step_views(&request.steps, counts),
    };
    let groups = groups.into_iter().map(group).collect();
    let funnel = FunnelView {
        from: JsonTimestamp(range.start),
        to: JsonTimestamp(range.end),
        steps: step_views(&request.steps, &funnel.all),
        groups,
    };
    Ok(FunnelResponse { funnel })
}
