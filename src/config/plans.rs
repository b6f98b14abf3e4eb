//! `[plans.free]`, `[plans.pro]`, `[plans.scale]`, `[plans.dedicated]`: overrides of the plans' limits. Omitted keys
//! keep the specified limits ([`PlanLimits::for_plan`]).

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use model::account::Plan;
use model::plan::{PlanLimits, Plans};
use model::quota::{Noun, PlanQuotas};
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// A limit: a number, or `"unlimited"` (none).
#[derive(Debug, Clone, Copy)]
struct PlanBound<T>(Option<T>);

impl<'de, T: TryFrom<i64>> Deserialize<'de> for PlanBound<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct BoundVisitor<T>(PhantomData<T>);
        impl<T: TryFrom<i64>> de::Visitor<'_> for BoundVisitor<T> {
            type Value = PlanBound<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let max = if size_of::<T>() == size_of::<u32>() { i64::from(u32::MAX) } else { i64::MAX };
                write!(f, "a whole number from 0 to {max}, or \"unlimited\"")
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<PlanBound<T>, E> {
                T::try_from(n)
                    .map(|n| PlanBound(Some(n)))
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<PlanBound<T>, E> {
                match text {
                    "unlimited" => Ok(PlanBound(None)),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        input.deserialize_any(BoundVisitor(PhantomData))
    }
}

/// A key of `[plans.*.storage]`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StorageKey(Noun);

impl<'de> Deserialize<'de> for StorageKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let word = String::deserialize(input)?;
        Noun::from_word(&word).map(Self).ok_or_else(|| {
            let words: Vec<_> = Noun::ALL.iter().map(|noun| format!("`{}`", noun.word())).collect();
            de::Error::custom(format!("unknown field `{word}`, expected one of {}", words.join(", ")))
        })
    }
}

/// Overrides of one plan.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PlanSection {
    emails_per_month: Option<PlanBound<u64>>,
    emails_per_day: Option<PlanBound<u64>>,
    overage: Option<bool>,
    domains: Option<PlanBound<u32>>,
    requests_per_second: Option<u32>,
    affiliates: Option<bool>,
    storage: BTreeMap<StorageKey, PlanBound<u64>>,
}

impl PlanSection {
    fn apply_to(self, plan: Plan) -> PlanLimits {
        let default = PlanLimits::for_plan(plan);
        let mut storage: PlanQuotas = default.storage;
        for (StorageKey(noun), cap) in &self.storage {
            storage.set(*noun, cap.0);
        }
        PlanLimits {
            emails_per_month: self.emails_per_month.map_or(default.emails_per_month, |bound| bound.0),
            emails_per_day: self.emails_per_day.map_or(default.emails_per_day, |bound| bound.0),
            overage: self.overage.unwrap_or(default.overage),
            domains: self.domains.map_or(default.domains, |bound| bound.0),
            requests_per_second: self.requests_per_second.unwrap_or(default.requests_per_second),
            affiliates: self.affiliates.unwrap_or(default.affiliates),
            storage,
        }
    }
}

/// Deserializes the four plans.
pub(super) fn plans<'de, D: Deserializer<'de>>(input: D) -> Result<Plans, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct PlanSections {
        free: PlanSection,
        pro: PlanSection,
        scale: PlanSection,
        dedicated: PlanSection,
    }
    let PlanSections { free, pro, scale, dedicated } = PlanSections::deserialize(input)?;
    Ok(Plans {
        free: free.apply_to(Plan::Free),
        pro: pro.apply_to(Plan::Pro),
        scale: scale.apply_to(Plan::Scale),
        dedicated: dedicated.apply_to(Plan::Dedicated),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigProblem, from_text};
    use model::plan::{PlanLimits, Plans};
    use model::quota::Noun;

    const START: &str = "hostname = \"mx.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n";

    fn read(extra: &str) -> Result<Config, Vec<ConfigProblem>> {
        from_text(&format!("{START}{extra}"), [])
    }

    #[test]
    fn omitted_limits_keep_their_defaults() {
        let plans =
            read("[plans.free]\nemails_per_day = \"unlimited\"\ndomains = 3\n[plans.dedicated]\noverage = false\n");
        let default = Plans::default();
        let expected = Plans {
            free: PlanLimits { emails_per_day: None, domains: Some(3), ..default.free },
            dedicated: PlanLimits { overage: false, ..default.dedicated },
            ..default
        };
        assert_eq!(plans.unwrap().plans, expected);
    }

    #[test]
    fn invalid_limits_are_reported_with_their_line() {
        for (extra, expected) in [
            ("[plans.free]\nemails_per_day = -1\n", "line 5: "),
            ("[plans.free]\nemails_per_day = \"many\"\n", "line 5: "),
            ("[plans.pro]\nrequests_per_second = 0\n", "line 5: `requests_per_second` must be at least 1"),
            ("[plans.pro]\nrequests_per_second = \"unlimited\"\n", "line 5: "),
            ("[plans.pro]\ncolour = 1\n", "line 5: "),
            ("[plans.pro.storage]\ncolours = 1\n", "line 5: "),
            ("[plans.gold]\ndomains = 1\n", "line 4: "),
        ] {
            let found = read(extra).err().unwrap_or_default();
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert!(found.len() == 1 && found[0].starts_with(expected), "{extra}{found:#?}");
        }
    }

    #[test]
    fn one_storage_quota_is_changed_alone() {
        let plans = read("[plans.free.storage]\ntemplates = 3\nsuppressions = \"unlimited\"\n").unwrap().plans;
        let mut expected = Plans::default();
        expected.free.storage.set(Noun::Templates, Some(3));
        expected.free.storage.set(Noun::Suppressions, None);
        assert_eq!(plans, expected);
    }

    #[test]
    fn the_environment_overrides_plans() {
        let variables = [("POSTRIDER_PLANS_PRO_EMAILS_PER_MONTH".to_owned(), "unlimited".to_owned())];
        let config = from_text(START, variables).unwrap();
        assert_eq!(config.plans.pro.emails_per_month, None);
        let variables = [("POSTRIDER_PLANS_PRO_REQUESTS_PER_SECOND".to_owned(), "0".to_owned())];
        let found = from_text(START, variables).unwrap_err();
        assert!(found[0].text.starts_with("POSTRIDER_PLANS_PRO_REQUESTS_PER_SECOND: "), "{found:?}");
    }
}
