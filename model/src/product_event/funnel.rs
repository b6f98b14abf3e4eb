//! A funnel: of the people whose first step is within a time range, how many took the following steps in order.
//!
//! Only the first time of each step counts per person. Excluded people and seats are skipped.

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::Timestamp;
use message::words;

use super::counting_status::CountingStatus;
use super::person::AnalyticsPerson;

pub const STEPS_MAX: usize = 10;
/// Maximum number of groups; further labels are counted as [`OTHER`].
pub const GROUPS_MAX: usize = 50;
/// Group of people without a value.
pub const UNKNOWN: &str = "(unknown)";
/// Group of all labels beyond [`GROUPS_MAX`].
pub const OTHER: &str = "(other)";

words! {
    /// Property by which people are grouped.
    GroupBy {
        /// Source of their first visit.
        Source = "source",
        /// The product's own name of the origin.
        CameFrom = "came_from",
        SignupMethod = "signup_method",
    }
}

impl GroupBy {
    fn label(self, person: &AnalyticsPerson) -> &str {
        let label = match self {
            Self::Source => &person.source,
            Self::CameFrom => &person.came_from,
            Self::SignupMethod => &person.signup_method,
        };
        label.as_deref().unwrap_or(UNKNOWN)
    }
}

/// Number of people per step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepCounts(pub Vec<u64>);

impl StepCounts {
    fn add(&mut self, steps: usize, step_count: usize) {
        self.0.resize(step_count, 0);
        self.0.iter_mut().take(steps).for_each(|count| *count += 1);
    }
}

/// A funnel under computation.
#[derive(Debug)]
pub struct Funnel<'a> {
    steps: &'a [String],
    range: Range<Timestamp>,
    group_by: Option<GroupBy>,
    /// Counts of all people.
    pub all: StepCounts,
    /// Counts per group.
    pub groups: BTreeMap<String, StepCounts>,
}

impl<'a> Funnel<'a> {
    pub fn new(steps: &'a [String], range: Range<Timestamp>, group_by: Option<GroupBy>) -> Self {
        let all = StepCounts(vec![0; steps.len()]);
        Self { steps, range, group_by, all, groups: BTreeMap::new() }
    }

    pub fn add(&mut self, person: &AnalyticsPerson) {
        if person.standing != CountingStatus::Counted {
            return;
        }
        let reached = self.completed_steps(person);
        if reached == 0 {
            return;
        }
        self.all.add(reached, self.steps.len());
        if let Some(group_by) = self.group_by {
            let label = group_by.label(person);
            let is_new = !self.groups.contains_key(label);
            let label = if is_new && self.groups.len() >= GROUPS_MAX { OTHER } else { label };
            self.groups.entry(label.to_owned()).or_default().add(reached, self.steps.len());
        }
    }

    /// Number of consecutive steps that a person took in order.
    fn completed_steps(&self, person: &AnalyticsPerson) -> usize {
        let mut before = None;
        let completed = self.steps.iter().map_while(|step| {
            let at = *person.marks.get(step)?;
            let in_order = match before {
                None => self.range.contains(&at),
                Some(before) => at >= before,
            };
            before = Some(at);
            in_order.then_some(())
        });
        completed.count()
    }
}

/// A ratio in basis points (hundredths of a percent), rounded down; 0 if `whole` is 0.
pub fn basis_points(part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { u64::try_from(u128::from(part) * 10_000 / u128::from(whole)).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn person(marks: &[(&str, i64)], source: Option<&str>) -> AnalyticsPerson {
        let mut person = AnalyticsPerson { source: source.map(str::to_owned), ..AnalyticsPerson::default() };
        marks.iter().for_each(|(name, second)| person.mark(name, at(*second)));
        person
    }

    #[test]
    fn steps_count_in_order_and_within_the_window() {
        let steps: Vec<String> = ["visit", "a", "b"].map(str::to_owned).into();
        let mut funnel = Funnel::new(&steps, at(10)..at(20), Some(GroupBy::Source));
        for (marks, source) in [
            (&[("visit", 10), ("a", 10), ("b", 99)][..], Some("x")),
            (&[("visit", 19), ("b", 30)], Some("x")),
            (&[("visit", 12), ("a", 13), ("b", 11)], None),
            // Outside the range, and without the first step.
            (&[("visit", 20), ("a", 21)], Some("x")),
            (&[("visit", 9), ("a", 12)], Some("x")),
            (&[("a", 12), ("b", 13)], Some("x")),
        ] {
            funnel.add(&person(marks, source));
        }
        let mut own = person(&[("visit", 12)], Some("x"));
        own.exclude_or_keep(CountingStatus::Excluded);
        funnel.add(&own);
        assert_eq!(funnel.all, StepCounts(vec![3, 2, 1]));
        assert_eq!(funnel.groups["x"], StepCounts(vec![2, 1, 1]));
        assert_eq!(funnel.groups[UNKNOWN], StepCounts(vec![1, 1, 0]));
        for n in 0..2 * GROUPS_MAX {
            funnel.add(&person(&[("visit", 12)], Some(&n.to_string())));
        }
        assert_eq!(funnel.groups.len(), GROUPS_MAX + 1);
        assert_eq!((basis_points(1, 3), basis_points(0, 0), basis_points(u64::MAX, u64::MAX)), (3_333, 0, 10_000));
    }
}
