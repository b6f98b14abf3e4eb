//! The mail hosts of a domain, and the order in which they are tried.
//!
//! ```text
//! Resolver::mx ─► MailHosts ─► drop_own_and_less_preferred (loops) ─► shuffle_equal_preferences
//! ```
//!
//! All functions are pure. Routing supplies the seed of the shuffle. Standards: RFC 5321 5.1 and RFC 7505.

use message::address::DomainName;

/// Maximum MX hosts used of one answer, the most preferred first. A longer answer could be used to make the server
/// connect to hundreds of third parties.
pub const HOSTS_MAX: usize = 20;

/// One host of an MX record set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MxHost {
    /// Lower values are tried first.
    pub preference: u16,
    pub host: DomainName,
}

/// The result of an MX lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailHosts {
    /// MX records: at most [`HOSTS_MAX`] hosts by ascending preference, without duplicates, never empty.
    Mx(Vec<MxHost>),
    /// No MX record, but an address: the domain itself is the host (RFC 5321 5.1).
    ImplicitMx(DomainName),
    /// A null MX, `MX 0 .`: the domain accepts no mail (RFC 7505). Permanent, 556 5.1.10.
    NullMx,
    /// The name exists, but has neither MX nor address records. Permanent.
    NoMail,
    /// The name does not exist. Permanent.
    NoSuchDomain,
}

/// Sorts by preference, removes duplicate hosts, and limits the list to [`HOSTS_MAX`].
pub fn normalize_hosts(mut hosts: Vec<MxHost>) -> Vec<MxHost> {
    hosts.sort_by(|a, b| (a.preference, &a.host).cmp(&(b.preference, &b.host)));
    let mut unique: Vec<MxHost> = Vec::with_capacity(hosts.len().min(HOSTS_MAX));
    for host in hosts {
        if unique.len() == HOSTS_MAX {
            break;
        }
        if !unique.iter().any(|known| known.host == host.host) {
            unique.push(host);
        }
    }
    unique
}

/// Sorts hosts by preference and shuffles those with equal preference, which RFC 5321 5.1 requires to spread the load.
/// The same seed gives the same order.
pub fn shuffle_equal_preferences(hosts: &mut [MxHost], seed: u64) {
    hosts.sort_by_key(|host| host.preference);
    let mut state = seed;
    for equals in hosts.chunk_by_mut(|a, b| a.preference == b.preference) {
        for last in (1..equals.len()).rev() {
            // For so few hosts the modulo bias is below 2^-59.
            let pick = next_random(&mut state) % (last as u64 + 1);
            equals.swap(last, usize::try_from(pick).unwrap_or(last));
        }
    }
}

/// Moves the hosts before the preference number `first`, from 0, behind the others, and returns both parts. The hosts
/// are sorted by preference.
pub fn begin_at_preference(hosts: &mut [MxHost], first: usize) -> (&[MxHost], &[MxHost]) {
    let better: usize = equal_preferences(hosts).take(first).map(<[MxHost]>::len).sum();
    hosts.rotate_left(better);
    hosts.split_at(hosts.len() - better)
}

/// The hosts of each preference, for hosts sorted by preference.
pub fn equal_preferences(hosts: &[MxHost]) -> impl Iterator<Item = &[MxHost]> {
    hosts.chunk_by(|a, b| a.preference == b.preference)
}

/// One step of splitmix64: sufficient to spread load; no secret depends on it.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Prevents mail loops (RFC 5321 5.1): if one of `own_names` is among the hosts, it and all hosts of equal or worse
/// preference are dropped. If none is left, this server is the best MX of a domain that it does not serve, and the mail
/// must be returned as a loop.
pub fn drop_own_and_less_preferred(hosts: Vec<MxHost>, own_names: &[DomainName]) -> Vec<MxHost> {
    let Some(own_preference) = hosts.iter().filter(|h| own_names.contains(&h.host)).map(|h| h.preference).min() else {
        return hosts;
    };
    hosts.into_iter().filter(|host| host.preference < own_preference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hosts(list: &[(u16, &str)]) -> Vec<MxHost> {
        list.iter().map(|&(preference, host)| MxHost { preference, host: host.parse().unwrap() }).collect()
    }

    #[test]
    fn best_preference_first_each_host_once_and_bounded() {
        let unique = normalize_hosts(hosts(&[(20, "b.example"), (10, "a.example"), (5, "b.example")]));
        assert_eq!(unique, hosts(&[(5, "b.example"), (10, "a.example")]));
        let many: Vec<_> = (0..500u16)
            .map(|n| MxHost { preference: 500 - n, host: format!("mx{n}.example").parse().unwrap() })
            .collect();
        let unique = normalize_hosts(many);
        assert_eq!(unique.len(), HOSTS_MAX);
        assert_eq!(unique[0].preference, 1);
    }

    #[test]
    fn hosts_of_equal_preference_are_shuffled() {
        let listed = hosts(&[(10, "a.example"), (10, "b.example"), (10, "c.example"), (20, "d.example")]);
        let mut first = [0; 3];
        for seed in 0..3_000 {
            let mut shuffled = listed.clone();
            shuffle_equal_preferences(&mut shuffled, seed);
            assert_eq!(shuffled[3].host.as_str(), "d.example");
            first[listed.iter().position(|h| h == &shuffled[0]).unwrap()] += 1;
        }
        assert!(first.iter().all(|&n| (850..1_150).contains(&n)), "{first:?}");
    }

    #[test]
    fn the_order_begins_at_a_preference_and_wraps() {
        let listed = hosts(&[(10, "a.example"), (10, "b.example"), (20, "c.example"), (30, "d.example")]);
        for (first, expected) in [(0, "abcd"), (1, "cdab"), (2, "dabc"), (3, "abcd")] {
            let mut ordered = listed.clone();
            let (_, better) = begin_at_preference(&mut ordered, first);
            assert_eq!(better.len(), [0, 2, 3, 4][first]);
            let names: String = ordered.iter().map(|host| &host.host.as_str()[..1]).collect();
            assert_eq!(names, expected, "{first}");
        }
        assert_eq!(begin_at_preference(&mut [], 1), (&[][..], &[][..]));
    }

    #[test]
    fn less_preferred_hosts_than_ours_are_dropped() {
        let own = ["mx2.example".parse().unwrap(), "other.example".parse().unwrap()];
        let listed = hosts(&[(5, "mx1.example"), (10, "mx2.example"), (10, "mx3.example"), (20, "mx4.example")]);
        assert_eq!(drop_own_and_less_preferred(listed.clone(), &own), hosts(&[(5, "mx1.example")]));
        assert_eq!(drop_own_and_less_preferred(listed[1..].to_vec(), &own), []);
        assert_eq!(drop_own_and_less_preferred(listed.clone(), &["elsewhere.example".parse().unwrap()]), listed);
    }

    proptest! {
        #[test]
        fn order_only_permutes(prefs in proptest::collection::vec(0u16..4, 0..20), seed: u64) {
            let listed: Vec<_> = prefs.iter().enumerate()
                .map(|(n, &preference)| MxHost { preference, host: format!("m{n}.example").parse().unwrap() })
                .collect();
            let (mut first, mut second) = (listed.clone(), listed.clone());
            shuffle_equal_preferences(&mut first, seed);
            shuffle_equal_preferences(&mut second, seed);
            prop_assert_eq!(&first, &second);
            prop_assert!(first.is_sorted_by_key(|h| h.preference));
            prop_assert!(listed.iter().all(|h| first.contains(h)));
        }
    }
}
