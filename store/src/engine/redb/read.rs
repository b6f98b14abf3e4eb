//! Reads: what lies in memory is read in place; what has to come from the disk, beside the runtime.
//!
//! ```text
//! get_many   active > frozen > base ──slow──► the other keys, by several threads side by side
//! scan       the three, merged      ──slow──► the same merge, on a thread that may wait
//! ```
//!
//! Whether a page of the index lies in memory cannot be asked; time tells. What takes longer than
//! [`IN_PLACE`] waits for the disk, and the runtime's threads, which serve all others, do not wait with it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use super::index::Base;
use super::shared::Shared;
use super::table::Table;
use crate::engine::{Key, Order, ReadError, Value};
use crate::key::after;

/// How long a read may take on the caller's own thread: some hundred rows in memory, one page of the disk.
const IN_PLACE: Duration = Duration::from_micros(200);
/// Threads that read one request's keys: a disk serves several reads in the time of one.
const READERS: usize = 8;
/// Rows of a scan between two looks at the clock.
const ROWS_A_LOOK: usize = 8;
/// Rows of the frozen table that are copied at once.
const FROZEN_ROWS: usize = 64;
/// A page of an API list; larger answers grow their buffer.
const SCAN_ROWS_TYPICAL: usize = 128;

/// Keys that the tables in memory say nothing about, and their places among those asked for.
type Below = Vec<(usize, Key)>;

impl Shared {
    /// The rows of some keys, as of one moment.
    pub(crate) async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>, ReadError> {
        let (mut found, below, base) = self.look(keys);
        if below.is_empty() {
            return Ok(found);
        }
        let mut put = |at: usize, value| {
            if let Some(slot) = found.get_mut(at) {
                *slot = value;
            }
        };
        let mut below = below.into_iter();
        let begun = Instant::now();
        for (at, key) in below.by_ref() {
            put(at, base.get(&key)?);
            if begun.elapsed() > IN_PLACE {
                break;
            }
        }
        let rest = below.as_slice();
        let mut readers = JoinSet::new();
        for part in rest.chunks(rest.len().div_ceil(READERS).max(1)) {
            let (base, part) = (Arc::clone(&base), part.to_vec());
            let read = move |(at, key): (usize, Key)| Ok((at, base.get(&key)?));
            readers.spawn_blocking(move || part.into_iter().map(read).collect::<Result<Vec<_>, ReadError>>());
        }
        while let Some(part) = readers.join_next().await {
            part.map_err(ReadError::io)??.into_iter().for_each(|(at, value)| put(at, value));
        }
        Ok(found)
    }

    /// What the tables in memory say about some keys.
    fn look(&self, keys: &[Key]) -> (Vec<Option<Value>>, Below, Arc<Base>) {
        let (mut found, mut below) = (Vec::with_capacity(keys.len()), Vec::new());
        let layers = self.layers();
        for (at, key) in keys.iter().enumerate() {
            let frozen = || layers.frozen.as_ref().and_then(|table| table.get(key));
            let row = layers.active.get(key).or_else(frozen);
            if row.is_none() {
                below.push((at, key.clone()));
            }
            found.push(row.flatten().cloned());
        }
        (found, below, Arc::clone(&layers.base))
    }

    /// At most `limit` rows of a range, as of one moment.
    pub(crate) async fn scan(
        &self,
        range: &Range<Key>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<(Key, Value)>, ReadError> {
        if range.start >= range.end || limit == 0 {
            return Ok(Vec::new());
        }
        let mut scan = Scan::of(self, range, order, limit)?;
        if scan.go_on(Some(Instant::now() + IN_PLACE))? {
            return Ok(scan.found);
        }
        let rest = spawn_blocking(move || scan.go_on(None).map(|_| scan.found));
        rest.await.map_err(ReadError::io)?
    }

    /// The same for a thread of its own, outside any runtime.
    pub(crate) fn scan_blocking(
        &self,
        range: &Range<Key>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<(Key, Value)>, ReadError> {
        let mut scan = Scan::of(self, range, order, limit)?;
        scan.go_on(None)?;
        Ok(scan.found)
    }
}

/// Rows in order, deleted ones (none) included.
type Rows = Box<dyn Iterator<Item = Result<(Key, Option<Value>), ReadError>> + Send>;

/// The live rows of the layers, merged: what an upper one says hides the same key in those below.
struct Scan {
    layers: [Rows; 3],
    heads: [Option<(Key, Option<Value>)>; 3],
    has_begun: bool,
    order: Order,
    limit: usize,
    found: Vec<(Key, Value)>,
}

impl Scan {
    fn of(shared: &Shared, range: &Range<Key>, order: Order, limit: usize) -> Result<Self, ReadError> {
        let (active, frozen, base) = {
            let layers = shared.layers();
            let active = layers.active.part(range, order, limit);
            (active, layers.frozen.clone(), Arc::clone(&layers.base))
        };
        // The frozen table and the base no longer change: they are read only as far as it takes, for
        // rows that the active one deletes do not count.
        let frozen = frozen.map(|table| frozen_rows(table, range.clone(), order)).into_iter().flatten();
        let base = base.rows(range, order)?.map(|row| row.map(|(key, value)| (key, Some(value))));
        Ok(Self {
            layers: [Box::new(active.into_iter().map(Ok)), Box::new(frozen.map(Ok)), Box::new(base)],
            heads: [None, None, None],
            has_begun: false,
            order,
            limit,
            found: Vec::with_capacity(limit.min(SCAN_ROWS_TYPICAL)),
        })
    }

    /// Goes on to the end (then it is true), or until its time is over.
    fn go_on(&mut self, until: Option<Instant>) -> Result<bool, ReadError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            for (head, layer) in self.heads.iter_mut().zip(&mut self.layers) {
                *head = layer.next().transpose()?;
            }
        }
        for step in 1_usize.. {
            if self.found.len() >= self.limit || !self.step()? {
                break;
            }
            if step % ROWS_A_LOOK == 0 && until.is_some_and(|until| Instant::now() > until) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the next key off all layers that have it; false at the end.
    fn step(&mut self) -> Result<bool, ReadError> {
        let keys = self.heads.iter().flatten().map(|(key, _)| key);
        let next = match self.order {
            Order::Ascending => keys.min(),
            Order::Descending => keys.max(),
        };
        let Some(key) = next.cloned() else { return Ok(false) };
        let mut newest = None;
        for (head, layer) in self.heads.iter_mut().zip(&mut self.layers) {
            if let Some((_, value)) = head.take_if(|(other, _)| *other == key) {
                newest.get_or_insert(value);
                *head = layer.next().transpose()?;
            }
        }
        self.found.extend(newest.flatten().map(|value| (key, value)));
        Ok(true)
    }
}

/// The rows of a table that no longer changes, copied a few at a time.
fn frozen_rows(
    table: Arc<Table>,
    mut range: Range<Key>,
    order: Order,
) -> impl Iterator<Item = (Key, Option<Value>)> + Send {
    let mut read = Vec::new().into_iter();
    std::iter::from_fn(move || {
        if read.len() == 0 && range.start < range.end {
            let rows: Vec<_> = table.walk(&range, order).take(FROZEN_ROWS).collect();
            match (rows.last().filter(|_| rows.len() == FROZEN_ROWS), order) {
                (Some((last, _)), Order::Ascending) => range.start = after(last),
                (Some((last, _)), Order::Descending) => range.end = last.clone(),
                (None, _) => range.end = range.start.clone(),
            }
            read = rows.into_iter();
        }
        read.next()
    })
}
