//! A funnel: of those who took the first step in a time, how many took the next ones, in order.
//!
//! What counts of each step is the first time that a person took it. Own people and seats are left out.

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::Timestamp;

use super::person::AnalyticsPerson;
use super::standing::CountingStatus;

/// Steps of a funnel.
pub const STEPS_MAX: usize = 10;
/// Groups that are told apart; the others are one.
pub const GROUPS_MAX: usize = 50;
/// Who says nothing of what is grouped by.
pub const UNKNOWN: &str = "(unknown)";
/// All beyond [`GROUPS_MAX`].
pub const OTHER: &str = "(other)";

/// By what people are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Where their first visit came from.
    Source,
    /// What the product calls their origin.
    CameFrom,
    /// How they signed up.
    SignupMethod,
}

impl GroupBy {
    /// What they are called on the wire.
    pub const WORDS: &'static [&'static str] = &["source", "came_from", "signup_method"];

    /// The one that is called so.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "source" => Some(Self::Source),
            "came_from" => Some(Self::CameFrom),
            "signup_method" => Some(Self::SignupMethod),
            _ => None,
        }
    }

    fn label(self, person: &AnalyticsPerson) -> &str {
        let label = match self {
            Self::Source => &person.source,
            Self::CameFrom => &person.came_from,
            Self::SignupMethod => &person.signup_method,
        };
        label.as_deref().unwrap_or(UNKNOWN)
    }
}

/// How many people took each step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepCounts(pub Vec<u64>);

impl StepCounts {
    fn add(&mut self, steps: usize, of: usize) {
        self.0.resize(of, 0);
        self.0.iter_mut().take(steps).for_each(|count| *count += 1);
    }
}

/// A funnel while people are put into it.
#[derive(Debug)]
pub struct Funnel<'a> {
    steps: &'a [String],
    range: Range<Timestamp>,
    group_by: Option<GroupBy>,
    /// All of them.
    pub all: StepCounts,
    /// By group.
    pub groups: BTreeMap<String, StepCounts>,
}

impl<'a> Funnel<'a> {
    /// An empty one.
    #[must_use]
    pub fn new(steps: &'a [String], range: Range<Timestamp>, group_by: Option<GroupBy>) -> Self {
        let all = StepCounts(vec![0; steps.len()]);
        Self { steps, range, group_by, all, groups: BTreeMap::new() }
    }

    /// Puts a person in.
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

    /// How many steps they took.
    fn completed_steps(&self, person: &AnalyticsPerson) -> usize {
        let mut before = None;
        let taken = self.steps.iter().map_while(|step| {
            let at = *person.marks.get(step)?;
            let in_order = match before {
                None => self.range.contains(&at),
                Some(before) => at >= before,
            };
            before = Some(at);
            in_order.then_some(())
        });
        taken.count()
    }
}

/// A share in basis points (hundredths of a percent), rounded down.
#[must_use]
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
    fn steps_in_order_within_the_time() {
        let steps: Vec<String> = ["visit", "a", "b"].map(str::to_owned).into();
        let mut funnel = Funnel::new(&steps, at(10)..at(20), Some(GroupBy::Source));
        for (marks, source) in [
            (&[("visit", 10), ("a", 10), ("b", 99)][..], Some("x")),
            (&[("visit", 19), ("b", 30)], Some("x")),
            (&[("visit", 12), ("a", 13), ("b", 11)], None),
            // Out of the time, and without the first step.
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
