//! `[[delivery.pools]]`: source addresses used only for some accounts' mail.

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::civil::Date;
use message::address::DomainName;
use model::account::Plan;
use model::slug::PoolName;
use model::warm_up::{WarmUpCurve, WarmUpCurveError};
use queue::scheduler::source_pools::{PoolSettings, SourceAddresses};

use super::DeliverySection;
use super::section::section;
use super::values::{one_or_many, parsed};

section! {
    /// `[[delivery.pools]]`
    #[derive(PartialEq, Eq)]
    PoolSection {
        /// Name of the pool. Required; checked after parsing, to report all problems together.
        name: String,
        /// Addresses of this machine.
        #[serde(deserialize_with = "one_or_many")]
        addresses: Vec<IpAddr>,
        /// EHLO name of these addresses; none means `hostname`.
        #[serde(deserialize_with = "parsed::host_name_option")]
        hostname: Option<DomainName>,
        /// Plans whose accounts send from this pool.
        #[serde(deserialize_with = "one_or_many")]
        plans: Vec<Plan>,
        /// First day of the warm-up; none: the addresses need no warm-up.
        #[serde(deserialize_with = "parsed::day_option")]
        warm_up: Option<Date>,
        /// Daily messages per address and provider, from the first day on.
        warm_up_messages: Option<Vec<u32>>,
        /// Pool that takes messages above the warm-up limit.
        spill_over: Option<String>,
    }
}

impl PoolSection {
    fn warm_up_curve(&self) -> Result<WarmUpCurve, WarmUpCurveError> {
        self.warm_up_messages.clone().map_or_else(|| Ok(WarmUpCurve::default()), WarmUpCurve::try_from)
    }

    /// Converts to the queue's settings. Returns none for an invalid section; its faults are reported separately.
    fn to_pool_settings(&self) -> Option<PoolSettings> {
        Some(PoolSettings {
            source: SourceAddresses {
                pool: self.name.parse().ok()?,
                addresses: self.addresses.clone(),
                helo: self.hostname.clone(),
            },
            plans: self.plans.clone(),
            warm_up: self.warm_up,
            curve: self.warm_up_curve().ok()?,
            spill_over: self.spill_over.as_ref().and_then(|name| name.parse().ok()),
        })
    }

    fn find_faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        match self.name.parse::<PoolName>() {
            Err(error) => {
                faults.push(("name", format!("[[delivery.pools]] requires a `name`, which {error}")));
            }
            Ok(name) if name == PoolName::default() => {
                let text = "`default` is the name of the pool of `source_addresses` in [delivery]: use another name";
                faults.push(("name", text.to_owned()));
            }
            Ok(_) => {}
        }
        if self.addresses.is_empty() {
            let text = "[[delivery.pools]] requires `addresses`, the source addresses on this machine";
            faults.push(("addresses", text.to_owned()));
        }
        if let Err(error) = self.warm_up_curve() {
            faults.push(("warm_up_messages", format!("`warm_up_messages` {error}")));
        }
        faults
    }
}

impl DeliverySection {
    /// Settings of all valid pools.
    pub fn pool_settings(&self) -> Vec<PoolSettings> {
        self.pools.iter().filter_map(PoolSection::to_pool_settings).collect()
    }

    /// All source addresses, each with its EHLO name if that is not `hostname`.
    pub fn all_source_addresses(&self) -> Vec<(IpAddr, Option<&DomainName>)> {
        let default = self.source_addresses.iter().map(|address| (*address, None));
        let pools = self
            .pools
            .iter()
            .flat_map(|pool| pool.addresses.iter().map(move |address| (*address, pool.hostname.as_ref())));
        default.chain(pools).collect()
    }

    /// Finds problems of the pools: index of the section, key, and text.
    pub(super) fn pool_faults(&self) -> Vec<(usize, &'static str, String)> {
        let mut faults = Vec::new();
        let (mut names, mut plans) = (HashMap::new(), HashMap::new());
        let mut addresses: HashMap<IpAddr, &str> =
            self.source_addresses.iter().map(|address| (*address, "default")).collect();
        for (index, pool) in self.pools.iter().enumerate() {
            faults.extend(pool.find_faults().into_iter().map(|(key, text)| (index, key, text)));
            if !pool.name.is_empty() && names.insert(pool.name.as_str(), pool).is_some() {
                faults.push((index, "name", format!("`{}` is the name of another pool: use another name", pool.name)));
            }
            for plan in &pool.plans {
                if let Some(other) = plans.insert(*plan, &pool.name) {
                    let text = format!("a plan can have only one pool: `{other}` has this plan too");
                    faults.push((index, "plans", text));
                }
            }
            for address in &pool.addresses {
                if address.is_unspecified() || address.is_multicast() {
                    faults.push((
                        index,
                        "addresses",
                        format!("{address} cannot be a source address: name addresses of this machine"),
                    ));
                }
                let address = &address.to_canonical();
                if let Some(other) = addresses.insert(*address, &pool.name) {
                    let text = format!("{address} is also in the pool `{other}`: an address can be in only one pool");
                    faults.push((index, "addresses", text));
                }
            }
        }
        for (index, pool) in self.pools.iter().enumerate() {
            faults.extend(spill_over_fault(pool, &names).map(|text| (index, "spill_over", text)));
        }
        faults
    }
}

