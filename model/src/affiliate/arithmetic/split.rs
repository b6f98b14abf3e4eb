//! Splits an amount by weights with the largest remainder method, so that the parts add up to exactly the amount.

use std::cmp::Reverse;

use super::{ArithmeticError, minus, narrow, plus, times};

/// Splits `total` into one part per weight. Each part differs from its exact share by less than one unit. Leftover
/// units are assigned by largest remainder; of equal remainders the first gets the unit.
///
/// # Errors
/// [`ArithmeticError::Weightless`] if the weights add up to zero; [`ArithmeticError::Negative`] for a negative total or
/// weight; [`ArithmeticError::TooLarge`] on overflow.
pub fn split_by_weights(total: i64, weights: &[i128]) -> Result<Vec<i64>, ArithmeticError> {
    if total < 0 {
        return Err(ArithmeticError::Negative("the amount to split"));
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
    // A stable sort: the first of equal remainders gets the unit.
    order.sort_by_key(|(_, remainder)| Reverse(*remainder));
    // There are fewer leftover units than parts.
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
    fn parts_add_up_to_the_total() {
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
    fn invalid_input_is_refused() {
        assert_eq!(split_by_weights(5, &[]), Err(ArithmeticError::Weightless));
        assert_eq!(split_by_weights(5, &[0, 0]), Err(ArithmeticError::Weightless));
        assert_eq!(split_by_weights(-5, &[1]), Err(ArithmeticError::Negative("the amount to split")));
        assert_eq!(split_by_weights(5, &[-1, 3]), Err(ArithmeticError::Negative("a weight")));
        assert_eq!(split_by_weights(i64::MAX, &[i128::MAX]), Err(ArithmeticError::TooLarge));
        assert_eq!(split_by_weights(1, &[i128::MAX, 1]), Err(ArithmeticError::TooLarge));
    }
}
