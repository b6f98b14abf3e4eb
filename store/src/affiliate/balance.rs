//! What partners have: exact sums by currency, and no row that all lines of a partner write.
//!
//! ```text
//! PartnerBalance · account · partner · 0                ─►  the sums
//!                                    · 1 · line · rev   ─►  what a line has added to them, and taken from them
//! ```
//!
//! A line that comes, moves or changes leaves a key of its own in the commit that does it; they lie behind the sums, so
//! that one scan sees both as of one moment. Now and then somebody folds them into the sums.

use std::collections::BTreeMap;

use mail::affiliate::balance::{Balance, Part};
use mail::affiliate::commission::Commission;
use mail::affiliate::money::Currency;
use mail::id::{AccountId, PartnerId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::row::{self, Row};

/// Changes that are read, and folded, at once.
const FOLDED_MAX: usize = 5_000;
const SUMS: u8 = 0;
const CHANGE: u8 = 1;

/// A partner, and whose.
pub type Whose = (AccountId, PartnerId);

/// The sums of a partner.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Sums(BTreeMap<Currency, Balance>);

/// What a line does to the sums: to these it adds so much.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Change(Vec<(Currency, Part, i64)>);

macro_rules! plain_row {
    ($($name:ident)*) => {$(
        impl Row for $name {
            fn write<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                self.serialize(out)
            }
            fn read<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                Self::deserialize(input)
            }
        }
    )*};
}
plain_row!(Sums Change);

fn at((account, partner): Whose, kind: u8) -> KeyBuilder {
    key(Space::PartnerBalance).account(account).id(partner.to_bytes()).u8(kind)
}

/// A line is other than it was; nothing before it was written.
pub(super) fn note(batch: &mut Batch, before: Option<&Commission>, after: &Commission) {
    let (was, is) = (before.and_then(Part::of), Part::of(after));
    let before_amount = before.map(|line| line.amount);
    if was == is && (was.is_none() || before_amount == Some(after.amount)) {
        return;
    }
    let mut change = Vec::with_capacity(2);
    if let (Some(part), Some(line)) = (was, before) {
        change.push((line.currency, part, line.amount.saturating_neg()));
    }
    if let Some(part) = is {
        change.push((after.currency, part, after.amount));
    }
    let whose = (after.account, after.partner);
    let change_key = at(whose, CHANGE).id(after.id.to_bytes()).bytes(&after.rev.to_be_bytes()).build();
    batch.put_fresh(change_key, row::encode(&Change(change)));
}

/// What a partner has, as it was read.
#[derive(Debug, Default)]
pub struct Kept {
    /// By currency.
    pub balances: BTreeMap<Currency, Balance>,
    /// There may be changes that were not read.
    pub more: bool,
    sums: Option<Value>,
    changes: Vec<Key>,
}

impl Kept {
    /// How many changes lie beside the sums.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Makes the changes that were read part of the sums; the commit conflicts when somebody else did.
    pub fn fold(&self, batch: &mut Batch, whose: Whose) {
        let sums = at(whose, SUMS).build();
        batch.check(sums.clone(), self.sums.clone());
        batch.put(sums, row::encode(&Sums(self.balances.clone())));
        for change in &self.changes {
            batch.delete(change.clone());
        }
    }
}

/// What a partner has.
///
/// # Errors
/// The store cannot be read.
pub async fn read(store: &Store, whose: Whose) -> Result<Kept, ReadError> {
    let range = at(whose, SUMS).build()..at(whose, CHANGE).range().end;
    let rows = store.scan(range, Order::Ascending, FOLDED_MAX).await?;
    let mut kept = Kept { more: rows.len() == FOLDED_MAX, ..Kept::default() };
    for (row_key, value) in rows {
        let mut reader = KeyReader::new(Space::PartnerBalance, &row_key).map_err(row::damaged)?;
        reader.account().and_then(|_| reader.id()).map_err(row::damaged)?;
        if reader.u8().map_err(row::damaged)? == SUMS {
            kept.balances = row::decode::<Sums>(&value)?.0;
            kept.sums = Some(value);
            continue;
        }
        for (currency, part, amount) in row::decode::<Change>(&value)?.0 {
            let sum = kept.balances.entry(currency).or_default().part(part);
            // Sums come out whole in the end: a change may lie before the one that it follows.
            *sum = sum.wrapping_add(amount);
        }
        kept.changes.push(row_key);
    }
    Ok(kept)
}
