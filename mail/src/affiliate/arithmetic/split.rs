//! Splitting an amount by weights so that the parts come to exactly the amount: by largest remainder.

use std::cmp::Reverse;

use super::{ArithmeticError, minus, narrow, plus, times};

/// The parts of `total`, one for each weight. No part is off its exact share by a whole unit or more; of equal
/// remainders the first gets the unit. Neither the total nor a weight is negative.
///
/// # Errors
/// Weights that come to nothing; anything negative; figures that are too large.
pub fn split_by_weights(total: i64, weights: &[i128]) -> Result<Vec<i64>, ArithmeticError> {
    if total < 0 {
        return Err(ArithmeticError::Negative("what is to be split"));
    }
    if weights.iter().any(|weight| *weight < 0) {
        return Err(ArithmeticError::Negative("a weight"));
    }
    let sum = weights.iter().try_fold(0, |sum, weight| plus(sum, *weight))?;
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    let mut left = total;
    for weight in weights {
        let share = times(total, *weight)?;
        let part = narrow(share.checked_div(sum).ok_or(ArithmeticError::Weightless)?)?;
        remainders.push(share.checked_rem(sum).ok_or(ArithmeticError::Weightless)?);
        left = narrow(minus(left, part)?)?;
        parts.push(part);
    }
    if parts.is_empty() {
        return Err(ArithmeticError::Weightless);
    }
    let mut order: Vec<(usize, i128)> = remainders.into_iter().enumerate().collect();
    // The sort is stable: the first of equals stays before the others.
    order.sort_by_key(|(_, remainder)| Reverse(*remainder));
    // Fewer units are left over than there are parts.
    for (index, _) in order.into_iter().take(usize::try_from(left).map_err(|_| ArithmeticError::TooLarge)?) {
        if let Some(part) = parts.get_mut(index) {
            *part = narrow(plus(*part, 1)?)?;
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_whole() {
        let table: [(i64, &[i128], &[i64]); 7] = [
            (100, &[1], &[100]),
            (100, &[1, 1, 1], &[34, 33, 33]),
            (10, &[1, 2, 4], &[1, 3, 6]), // 1.43, 2.86, 5.71: two units to 0.86 and 0.71
            (2, &[1, 1, 1, 1], &[1, 1, 0, 0]),
            (7, &[0, 5], &[0, 7]),
            (0, &[3, 4], &[0, 0]),
            (i64::MAX, &[1, 1], &[4_611_686_018_427_387_904, 4_611_686_018_427_387_903]),
        ];
        for (total, weights, parts) in table {
            assert_eq!(split_by_weights(total, weights).as_deref(), Ok(parts), "{total} by {weights:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(split_by_weights(5, &[]), Err(ArithmeticError::Weightless));
        assert_eq!(split_by_weights(5, &[0, 0]), Err(ArithmeticError::Weightless));
        assert_eq!(split_by_weights(-5, &[1]), Err(ArithmeticError::Negative("what is to be split")));
        assert_eq!(split_by_weights(5, &[-1, 3]), Err(ArithmeticError::Negative("a weight")));
        assert_eq!(split_by_weights(i64::MAX, &[i128::MAX]), Err(ArithmeticError::TooLarge));
        assert_eq!(split_by_weights(1, &[i128::MAX, 1]), Err(ArithmeticError::TooLarge));
    }
}
