//! Click counts of partner links: the total of a link, and by day, link and sub-id.
//!
//! ```text
//! ClickCount · account · 1 · partner · link                  ─►  total of the link
//! ClickCount · account · 2 · partner · day · link · tag      ─►  count of the day
//! ClickCount · account · 3 · day                             ─►  count of the whole program on the day
//! ```
//!
//! The counting job ([`super::click`]) adds many clicks in one commit. Sub-ids are chosen by outsiders, so only
//! [`TAGS_MAX`] of a partner's are counted separately per day; the rest are counted as [`OTHER`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::id::{AccountId, PartnerId, PartnerLinkId};
use model::metric::Hour;

use super::click::LinkClick;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::rows;

/// Maximum number of pairs of link and sub-id that are counted separately for a partner and day.
pub const TAGS_MAX: usize = 500;
/// The sub-id under which clicks beyond [`TAGS_MAX`] are counted.
pub const OTHER: &str = "(other)";
/// Maximum number of rows of a report.
pub const ROWS_MAX: usize = 10_000;

const OF_LINK: u8 = 1;
const OF_DAY: u8 = 2;
const OF_PROGRAM: u8 = 3;

/// Clicks on one link with one sub-id on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyLinkClicks {
    /// First hour of the day.
    pub day: Hour,
    pub link: PartnerLinkId,
    /// The sub-id; empty if the link had none.
    pub sub_id: String,
    pub clicks: u64,
}

fn link_prefix(account: AccountId, partner: PartnerId) -> KeyBuilder {
    key(Space::ClickCount).account(account).u8(OF_LINK).id(partner.to_bytes())
}

fn day_prefix(account: AccountId, partner: PartnerId) -> KeyBuilder {
    key(Space::ClickCount).account(account).u8(OF_DAY).id(partner.to_bytes())
}

fn program_prefix(account: AccountId) -> KeyBuilder {
    key(Space::ClickCount).account(account).u8(OF_PROGRAM)
}

fn parse_count(row: Option<&Value>) -> Result<u64> {
    rows::parse_number(row, "an invalid click count")
}

/// Adds clicks to the counts. The commit conflicts if a count has changed since it was read.
pub async fn add_clicks<'a>(
    store: &Store,
    batch: &mut Batch,
    clicks: impl Iterator<Item = &'a LinkClick>,
) -> Result<()> {
    let mut sums: BTreeMap<Key, u64> = BTreeMap::new();
    let mut days: BTreeMap<Key, BTreeMap<(PartnerLinkId, &str), u64>> = BTreeMap::new();
    for click in clicks {
        let (account, partner, day) = (click.account, click.partner, Hour::containing(click.at).day());
        *sums.entry(link_prefix(account, partner).id(click.link.to_bytes()).build()).or_default() += 1;
        *sums.entry(program_prefix(account).i64(day.0).build()).or_default() += 1;
        let day_counts = days.entry(day_prefix(account, partner).i64(day.0).build()).or_default();
        *day_counts.entry((click.link, click.sub_id.as_deref().unwrap_or_default())).or_default() += 1;
    }
    for (day, tags) in days {
        let row_of = |(link, tag): (PartnerLinkId, &str)| {
            let rest = key(Space::ClickCount).id(link.to_bytes()).text(tag).build();
            // Append the rest of the key to the day's prefix, without the space byte that the builder wrote.
            Key::from([&day[..], rest.get(1..).unwrap_or_default()].concat())
        };
        let over_limit = tags_over_limit(store, &day, tags.keys().map(|tag| (*tag, row_of(*tag)))).await?;
        for (tag, count) in tags {
            let at = row_of(if over_limit.contains(&tag) { (tag.0, OTHER) } else { tag });
            *sums.entry(at).or_default() += count;
        }
    }
    let keys: Vec<Key> = sums.keys().cloned().collect();
    for ((at, clicks), row) in sums.into_iter().zip(store.get_many(&keys).await?) {
        let before = parse_count(row.as_ref())?;
        batch.replace(at, row, before.saturating_add(clicks).to_string().into_bytes());
    }
    Ok(())
}

