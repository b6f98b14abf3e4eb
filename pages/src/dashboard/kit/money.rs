//! Money: whole minor units of a currency, and rates in basis points, to text and back. Nothing is rounded.

use hypertext::{Buffer, prelude::*};

use super::text::grouped;

/// Currencies without decimals: the minor unit is the whole unit.
const WITHOUT_DECIMALS: &[&str] =
    &["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"];
const WITH_THREE_DECIMALS: &[&str] = &["bhd", "jod", "kwd", "omr", "tnd"];
/// Decimals of a rate in percent.
const RATE_DECIMALS: usize = 2;

/// The number of decimals of a currency, by its code in lower case.
pub fn decimals(currency: &str) -> usize {
    if WITHOUT_DECIMALS.contains(&currency) {
        0
    } else if WITH_THREE_DECIMALS.contains(&currency) {
        3
    } else {
        2
    }
}

/// An amount with its currency, for reading: `1 234.50 USD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money<'a> {
    /// In minor units.
    pub amount: i64,
    /// The code in lower case.
    pub currency: &'a str,
}

impl Money<'_> {
    /// The text; digits are grouped by narrow spaces.
    pub fn text(&self) -> String {
        let plain = plain_text(self.amount, decimals(self.currency));
        let unsigned = plain.trim_start_matches('-');
        let (whole, rest) = unsigned.find('.').map_or((unsigned, ""), |point| unsigned.split_at(point));
        let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
        let sign = if self.amount < 0 { "\u{2212}" } else { "" };
        format!("{sign}{whole}{rest} {}", self.currency.to_uppercase())
    }
}

impl Renderable for Money<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! { span.nowrap { (self.text()) } }.render_to(buffer);
    }
}

/// An amount for a control, without its currency: `1234.50`.
pub fn amount_value(amount: i64, currency: &str) -> String {
    plain_text(amount, decimals(currency))
}

/// Reads an amount of at least zero into minor units. Spaces between digits are skipped.
///
/// # Errors
/// A sentence for the person: the text is no amount, or has more decimals than the currency.
pub fn parse_amount(text: &str, currency: &str) -> Result<i64, String> {
    let decimals = decimals(currency);
    let example = if decimals == 0 { "1200" } else { "12.50" };
    parse_decimal(text, decimals).map_err(|error| match error {
        DecimalError::Format => format!("Enter the amount in digits with a decimal point, such as {example}"),
        DecimalError::TooManyDecimals if decimals == 0 => {
            format!("{} has no decimals: enter a whole number", currency.to_uppercase())
        }
        DecimalError::TooManyDecimals => format!("{} has only {decimals} decimals", currency.to_uppercase()),
        DecimalError::TooLarge => "The amount is too large".into(),
    })
}

/// A rate for reading: `12.5 %`, with a space that does not break.
pub fn percent_text(basis_points: i64) -> String {
    format!("{}\u{a0}%", percent_value(basis_points))
}

