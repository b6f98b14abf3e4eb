//! Void lookups of one SPF check (RFC 7208 4.6.4): names that were asked for and are not there. After
//! [`VOIDS_MAX`] of them nothing more is asked, and the check is a permanent error.
//!
//! mail-auth counts lookups but not these. It tells a cache what it is about to ask and what it found; this
//! cache keeps nothing and counts the difference, by the names' hashes.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use mail_auth::spf::verify::SpfParameters;
use mail_auth::{MX, Parameters, RecordSet, ResolverCache, Txt};

/// RFC 7208 4.6.4: "SHOULD limit the number of void lookups to two".
const VOIDS_MAX: usize = 2;

#[derive(Default)]
pub(super) struct Voids {
    asked: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

/// A check that is watched.
type Watched<'a> = Parameters<'a, SpfParameters<'a>, NoTexts, Voids, Voids, Voids, NoTexts>;

impl Voids {
    pub(super) fn watch<'a>(&'a self, params: SpfParameters<'a>) -> Watched<'a> {
        Parameters {
            params,
            cache_txt: None,
            cache_mx: Some(self),
            cache_ptr: None,
            cache_ipv4: Some(self),
            cache_ipv6: Some(self),
        }
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.asked().len() > VOIDS_MAX
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a question; true when it is not to be asked any more.
    fn ask<Q: Hash + ?Sized>(&self, name: &Q) -> bool {
        let mut asked = self.asked();
        if asked.len() > VOIDS_MAX {
            return true;
        }
        asked.insert(self.hasher.hash_one(name));
        false
    }

    fn found(&self, name: &str) {
        self.asked().remove(&self.hasher.hash_one(name));
    }
}

fn nothing<T>() -> RecordSet<T> {
    RecordSet { rrset: Vec::new().into(), dnssec_status: mail_auth::DnssecStatus::Indeterminate }
}

macro_rules! counts {
    ($record:ty) => {
        impl ResolverCache<Box<str>, RecordSet<$record>> for Voids {
            fn get<Q>(&self, name: &Q) -> Option<RecordSet<$record>>
            where
                Box<str>: Borrow<Q>,
                Q: Hash + Eq + ?Sized,
            {
                self.ask(name).then(nothing)
            }

            fn remove<Q>(&self, _: &Q) -> Option<RecordSet<$record>>
            where
                Box<str>: Borrow<Q>,
                Q: Hash + Eq + ?Sized,
            {
                None
            }

            fn insert(&self, name: Box<str>, found: RecordSet<$record>, _: std::time::Instant) {
                if !found.rrset.is_empty() {
                    self.found(&name);
                }
            }
        }
    };
}
counts!(MX);
counts!(Ipv4Addr);
counts!(Ipv6Addr);

/// Texts and names of addresses are not counted.
pub(super) struct NoTexts;

macro_rules! keeps_nothing {
    ($key:ty, $value:ty) => {
        impl ResolverCache<$key, $value> for NoTexts {
            fn get<Q>(&self, _: &Q) -> Option<$value>
            where
                $key: Borrow<Q>,
                Q: Hash + Eq + ?Sized,
            {
                None
            }

            fn remove<Q>(&self, _: &Q) -> Option<$value>
            where
                $key: Borrow<Q>,
                Q: Hash + Eq + ?Sized,
            {
                None
            }

            fn insert(&self, _: $key, _: $value, _: std::time::Instant) {}
        }
    };
}
keeps_nothing!(Box<str>, Txt);
keeps_nothing!(IpAddr, RecordSet<Box<str>>);