fn spill_over_fault(pool: &PoolSection, named: &HashMap<&str, &PoolSection>) -> Option<String> {
    let mut to = pool.spill_over.as_deref()?;
    for _ in 0..=named.len() {
        if to == PoolName::default().as_str() {
            return None;
        }
        match named.get(to) {
            None => return Some(format!("pool `{to}` does not exist: name another pool or \"default\"")),
            Some(next) if next.name == pool.name => {
                return Some("the chain of `spill_over` pools leads back to this pool: it must end".to_owned());
            }
            Some(next) => to = next.spill_over.as_deref()?,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::config::from_text;

    fn problems(pools: &str) -> Vec<String> {
        let head = "hostname = \"mx.example.net\"\n[delivery]\nsource_addresses = [\"203.0.113.1\"]\n";
        let found = from_text(&format!("{head}{pools}\n[api]\nlisten = \"127.0.0.1:0\"\n"), []);
        found.err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    const NEW: &str = "[[delivery.pools]]\nname = \"new\"\naddresses = \"203.0.113.2\"\n";
    const OLD: &str = "[[delivery.pools]]\nname = \"old\"\naddresses = \"203.0.113.3\"\n";

    #[test]
    fn valid_pools_are_accepted() {
        let chain = format!(
            "{NEW}plans = \"pro\"\nwarm_up = \"2026-11-23\"\nspill_over = \"old\"\n{OLD}spill_over = \"default\"\n"
        );
        assert_eq!(problems(&chain), Vec::<String>::new());
        assert_eq!(problems(&chain.replace("\"2026-11-23\"", "2026-11-23")), Vec::<String>::new());
    }

    #[test]
    fn each_fault_is_named_with_its_line() {
        for (pools, expected) in [
            (
                "[[delivery.pools]]\n".to_owned(),
                vec!["line 4: [[delivery.pools]] requires a `name`", "requires `addresses`"],
            ),
            (
                NEW.replace("new", "default"),
                vec!["line 5: `name` in [[delivery.pools]]: `default` is the name of the pool of `source_addresses`"],
            ),
            (format!("{NEW}{NEW}"), vec!["`new` is the name of another pool", "203.0.113.2 is also in the pool `new`"]),
            (
                NEW.replace("113.2", "113.1"),
                vec!["line 6: `addresses` in [[delivery.pools]]: 203.0.113.1 is also in the pool `default`"],
            ),
            (format!("{NEW}warm_up_messages = [10, 0]\n"), vec!["line 7: `warm_up_messages` must name"]),
            (
                format!("{NEW}warm_up = \"soon\"\n"),
                vec!["line 7: `warm_up` in [[delivery.pools]]: `soon` is not a date"],
            ),
            (format!("{NEW}warm_up = 7\n"), vec!["line 7: `warm_up` in [[delivery.pools]]: `7` is not a date"]),
            (
                format!("{NEW}plans = [\"pro\"]\n{OLD}plans = [\"pro\"]\n"),
                vec!["line 11: `plans` in [[delivery.pools]]: a plan can have only one pool: `new`"],
            ),
            (format!("{NEW}plans = [\"gold\"]\n"), vec!["unknown plan `gold`"]),
            (
                format!("{NEW}spill_over = \"nobody\"\n"),
                vec!["line 7: `spill_over` in [[delivery.pools]]: pool `nobody` does not exist"],
            ),
            (format!("{NEW}spill_over = \"new\"\n"), vec!["line 7: the chain of `spill_over` pools leads back"]),
            (format!("{NEW}spill_over = \"old\"\n{OLD}spill_over = \"new\"\n"), vec!["leads back to", "leads back to"]),
        ] {
            let found = problems(&pools);
            assert_eq!(found.len(), expected.len(), "{pools}\n{found:#?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found:?}: {expected:?}");
            }
        }
    }
}
