//! The cache of DNS answers, bounded by memory.
//!
//! hickory's own cache is bounded by the number of answers. The owner of a zone decides how large an answer is: 64 KiB
//! of address records take a megabyte once they are parsed. A few thousand queries for a hostile zone would fill the
//! memory. This cache weighs each answer and bounds the sum of the weights. An answer heavier than any legitimate one
//! is not cached. Entries expire after the TTL of their zone; if the cache is full, the least frequently used ones are
//! evicted (TinyLFU).

use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::lookup::Lookup;
use hickory_resolver::proto::rr::{Name as WireName, RData, Record, RecordType};
use hickory_resolver::proto::serialize::binary::BinEncodable as _;
use moka::Expiry;
use moka::sync::Cache;

/// A heavier answer is not cached. The largest legitimate ones, TXT records at a zone's apex, weigh some 30 KB.
const ENTRY_BYTES_MAX: usize = 128 << 10;
/// Weight of an entry without its records: the key, the message header, the cache's bookkeeping.
const ENTRY_BYTES: usize = 1_024;
/// Weight of a record without its data: names of up to 255 bytes.
const RECORD_BYTES: usize = 512;
/// Weight of a TXT string without its bytes.
const STRING_BYTES: usize = 32;

/// The answer to a query: records, or that there are none. Clones share the records.
#[derive(Debug, Clone)]
pub(crate) enum DnsAnswer {
    /// Records, valid until their TTL ends.
    Records(Arc<Lookup>),
    /// The name has no records of this type (RFC 2308 2.2), with the negative TTL.
    NoData(Duration),
    /// The name does not exist (RFC 2308 2.1), with the negative TTL.
    NxDomain(Duration),
}

impl DnsAnswer {
    /// Returns whether all records are validated by DNSSEC.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self, Self::Records(lookup) if lookup.answers().iter().all(|record| record.proof.is_secure()))
    }

    /// Estimate of the memory in bytes.
    fn weight(&self) -> usize {
        let Self::Records(lookup) = self else { return ENTRY_BYTES };
        let records = lookup.answers().iter().chain(lookup.authorities()).chain(lookup.additionals());
        ENTRY_BYTES + records.map(weight_of).sum::<usize>()
    }
}

fn weight_of(record: &Record) -> usize {
    let data = match &record.data {
        RData::TXT(txt) => txt.txt_data.iter().map(|string| STRING_BYTES + string.len()).sum(),
        data => data.to_bytes().map_or(0, |bytes| bytes.len()),
    };
    RECORD_BYTES + data
}

type AnswerKey = (WireName, RecordType);

#[derive(Debug)]
pub(crate) struct AnswerCache {
    answers: Cache<AnswerKey, DnsAnswer>,
}

impl AnswerCache {
    /// Creates a cache of about `bytes_max` bytes. Negative answers expire after `negative_ttl_max` at most.
    pub(crate) fn new(bytes_max: u64, negative_ttl_max: Duration) -> Self {
        let weigh = |_: &AnswerKey, answer: &DnsAnswer| u32::try_from(answer.weight()).unwrap_or(u32::MAX);
        let expiry = AnswerExpiry { negative_ttl_max };
        Self { answers: Cache::builder().max_capacity(bytes_max).weigher(weigh).expire_after(expiry).build() }
    }

    pub(crate) fn get(&self, name: &WireName, kind: RecordType) -> Option<DnsAnswer> {
        self.answers.get(&(name.clone(), kind))
    }

    pub(crate) fn put(&self, name: &WireName, kind: RecordType, answer: DnsAnswer) {
        if answer.weight() <= ENTRY_BYTES_MAX {
            self.answers.insert((name.clone(), kind), answer);
        }
    }

    pub(crate) fn clear(&self) {
        self.answers.invalidate_all();
    }

    /// Estimate of the memory of all cached answers.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.answers.run_pending_tasks();
        self.answers.weighted_size()
    }
}

/// Expires answers by the TTL of their zone.
struct AnswerExpiry {
    negative_ttl_max: Duration,
}

impl Expiry<AnswerKey, DnsAnswer> for AnswerExpiry {
    fn expire_after_create(&self, _: &AnswerKey, answer: &DnsAnswer, now: Instant) -> Option<Duration> {
        Some(match answer {
            DnsAnswer::Records(lookup) => lookup.valid_until().saturating_duration_since(now),
            DnsAnswer::NoData(ttl) | DnsAnswer::NxDomain(ttl) => (*ttl).min(self.negative_ttl_max),
        })
    }

    fn expire_after_update(
        &self,
        question: &AnswerKey,
        answer: &DnsAnswer,
        now: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(question, answer, now)
    }
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::op::Query;
    use hickory_resolver::proto::rr::rdata::{A, TXT};

    use super::*;

    const MB: u64 = 1 << 20;
    const TTL: u32 = 3_600;

    fn name(number: usize) -> WireName {
        WireName::from_ascii(format!("n{number}.hostile.example.")).unwrap()
    }

    fn answer(number: usize, data: Vec<RData>) -> DnsAnswer {
        let records = data.into_iter().map(|data| Record::from_rdata(name(number), TTL, data));
        let query = Query::query(name(number), RecordType::TXT);
        DnsAnswer::Records(Arc::new(Lookup::new_with_max_ttl(query, records)))
    }

    fn addresses(count: usize) -> Vec<RData> {
        (0..count).map(|n| RData::A(A::new(192, 0, 2, u8::try_from(n % 256).unwrap()))).collect()
    }

    #[test]
    fn a_hostile_zone_does_not_fill_memory() {
        let cache = AnswerCache::new(4 * MB, Duration::from_secs(900));
        for number in 0..2_000 {
            cache.put(&name(number), RecordType::TXT, answer(number, addresses(100)));
            assert!(cache.bytes() <= 4 * MB);
        }
        assert!(cache.bytes() > MB, "answers that fit are cached");
        let before = cache.bytes();
        let empty_strings = RData::TXT(TXT::new(vec![String::new(); 60_000]));
        for heavy in [addresses(4_000), vec![empty_strings]] {
            cache.put(&name(9_999), RecordType::TXT, answer(9_999, heavy));
            assert!(cache.get(&name(9_999), RecordType::TXT).is_none(), "heavier than any legitimate answer");
        }
        assert_eq!(cache.bytes(), before);
        cache.clear();
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn answers_and_refusals_are_kept_by_kind() {
        let cache = AnswerCache::new(MB, Duration::from_secs(900));
        cache.put(&name(1), RecordType::A, answer(1, addresses(1)));
        cache.put(&name(1), RecordType::AAAA, DnsAnswer::NoData(Duration::from_secs(60)));
        cache.put(&name(2), RecordType::A, DnsAnswer::NxDomain(Duration::ZERO));
        assert!(matches!(cache.get(&name(1), RecordType::A), Some(DnsAnswer::Records(_))));
        assert!(matches!(cache.get(&name(1), RecordType::AAAA), Some(DnsAnswer::NoData(_))));
        assert!(cache.get(&name(2), RecordType::A).is_none(), "expired at once");
    }
}