/// A rate for a control: `12.5`.
pub fn percent_value(basis_points: i64) -> String {
    let text = plain_text(basis_points, RATE_DECIMALS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Reads a rate in percent into basis points.
///
/// # Errors
/// A sentence for the person.
pub fn parse_percent(text: &str) -> Result<i64, String> {
    let text = text.trim().trim_end_matches('%');
    match parse_decimal(text, RATE_DECIMALS) {
        Ok(points) if points <= 10_000 => Ok(points),
        Ok(_) | Err(DecimalError::TooLarge) => Err("A rate can be at most 100 %".into()),
        Err(DecimalError::TooManyDecimals) => Err("A rate can have at most two decimals".into()),
        Err(DecimalError::Format) => Err("Enter the rate as a number, such as 12.5".into()),
    }
}

/// The rate that makes an amount out of a sale, in basis points, if the amount is such a share rounded half up. Only
/// multiples of 0.25 %: other amounts are more likely flat, capped, or of several rates. Of several rates, the
/// roundest.
pub fn rate_of(amount: i64, sale: i64) -> Option<i64> {
    if amount <= 0 || sale <= 0 {
        return None;
    }
    let (amount, sale) = (i128::from(amount), i128::from(sale));
    let makes = |points: i128| (sale * points + 5_000) / 10_000 == amount;
    let nearest = (amount * 10_000 + sale / 2) / sale;
    let rounded = |step: i128| (nearest + step / 2) / step * step;
    let found = [1_000, 500, 100, 50, 25].into_iter().map(rounded).find(|points| makes(*points))?;
    i64::try_from(found).ok().filter(|points| (1..=10_000).contains(points))
}

#[derive(Debug, PartialEq, Eq)]
enum DecimalError {
    Format,
    TooManyDecimals,
    TooLarge,
}

fn plain_text(number: i64, decimals: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", number.unsigned_abs(), width = decimals + 1);
    let (whole, rest) = digits.split_at(digits.len() - decimals);
    if rest.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest}") }
}

fn parse_decimal(text: &str, decimals: usize) -> Result<i64, DecimalError> {
    let compact: String = text.chars().filter(|one| !one.is_whitespace() && *one != '\u{202f}').collect();
    let (whole, rest) = compact.split_once('.').unwrap_or((&compact, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(rest) || (rest.is_empty() && compact.contains('.')) {
        return Err(DecimalError::Format);
    }
    if rest.len() > decimals {
        return Err(DecimalError::TooManyDecimals);
    }
    format!("{whole}{rest:0<decimals$}").parse().map_err(|_| DecimalError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_in_both_directions() {
        let table = [
            (123_450, "usd", "1\u{202f}234.50 USD", "1234.50"),
            (396, "jpy", "396 JPY", "396"),
            (770, "kwd", "0.770 KWD", "0.770"),
            (5, "usd", "0.05 USD", "0.05"),
            (0, "eur", "0.00 EUR", "0.00"),
            (
                i64::MAX,
                "usd",
                "92\u{202f}233\u{202f}720\u{202f}368\u{202f}547\u{202f}758.07 USD",
                "92233720368547758.07",
            ),
        ];
        for (amount, currency, text, value) in table {
            assert_eq!(Money { amount, currency }.text(), text);
            assert_eq!(amount_value(amount, currency), value);
            assert_eq!(parse_amount(value, currency), Ok(amount));
        }
        assert_eq!(Money { amount: -1_050, currency: "usd" }.text(), "\u{2212}10.50 USD");
        assert_eq!(
            Money { amount: i64::MIN, currency: "jpy" }.text(),
            "\u{2212}9\u{202f}223\u{202f}372\u{202f}036\u{202f}854\u{202f}775\u{202f}808 JPY"
        );
    }

    #[test]
    fn only_amounts_are_read() {
        assert_eq!(parse_amount(" 1 234.5 ", "usd"), Ok(123_450));
        assert_eq!(parse_amount("12", "kwd"), Ok(12_000));
        for text in ["", ".", "1.", ".5", "1,50", "-1", "1e3", "12.345", "\u{661}", "99999999999999999999"] {
            assert!(parse_amount(text, "usd").is_err(), "{text}");
        }
        assert!(parse_amount("1.5", "jpy").unwrap_err().contains("no decimals"));
    }

    #[test]
    fn rates_are_exact_in_both_directions() {
        for (points, text) in [(2_000, "20 %"), (1_250, "12.5 %"), (1, "0.01 %"), (0, "0 %"), (10_000, "100 %")] {
            assert_eq!(percent_text(points).replace('\u{a0}', " "), text);
            assert_eq!(parse_percent(text), Ok(points));
        }
        assert!(parse_percent("100.01").is_err() && parse_percent("1.005").is_err() && parse_percent("x").is_err());
    }

    #[test]
    fn rates_are_found_from_amounts() {
        assert_eq!(rate_of(980, 4_900), Some(2_000));
        assert_eq!(rate_of(613, 4_900), Some(1_250));
        assert_eq!(rate_of(1_500, 19_900), None);
        assert_eq!((rate_of(5_000, 4_900), rate_of(0, 100), rate_of(100, 0)), (None, None, None));
    }
}
