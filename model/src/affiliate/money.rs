//! Money: whole minor units of a currency, and rates in basis points.
//!
//! Amounts are integers. The number of decimals of a currency matters only for display (CSV files, emails), and its
//! payout step only for computing payable amounts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest amount that a user enters, in minor units: JavaScript represents it exactly, with headroom for sums.
pub const CENTS_MAX: i64 = 1_000_000_000_000;

/// A text is not a currency code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a currency is three letters (ISO 4217), such as \"usd\"")]
pub struct CurrencyError;

/// An ISO 4217 currency code in lower case, as payment processors write it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Currencies without decimals: the minor unit is the whole unit.
const WITHOUT_DECIMALS: &[&str] =
    &["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"];
/// Currencies with three decimals. Payment processors require multiples of ten minor units.
const WITH_THREE_DECIMALS: &[&str] = &["bhd", "jod", "kwd", "omr", "tnd"];

/// ISO 4217 list one, without funds, metals and test codes.
const IN_USE: &str = "\
    aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf \
    clp cny cop crc cup cve czk djf dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gnf gtq gyd hkd hnl htg \
    huf idr ils inr iqd irr isk jmd jod jpy kes kgs khr kmf kpw krw kwd kyd kzt lak lbp lkr lrd lsl lyd mad mdl mga \
    mkd mmk mnt mop mru mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd \
    rub rwf sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp szl thb tjs tmt tnd top try ttd twd tzs uah ugx \
    usd uyu uzs ved ves vnd vuv wst xaf xcd xcg xof xpf yer zar zmw zwg";

impl Currency {
    /// True if the code is on ISO 4217 list one. Currencies from the payment processor are accepted without this check.
    pub fn is_in_use(self) -> bool {
        IN_USE.split(' ').any(|code| code == self.as_str())
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Number of decimals for display.
    pub fn exponent(self) -> u32 {
        let code = self.as_str();
        if WITHOUT_DECIMALS.contains(&code) {
            0
        } else if WITH_THREE_DECIMALS.contains(&code) {
            3
        } else {
            2
        }
    }

    /// The smallest amount, in minor units, that can be paid out. ISK amounts have two decimals, but only whole krónur
    /// can be paid.
    pub fn payout_step(self) -> i64 {
        match self.as_str() {
            "isk" => 100,
            code if WITH_THREE_DECIMALS.contains(&code) => 10,
            _ => 1,
        }
    }

    /// Formats an amount for people and payment files: `10.00`, `396`, `0.770`.
    pub fn format_amount(self, amount: i64) -> String {
        let sign = if amount < 0 { "-" } else { "" };
        let (exponent, units) = (self.exponent(), amount.unsigned_abs());
        if exponent == 0 {
            return format!("{sign}{units}");
        }
        let scale = 10_u64.pow(exponent);
        format!("{sign}{}.{:0width$}", units / scale, units % scale, width = exponent as usize)
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        let bytes: [u8; 3] = text.as_bytes().try_into().map_err(|_| CurrencyError)?;
        if !bytes.iter().all(u8::is_ascii_alphabetic) {
            return Err(CurrencyError);
        }
        Ok(Self(bytes.map(|byte| byte.to_ascii_lowercase())))
    }
}

message::stored_as_text!(Currency);

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A rate above 100 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a rate must be from 0 to 10000 basis points (10000 is 100 %)")]
pub struct BasisPointsError;

/// A rate in basis points: 2000 is 20 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct BasisPoints(u16);

impl BasisPoints {
    /// 100 %.
    pub const ALL: Self = Self(10_000);

    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for BasisPoints {
    type Error = BasisPointsError;

    fn try_from(points: u16) -> Result<Self, BasisPointsError> {
        if points <= Self::ALL.0 { Ok(Self(points)) } else { Err(BasisPointsError) }
    }
}

impl From<BasisPoints> for u16 {
    fn from(points: BasisPoints) -> Self {
        points.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_with_decimals() {
        let written = |code: &str, amount| code.parse::<Currency>().unwrap().format_amount(amount);
        assert_eq!(written("usd", 1_000), "10.00");
        assert_eq!(written("JPY", 396), "396");
        assert_eq!(written("kwd", 770), "0.770");
        assert_eq!(written("eur", -5), "-0.05");
        assert_eq!(written("usd", i64::MIN), "-92233720368547758.08");
    }

    #[test]
    fn currencies_in_use_are_known() {
        let is_in_use = |code: &str| code.parse::<Currency>().unwrap().is_in_use();
        for code in ["usd", "EUR", "jpy", "kwd", "aed", "zwg", "clp", "clf"] {
            assert_eq!(is_in_use(code), code != "clf", "{code}");
        }
        for code in WITHOUT_DECIMALS.iter().chain(WITH_THREE_DECIMALS) {
            assert!(is_in_use(code), "{code}");
        }
        assert!(!is_in_use("zzz") && !is_in_use("xts") && IN_USE.split(' ').count() > 150);
    }

    #[test]
    fn codes_are_three_letters() {
        for text in ["", "us", "usdt", "u$d", "€€€", "ус"] {
            assert_eq!(text.parse::<Currency>(), Err(CurrencyError), "{text}");
        }
        assert_eq!("EUR".parse::<Currency>().unwrap().as_str(), "eur");
    }

    #[test]
    fn rates_above_100_percent_are_refused() {
        assert_eq!(BasisPoints::try_from(10_001), Err(BasisPointsError));
        assert_eq!(BasisPoints::try_from(10_000), Ok(BasisPoints::ALL));
    }
}