/// Returns the sub-ids of a day that are beyond [`TAGS_MAX`].
async fn tags_over_limit<'a>(
    store: &Store,
    day: &Key,
    tags: impl Iterator<Item = ((PartnerLinkId, &'a str), Key)>,
) -> Result<BTreeSet<(PartnerLinkId, &'a str)>> {
    let (tags, keys): (Vec<_>, Vec<_>) = tags.unzip();
    let rows = store.get_many(&keys).await?;
    let new: Vec<_> = tags.into_iter().zip(rows).filter(|(_, row)| row.is_none()).map(|(tag, _)| tag).collect();
    if new.is_empty() {
        return Ok(BTreeSet::new());
    }
    let range = crate::key::prefix_range(day);
    let existing = store.scan(range, ScanOrder::Ascending, TAGS_MAX).await?.len();
    Ok(new.into_iter().skip(TAGS_MAX - existing).filter(|(_, tag)| !tag.is_empty()).collect())
}

/// Reads the total clicks of a partner's links, in the order of `links`.
pub async fn link_totals(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    links: &[PartnerLinkId],
) -> Result<Vec<u64>> {
    let keys: Vec<Key> = links.iter().map(|link| link_prefix(account, partner).id(link.to_bytes()).build()).collect();
    let rows = store.get_many(&keys).await?;
    rows.iter().map(|row| parse_count(row.as_ref())).collect()
}

/// Lists a partner's clicks of a range of days, oldest first, at most [`ROWS_MAX`] rows.
pub async fn daily_clicks(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    days: Range<Hour>,
) -> Result<Vec<DailyLinkClicks>> {
    let prefix = || day_prefix(account, partner);
    let range = prefix().i64(days.start.0).build()..prefix().i64(days.end.0).build();
    let rows = store.scan(range, ScanOrder::Ascending, ROWS_MAX).await?;
    let read = |(at, row): &(Key, Value)| {
        let mut reader = KeyReader::new(Space::ClickCount, at)?;
        reader.account().and_then(|_| reader.u8()).and_then(|_| reader.id())?;
        let (day, link, sub_id) = (Hour(reader.i64()?), PartnerLinkId::from_bytes(reader.id()?), reader.text()?);
        Ok(DailyLinkClicks { day, link, sub_id, clicks: parse_count(Some(row))? })
    };
    rows.iter().map(read).collect()
}

/// Reads the number of a program's clicks on a day, without those still pending.
pub async fn program_clicks_on(store: &Store, account: AccountId, day: Hour) -> Result<u64> {
    let row = store.get(&program_prefix(account).i64(day.0).build()).await?;
    parse_count(row.as_ref())
}

/// Deletes an account's daily counts before `before`, scanning at most `limit` rows from a key on. Returns the key to
/// continue from if rows may remain.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    from: Option<Key>,
    before: Hour,
    limit: usize,
) -> Result<Option<Key>> {
    let whole = key(Space::ClickCount).account(account).u8(OF_DAY).range();
    let end = program_prefix(account).i64(before.0).build();
    let rows = store.scan(from.unwrap_or(whole.start)..end, ScanOrder::Ascending, limit).await?;
    let mut next = rows::next_page(&rows, limit);
    for (at, _) in rows {
        let mut reader = KeyReader::new(Space::ClickCount, &at)?;
        let kind = reader.account().and_then(|_| reader.u8())?;
        if kind == OF_DAY {
            let partner = reader.id()?;
            if reader.i64()? >= before.0 {
                // The rest of this partner's rows are newer: continue with the next partner.
                next = Some(day_prefix(account, PartnerId::from_bytes(partner)).range().end);
                break;
            }
        }
        batch.delete(at);
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::super::click;
    use super::*;
    use jiff::{SignedDuration, Timestamp};

    #[tokio::test]
    async fn clicks_are_counted_once_by_link_day_and_tag() {
        let (store, now) = (Store::memory(), Timestamp::from_second(86_400 * 20_000).unwrap());
        let (account, ada, bob) = (AccountId::new(now, 1), PartnerId::new(now, 1), PartnerId::new(now, 2));
        let links = [PartnerLinkId::new(now, 1), PartnerLinkId::new(now, 2)];
        let mut batch = Batch::intake();
        let many = (0..TAGS_MAX + 9).map(|n| (bob, 1, Some(format!("t{n:04}")), 0));
        let few = [(ada, 0, None, 0), (ada, 0, None, 0), (ada, 1, Some("june".to_owned()), 0), (ada, 0, None, 25)];
        for (number, (partner, link, sub_id, hours)) in (0_u128..).zip(few.into_iter().chain(many)) {
            let at = now + SignedDuration::from_hours(hours);
            let click = LinkClick { account, partner, link: links[link], sub_id, at };
            click::enqueue(&mut batch, 3, number.to_be_bytes(), &click);
        }
        store.commit(batch).await.unwrap();
        let uncounted = click::list_pending(&store, 0..=63, 9_999).await.unwrap();
        let mut batch = Batch::progress();
        add_clicks(&store, &mut batch, uncounted.iter().map(|count| &count.click)).await.unwrap();
        uncounted.iter().for_each(|count| count.remove(&mut batch));
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "counted twice");
        assert!(click::list_pending(&store, 0..=63, 9).await.unwrap().is_empty());
        assert_eq!(link_totals(&store, account, ada, &links).await.unwrap(), [3, 1]);
        let day = Hour::containing(now).day();
        let days = day..Hour(day.0 + 48);
        let of_ada = daily_clicks(&store, account, ada, days.clone()).await.unwrap();
        let counts: Vec<_> = of_ada.iter().map(|count| (count.sub_id.as_str(), count.clicks)).collect();
        assert_eq!(counts, [("", 2), ("june", 1), ("", 1)]);
        let of_bob = daily_clicks(&store, account, bob, days.clone()).await.unwrap();
        assert_eq!((of_bob.len(), of_bob[0].sub_id.as_str(), of_bob[0].clicks), (TAGS_MAX + 1, OTHER, 9));
        assert_eq!(program_clicks_on(&store, account, day).await.unwrap(), 3 + TAGS_MAX as u64 + 9);
        let mut from = None;
        loop {
            let mut batch = Batch::progress();
            let until = Hour(day.0 + 24);
            from = purge_before(&store, &mut batch, account, from, until, 200).await.unwrap();
            store.commit(batch).await.unwrap();
            if from.is_none() {
                break;
            }
        }
        assert_eq!(daily_clicks(&store, account, ada, days.clone()).await.unwrap().len(), 1);
        assert!(daily_clicks(&store, account, bob, days).await.unwrap().is_empty());
        assert_eq!(link_totals(&store, account, ada, &links).await.unwrap(), [3, 1]);
        assert_eq!(program_clicks_on(&store, account, day).await.unwrap(), 0);
    }
}
