//! Payout files: a run's payouts in CSV for PayPal, for Wise, or with all columns.
//!
//! Records end in CRLF (RFC 4180). A text that a spreadsheet would interpret as a formula gets the prefix `'`. Amounts
//! have the decimals of their currency.

use message::words;

use super::super::program::PayoutMethod;
use super::Payout;
use crate::csv::{self, CsvCell};

words! {
    PayoutFileFormat {
        /// PayPal mass payments.
        Paypal = "paypal",
        /// Wise batch payments by email address.
        Wise = "wise",
        /// All columns, for any other payment system.
        Generic = "generic",
    }
}

/// A payout with the partner's data for one row.
#[derive(Debug, Clone, Copy)]
pub struct PayoutFileRow<'a> {
    pub payout: &'a Payout,
    /// The partner's name.
    pub name: &'a str,
    /// The partner's email address.
    pub email: &'a str,
}

impl PayoutFileFormat {
    pub const fn for_method(method: PayoutMethod) -> Self {
        match method {
            PayoutMethod::Paypal => Self::Paypal,
            PayoutMethod::Wise => Self::Wise,
            PayoutMethod::Bank | PayoutMethod::Other | PayoutMethod::Stripe => Self::Generic,
        }
    }

    /// True if the format can contain payouts with this method. PayPal and Wise pay to email addresses only.
    pub const fn accepts_method(self, method: PayoutMethod) -> bool {
        matches!(self, Self::Generic) || matches!(method, PayoutMethod::Paypal | PayoutMethod::Wise)
    }

    /// Maximum number of rows in a file, without the header. PayPal and Wise limit their files; the generic limit
    /// bounds the memory use.
    pub const fn rows_max(self) -> usize {
        match self {
            Self::Paypal => 5_000,
            Self::Wise => 1_000,
            Self::Generic => 20_000,
        }
    }

    /// Column names of the header.
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

    pub fn write_header(self, out: &mut String) {
        csv::write_record(out, &self.columns().iter().map(|name| CsvCell::text(name)).collect::<Vec<_>>());
    }

    pub fn write_row(self, out: &mut String, row: PayoutFileRow<'_>) {
        let PayoutFileRow { payout, name, email } = row;
        let id = || CsvCell::from_display(payout.id);
        let amount = || CsvCell::number(payout.currency.format_amount(payout.amount));
        let currency = || CsvCell::from_display(payout.currency.as_str().to_uppercase());
        let destination = || CsvCell::text(&payout.destination);
        match self {
            Self::Paypal => {
                let note = CsvCell::from_display(format!("Affiliate payout {}", payout.id));
                csv::write_record(out, &[destination(), amount(), currency(), id(), note]);
            }
            Self::Wise => csv::write_record(
                out,
                &[
                    CsvCell::text(name),
                    destination(),
                    id(),
                    // The partner receives exactly this amount; the payer pays the fees.
                    CsvCell::text("target"),
                    amount(),
                    currency(),
                    currency(),
                    CsvCell::text("EMAIL"),
                ],
            ),
            Self::Generic => csv::write_record(
                out,
                &[
                    id(),
                    CsvCell::from_display(payout.run),
                    CsvCell::from_display(payout.partner),
                    CsvCell::text(name),
                    CsvCell::text(email),
                    CsvCell::text(payout.method.word()),
                    destination(),
                    amount(),
                    currency(),
                    CsvCell::number(payout.amount),
                ],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::affiliate::payout::{PayoutState, TransferAttempts};
    use crate::id::{AccountId, PartnerId, PayoutId, PayoutRunId};

    fn payout(method: PayoutMethod, amount: i64, currency: &str, destination: &str) -> Payout {
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
            asking: TransferAttempts::default(),
            reference: None,
            failure_reason: None,
            paid_at: None,
            rev: 1,
            created_at: now,
            updated_at: now,
        }
    }

    fn written(format: PayoutFileFormat, payout: &Payout, name: &str) -> String {
        let mut out = String::new();
        format.write_row(&mut out, PayoutFileRow { payout, name, email: "ada@example.org" });
        out
    }

    #[test]
    #[rustfmt::skip]
    fn rows_have_the_columns_of_their_format() {
        const ID: &str = "pay_00000000000000000000000001";
        const GENERIC: &str = "pay_00000000000000000000000001,prn_00000000000000000000000002,aff_00000000000000000000000003";
        // Format, amount, destination, name: expected row.
        let cases = [
            (PayoutFileFormat::Paypal, (1_000, "usd"), "a@b.example", "Ada", format!("a@b.example,10.00,USD,{ID},Affiliate payout {ID}\r\n")),
            (PayoutFileFormat::Paypal, (396, "jpy"), "a@b.example", "Ada", format!("a@b.example,396,JPY,{ID},Affiliate payout {ID}\r\n")),
            (PayoutFileFormat::Paypal, (770, "kwd"), "=a@b.example", "Ada", format!("'=a@b.example,0.770,KWD,{ID},Affiliate payout {ID}\r\n")),
            (PayoutFileFormat::Wise, (5, "eur"), "a@b.example", "Ada L", format!("Ada L,a@b.example,{ID},target,0.05,EUR,EUR,EMAIL\r\n")),
            (PayoutFileFormat::Wise, (5, "eur"), "a@b.example", "=HYPERLINK(\"x\")", format!("\"'=HYPERLINK(\"\"x\"\")\",a@b.example,{ID},target,0.05,EUR,EUR,EMAIL\r\n")),
            (PayoutFileFormat::Generic, (1_250, "usd"), "IBAN DE02\nBank", "@ada", format!("{GENERIC},'@ada,ada@example.org,bank,\"IBAN DE02\nBank\",12.50,USD,1250\r\n")),
            (PayoutFileFormat::Generic, (1, "usd"), "\tx", "-1+2", format!("{GENERIC},'-1+2,ada@example.org,bank,\"'\tx\",0.01,USD,1\r\n")),
            (PayoutFileFormat::Generic, (1, "usd"), "\rx", "a,b", format!("{GENERIC},\"a,b\",ada@example.org,bank,\"'\rx\",0.01,USD,1\r\n")),
        ];
        for (format, (amount, currency), destination, name, wanted) in cases {
            let row = written(format, &payout(PayoutMethod::Bank, amount, currency, destination), name);
            assert_eq!(row, wanted);
            let columns = csv::CsvReader::new(&row).next().unwrap().fields.unwrap().len();
            assert_eq!(columns, format.columns().len());
        }
        assert!(ID.len() <= 30, "PayPal limits ids to 30 characters");
    }

    #[test]
    fn formats_follow_methods() {
        let mut header = String::new();
        PayoutFileFormat::Paypal.write_header(&mut header);
        assert_eq!(header, "email,amount,currency,id,note\r\n");
        assert_eq!(PayoutFileFormat::for_method(PayoutMethod::Bank), PayoutFileFormat::Generic);
        assert!(
            PayoutFileFormat::Wise.accepts_method(PayoutMethod::Paypal)
                && !PayoutFileFormat::Wise.accepts_method(PayoutMethod::Bank)
        );
    }
}
