//! Round-robin over accounts, so that the flood of one account does not delay the work of others.

use std::collections::HashMap;
use std::hash::Hash;

/// Orders work by turns: the first piece of each account, then the second of each, and so on. The order within an account
/// is preserved.
pub fn round_robin<T, A: Hash + Eq>(work: Vec<T>, account_of: impl Fn(&T) -> A) -> Vec<T> {
    let mut taken: HashMap<A, usize> = HashMap::new();
    let mut turns: Vec<(usize, T)> = Vec::with_capacity(work.len());
    for one in work {
        let turn = taken.entry(account_of(&one)).or_default();
        turns.push((*turn, one));
        *turn += 1;
    }
    // A stable sort keeps the order within a turn.
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_take_turns() {
        let due = vec![(1, 1), (1, 2), (1, 3), (2, 4), (1, 5), (3, 6), (2, 7)];
        let order = [(1, 1), (2, 4), (3, 6), (1, 2), (2, 7), (1, 3), (1, 5)];
        assert_eq!(round_robin(due, |(account, _)| *account), order);
    }
}
