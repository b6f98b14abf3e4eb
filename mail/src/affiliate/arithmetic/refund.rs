//! What is left of a sale's base when money was given back.

use super::{ArithmeticError, divide_half_up, minus, narrow, times};

/// `B' = round(B × (paid − refunded) / paid)`, halves up; nothing once all of it was given back.
///
/// # Errors
/// A sale for which nothing was paid, a negative refund, figures that are too large.
pub fn remaining_base(base: i64, paid: i64, refunded: i64) -> Result<i64, ArithmeticError> {
    if refunded < 0 {
        return Err(ArithmeticError::Negative("what was refunded"));
    }
    if paid <= 0 {
        return Err(ArithmeticError::Weightless);
    }
    if refunded >= paid {
        return Ok(0);
    }
    narrow(divide_half_up(times(base, minus(paid, refunded)?)?, paid.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refunds_shrink_the_base() {
        let table = [
            // base, paid, refunded, what remains
            (4_900, 5_831, 0, 4_900),
            (4_900, 5_831, 5_831, 0),
            (4_900, 5_831, 9_999, 0),
            (10_000, 11_900, 5_950, 5_000),
            (1_000, 3, 1, 667),
            (1_000, 3, 2, 333),
            (1, 2, 1, 1), // a half goes up
            (i64::MAX, i64::MAX, 1, i64::MAX - 1),
        ];
        for (base, paid, refunded, left) in table {
            assert_eq!(remaining_base(base, paid, refunded), Ok(left), "{base} of {paid} less {refunded}");
        }
        assert_eq!(remaining_base(1, 0, 0), Err(ArithmeticError::Weightless));
        assert_eq!(remaining_base(1, 1, -1), Err(ArithmeticError::Negative("what was refunded")));
    }
}
