//! A run's payouts as a file: what PayPal and Wise take, or everything.
//!
//! Records end in CRLF (RFC 4180). A cell that a spreadsheet would compute has a `'` before it. Amounts are written with
//! the decimals of their currency.

use super::super::program::PayoutMethod;
use super::super::word::words;
use super::Payout;
use crate::csv::{self, Cell};

words! {
    /// What a file is for.
    Format {
        /// PayPal's mass payments.
        Paypal = "paypal",
        /// Wise's batch payments by email.
        Wise = "wise",
        /// Whatever else pays.
        Generic = "generic",
    }
}

/// A payout that stands in a file.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The payout.
    pub payout: &'a Payout,
    /// The partner's name.
    pub name: &'a str,
    /// The partner's address.
    pub email: &'a str,
}

impl Format {
    /// What a method is paid by.
    #[must_use]
    pub const fn of(method: PayoutMethod) -> Self {
        match method {
            PayoutMethod::Paypal => Self::Paypal,
            PayoutMethod::Wise => Self::Wise,
            PayoutMethod::Bank | PayoutMethod::Other | PayoutMethod::Stripe => Self::Generic,
        }
    }

    /// Whether payouts by a method can stand in it: PayPal and Wise pay to addresses.
    #[must_use]
    pub const fn takes(self, method: PayoutMethod) -> bool {
        matches!(self, Self::Generic) || matches!(method, PayoutMethod::Paypal | PayoutMethod::Wise)
    }

    /// The most rows of one file, the names not counted: what PayPal and Wise take, and what is read at once.
    #[must_use]
    pub const fn rows_max(self) -> usize {
        match self {
            Self::Paypal => 5_000,
            Self::Wise => 1_000,
            Self::Generic => 20_000,
        }
    }

    /// The names of the columns.
    #[must_use]
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Paypal => &["email", "amount", "currency", "id", "note"],
            Self::Wise => &[
                "name",
                "recipientEmail",
                "paymentReference",
                "amountCurrency",
                "amount",
                "sourceCurrency",
                "targetCurrency",
                "type",
            ],
            Self::Generic => &[
                "id",
                "run_id",
                "affiliate_id",
                "name",
                "email",
                "method",
                "destination",
                "amount",
                "currency",
                "amount_cents",
            ],
        }
    }

    /// Writes the names of the columns.
    pub fn begin(self, out: &mut String) {
        csv::write(out, &self.columns().iter().map(|name| Cell::text(name)).collect::<Vec<_>>());
    }

    /// Writes a payout.
    pub fn write(self, out: &mut String, entry: Entry<'_>) {
        let Entry { payout, name, email } = entry;
        let id = || Cell::made(payout.id);
        let amount = || Cell::number(payout.currency.written(payout.amount));
        let currency = || Cell::made(payout.currency.as_str().to_uppercase());
        let destination = || Cell::text(&payout.destination);
        match self {
            Self::Paypal => {
                let note = Cell::made(format!("Affiliate payout {}", payout.id));
                csv::write(out, &[destination(), amount(), currency(), id(), note]);
            }
            Self::Wise => csv::write(
                out,
                &[
                    Cell::text(name),
                    destination(),
                    id(),
                    // The partner gets just this amount; who pays has the fees.
                    Cell::text("target"),
                    amount(),
                    currency(),
                    currency(),
                    Cell::text("EMAIL"),
                ],
            ),
            Self::Generic => csv::write(
                out,
                &[
                    id(),
                    Cell::made(payout.run),
                    Cell::made(payout.partner),
                    Cell::text(name),
                    Cell::text(email),
                    Cell::text(payout.method.as_str()),
                    destination(),
                    amount(),
                    currency(),
                    Cell::number(payout.amount),
                ],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::affiliate::payout::{Asking, PayoutState};
    use crate::id::{AccountId, PartnerId, PayoutId, PayoutRunId};

    fn payout(method: PayoutMethod, (amount, currency): (i64, &str), destination: &str) -> Payout {
        let now = Timestamp::UNIX_EPOCH;
        Payout {
            id: PayoutId::new(now, 1),
            account: AccountId::new(now, 1),
            partner: PartnerId::new(now, 3),
            run: PayoutRunId::new(now, 2),
            amount,
            currency: currency.parse().unwrap(),
            adjusted: 0,
            lines: 1,
            method,
            destination: destination.to_owned(),
            state: PayoutState::Open,
            trail: None,
            transfer: None,
            asking: Asking::default(),
            reference: None,
            failure_reason: None,
            paid_at: None,
            rev: 1,
            created_at: now,
            updated_at: now,
        }
    }

    fn written(format: Format, payout: &Payout, name: &str) -> String {
        let mut out = String::new();
        format.write(&mut out, Entry { payout, name, email: "ada@example.org" });
        out
    }

    #[test]
    #[rustfmt::skip]
    fn files_have_what_each_way_of_paying_takes() {
        const ID: &str = "pay_00000000000000000000000001";
        const GENERIC: &str = "pay_00000000000000000000000001,prn_00000000000000000000000002,aff_00000000000000000000000003";
        // Format, amount, destination, name: the row.
        let cases = [
            (Format::Paypal, (1_000, "usd"), "a@b.example", "Ada", format!("a@b.example,10.00,USD,{ID},Affiliate payout {ID}\r\n")),
            (Format::Paypal, (396, "jpy"), "a@b.example", "Ada", format!("a@b.example,396,JPY,{ID},Affiliate payout {ID}\r\n")),
            (Format::Paypal, (770, "kwd"), "=a@b.example", "Ada", format!("'=a@b.example,0.770,KWD,{ID},Affiliate payout {ID}\r\n")),
            (Format::Wise, (5, "eur"), "a@b.example", "Ada L", format!("Ada L,a@b.example,{ID},target,0.05,EUR,EUR,EMAIL\r\n")),
            (Format::Wise, (5, "eur"), "a@b.example", "=HYPERLINK(\"x\")", format!("\"'=HYPERLINK(\"\"x\"\")\",a@b.example,{ID},target,0.05,EUR,EUR,EMAIL\r\n")),
            (Format::Generic, (1_250, "usd"), "IBAN DE02\nBank", "@ada", format!("{GENERIC},'@ada,ada@example.org,bank,\"IBAN DE02\nBank\",12.50,USD,1250\r\n")),
            (Format::Generic, (1, "usd"), "\tx", "-1+2", format!("{GENERIC},'-1+2,ada@example.org,bank,\"'\tx\",0.01,USD,1\r\n")),
            (Format::Generic, (1, "usd"), "\rx", "a,b", format!("{GENERIC},\"a,b\",ada@example.org,bank,\"'\rx\",0.01,USD,1\r\n")),
        ];
        for (format, money, destination, name, wanted) in cases {
            let row = written(format, &payout(PayoutMethod::Bank, money, destination), name);
            assert_eq!(row, wanted);
            let columns = csv::Records::new(&row).next().unwrap().fields.unwrap().len();
            assert_eq!(columns, format.columns().len());
        }
        assert!(ID.len() <= 30, "PayPal takes ids of 30 characters");
    }

    #[test]
    fn formats_follow_methods() {
        let mut begun = String::new();
        Format::Paypal.begin(&mut begun);
        assert_eq!(begun, "email,amount,currency,id,note\r\n");
        assert_eq!(Format::of(PayoutMethod::Bank), Format::Generic);
        assert!(Format::Wise.takes(PayoutMethod::Paypal) && !Format::Wise.takes(PayoutMethod::Bank));
    }
}
