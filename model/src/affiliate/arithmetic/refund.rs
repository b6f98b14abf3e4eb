//! The base of a sale after refunds.

use super::{ArithmeticError, divide_half_up, minus, narrow, times};

/// `B' = round(B × (paid − refunded) / paid)`, halves up; zero once everything was refunded.
///
/// # Errors
/// [`ArithmeticError::Weightless`] if nothing was paid; [`ArithmeticError::Negative`] for a negative refund;
/// [`ArithmeticError::TooLarge`] on overflow.
pub fn remaining_base(base: i64, paid: i64, refunded: i64) -> Result<i64, ArithmeticError> {
    if refunded < 0 {
        return Err(ArithmeticError::Negative("the refunded amount"));
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
    fn refunds_reduce_the_base() {
        let table = [
            // base, paid, refunded, remaining base
            (4_900, 5_831, 0, 4_900),
            (4_900, 5_831, 5_831, 0),
            (4_900, 5_831, 9_999, 0),
            (10_000, 11_900, 5_950, 5_000),
            (1_000, 3, 1, 667),
            (1_000, 3, 2, 333),
            (1, 2, 1, 1), // a half is rounded up
            (i64::MAX, i64::MAX, 1, i64::MAX - 1),
        ];
        for (base, paid, refunded, left) in table {
            assert_eq!(remaining_base(base, paid, refunded), Ok(left), "{base} of {paid} less {refunded}");
        }
        assert_eq!(remaining_base(1, 0, 0), Err(ArithmeticError::Weightless));
        assert_eq!(remaining_base(1, 1, -1), Err(ArithmeticError::Negative("the refunded amount")));
    }
}
