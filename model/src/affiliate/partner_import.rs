//! Import of partners from a CSV file that another program exported.
//!
//! The first line names the columns, in any order and case. Common names of other programs (`name`, `paypal`) are
//! accepted as aliases. Unknown columns are ignored and listed in the response.

use message::address::Address;

use super::partner::{PartnerLinkToken, PartnerSource, PartnerStatus, TAGS_MAX};
use super::partner_fields::{
    NAME_BYTES_MAX, NOTES_BYTES_MAX, PartnerDraft, PartnerOrigin, TAG_BYTES_MAX, parse_website,
};
use crate::csv::{CsvReader, CsvRecord};

/// Maximum number of partners in one file.
pub const ROWS_MAX: usize = 5_000;

/// The fields of one row; an empty cell is `None`. The token is derived with [`PartnerLinkToken::from_list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedPartner {
    pub draft: PartnerDraft,
    /// Email address of the recruiter.
    pub parent_email: Option<Address>,
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerImportRow {
    /// Row number from 1; the header is not counted.
    pub number: usize,
    /// The content of the `email` column, unchecked.
    pub email: String,
    /// The fields, or the name of the first invalid column.
    pub partner: Result<ImportedPartner, &'static str>,
}

/// The content of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartnerImport {
    pub rows: Vec<PartnerImportRow>,
    /// Names of ignored columns as written; at most 50.
    pub ignored_columns: Vec<String>,
}

/// A text is not a valid list of partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartnerImportError {
    /// The header has no column `email` and no alias of it.
    #[error("has no column `email`: the first line must name the columns")]
    NoEmail,
    /// There are more than [`ROWS_MAX`] rows.
    #[error("has more than {ROWS_MAX} rows; split the file")]
    TooLong,
}

const COLUMNS: [&str; 13] = [
    "email",
    "first_name",
    "last_name",
    "company",
    "website",
    "country",
    "campaign",
    "token",
    "paypal_email",
    "tags",
    "status",
    "notes",
    "parent_email",
];

/// Aliases of columns. An alias applies only if the column itself is missing.
const ALIASES: [(&str, &str); 21] = [
    ("e_mail", "email"),
    ("email_address", "email"),
    ("firstname", "first_name"),
    ("given_name", "first_name"),
    ("lastname", "last_name"),
    ("surname", "last_name"),
    ("family_name", "last_name"),
    ("company_name", "company"),
    ("website_url", "website"),
    ("url", "website"),
    ("country_code", "country"),
    ("campaign_id", "campaign"),
    ("campaign_name", "campaign"),
    ("referral_code", "token"),
    ("via", "token"),
    ("paypal", "paypal_email"),
    ("paypal_address", "paypal_email"),
    ("tag", "tags"),
    ("note", "notes"),
    ("parent", "parent_email"),
    ("recruiter_email", "parent_email"),
];
/// The column of a full name: its first word becomes the first name. Ignored if there is a column for either part.
const NAME: &str = "name";
/// Maximum number of ignored columns that are listed, and the maximum length of each name.
const IGNORED_MAX: usize = 50;
const IGNORED_CHARS_MAX: usize = 100;

/// Column positions in the file.
struct PartnerColumns {
    indexes: [Option<usize>; COLUMNS.len()],
    name: Option<usize>,
}

impl PartnerColumns {
    /// Maps the header's columns, and returns the names of the ignored ones.
    fn from_header(header: &CsvRecord) -> Result<(Self, Vec<String>), PartnerImportError> {
        let names: Vec<String> = header.fields.iter().flatten().map(|name| normalize_name(name)).collect();
        let index_of = |column: &str| names.iter().position(|name| name == column);
        let by_alias = |column: &str| {
            ALIASES.iter().filter(|(_, field_name)| *field_name == column).find_map(|(alias, _)| index_of(alias))
        };
        let indexes = COLUMNS.map(|column| index_of(column).or_else(|| by_alias(column)));
        let is_present =
            |column: &str| COLUMNS.iter().zip(&indexes).any(|(name, index)| *name == column && index.is_some());
        if !is_present("email") {
            return Err(PartnerImportError::NoEmail);
        }
        let name = index_of(NAME).filter(|_| !is_present("first_name") && !is_present("last_name"));
        let is_read = |at: usize| name == Some(at) || indexes.contains(&Some(at));
        let fields = header.fields.iter().flatten().enumerate();
        let ignored = fields.filter(|(at, name)| !is_read(*at) && !name.trim().is_empty());
        let to_display = |(_, name): (usize, &String)| name.trim().chars().take(IGNORED_CHARS_MAX).collect();
        Ok((Self { indexes, name }, ignored.map(to_display).take(IGNORED_MAX).collect()))
    }

    /// The cell of a column; `None` if it is empty.
    fn field<'a>(&self, record: &'a CsvRecord, column: &str) -> Option<&'a str> {
        let column_index = COLUMNS.iter().position(|name| *name == column)?;
        cell_at(record, *self.indexes.get(column_index)?)
    }

    /// The first and the last name. A full name is split after its first word.
    fn names<'a>(&self, record: &'a CsvRecord) -> (Option<&'a str>, Option<&'a str>) {
        match cell_at(record, self.name) {
            Some(whole) => match whole.split_once(char::is_whitespace) {
                Some((first, last)) => (Some(first), Some(last.trim_start())),
                None => (Some(whole), None),
            },
            None => (self.field(record, "first_name"), self.field(record, "last_name")),
        }
    }
}

fn cell_at(record: &CsvRecord, column_index: Option<usize>) -> Option<&str> {
    let text = record.field(column_index?).trim();
    (!text.is_empty()).then_some(text)
}

/// Maps `First Name`, `first-name` and `first_name` to the same name.
fn normalize_name(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

/// Parses a CSV file. An invalid row does not fail the import: its entry names the invalid column.
pub fn parse(text: &str) -> Result<PartnerImport, PartnerImportError> {
    let mut records = CsvReader::new(text);
    let (columns, ignored_columns) = PartnerColumns::from_header(&records.next().ok_or(PartnerImportError::NoEmail)?)?;
    let mut rows = Vec::new();
    for record in records {
        if rows.len() == ROWS_MAX {
            return Err(PartnerImportError::TooLong);
        }
        let email = columns.field(&record, "email").unwrap_or_default().to_owned();
        rows.push(PartnerImportRow { number: rows.len() + 1, partner: parse_partner(&columns, &record), email });
    }
    Ok(PartnerImport { rows, ignored_columns })
}

fn parse_partner(columns: &PartnerColumns, record: &CsvRecord) -> Result<ImportedPartner, &'static str> {
    let field = |column| columns.field(record, column);
    let address =
        |column: &'static str| field(column).map(|text| text.parse::<Address>().map_err(|_| column)).transpose();
    let fits = |text: Option<&str>, column: &'static str| {
        let fits = |text: &str| text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control);
        text.map(|text| fits(text).then(|| text.to_owned()).ok_or(column)).transpose()
    };
    let (first_name, last_name) = columns.names(record);
    let country = field("country").map(str::to_ascii_uppercase);
    if country.as_ref().is_some_and(|c| c.len() != 2 || !c.bytes().all(|byte| byte.is_ascii_uppercase())) {
        return Err("country");
    }
    let status = match field("status").map(str::to_lowercase) {
        None => PartnerStatus::Active,
        Some(word) => PartnerStatus::from_word(&word)
            .filter(|status| matches!(status, PartnerStatus::Active | PartnerStatus::Pending | PartnerStatus::Invited))
            .ok_or("status")?,
    };
    let notes = field("notes").map(str::to_owned);
    if notes.as_ref().is_some_and(|notes| notes.len() > NOTES_BYTES_MAX) {
        return Err("notes");
    }
    let email = address("email")?.ok_or("email")?;
    let draft = PartnerDraft {
        first_name: fits(first_name, "first_name")?,
        last_name: fits(last_name, "last_name")?,
        company: fits(field("company"), "company")?,
        website: field("website").map(|text| parse_website(text).map_err(|_| "website")).transpose()?,
        country,
        campaign: fits(field("campaign"), "campaign")?,
        token: field("token").and_then(PartnerLinkToken::from_list),
        paypal_email: address("paypal_email")?,
        tags: parse_tags(field("tags").unwrap_or_default())?,
        status,
        notes,
        ..PartnerDraft::new(email, PartnerOrigin::entered(PartnerSource::Import))
    };
    Ok(ImportedPartner { draft, parent_email: address("parent_email")? })
}

fn parse_tags(text: &str) -> Result<Vec<String>, &'static str> {
    let mut tags: Vec<String> = Vec::new();
    for tag in text.split(';').map(str::trim).filter(|tag| !tag.is_empty()) {
        if tag.len() > TAG_BYTES_MAX || tag.chars().any(char::is_control) {
            return Err("tags");
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    if tags.len() > TAGS_MAX { Err("tags") } else { Ok(tags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let text = "\u{feff}Token,E-Mail,Email,First Name,Tags,colour,status,country\r\n\
                    My Shop!,x,Ada@Example.org,\"Lovelace, Ada\",a; b;a,red,Invited,gb\r\n\
                    ,,not an address,,,,,\r\n\
                    ,,bob@example.org,,,,gone,\r\n\
                    ,,eve@example.org,,,,,GBR\n";
        let PartnerImport { rows, ignored_columns } = parse(text).unwrap();
        assert_eq!(ignored_columns, ["E-Mail", "colour"]);
        let ada = &rows[0].partner.as_ref().unwrap().draft;
        assert_eq!((rows[0].number, ada.email.to_string().as_str()), (1, "Ada@example.org"));
        assert_eq!(ada.first_name.as_deref(), Some("Lovelace, Ada"));
        assert_eq!(ada.token.as_ref().map(PartnerLinkToken::as_str), Some("my-shop-"));
        assert_eq!((ada.tags.as_slice(), ada.country.as_deref()), (&["a".into(), "b".into()][..], Some("GB")));
        assert_eq!(ada.status, PartnerStatus::Invited);
        assert_eq!((rows[1].email.as_str(), &rows[1].partner), ("not an address", &Err("email")));
        assert_eq!(rows[2].partner, Err("status"));
        assert_eq!(rows[3].partner, Err("country"));
    }

    #[test]
    fn invalid_lists_are_refused() {
        assert_eq!(parse(""), Err(PartnerImportError::NoEmail));
        assert_eq!(parse("name,address\na,b\n"), Err(PartnerImportError::NoEmail));
        let long: String =
            std::iter::once("email\n".to_owned()).chain((0..=ROWS_MAX).map(|n| format!("a{n}@b.example\n"))).collect();
        assert_eq!(parse(&long), Err(PartnerImportError::TooLong));
        let (longest, _) = long.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(parse(longest).unwrap().rows.len(), ROWS_MAX);
        assert_eq!(parse("email").unwrap(), PartnerImport::default());
    }

    #[test]
    fn column_aliases_are_accepted() {
        let read = |text: &str| {
            let PartnerImport { rows, ignored_columns } = parse(text).unwrap();
            (rows[0].partner.clone().unwrap().draft, ignored_columns)
        };
        let (ada, ignored) = read(
            "E-Mail,Name,PayPal,Referral Code,Balance\nada@example.org,Ada King Lovelace,pay@example.org,ada,12\n",
        );
        assert_eq!(ada.email.to_string(), "ada@example.org");
        assert_eq!((ada.first_name.as_deref(), ada.last_name.as_deref()), (Some("Ada"), Some("King Lovelace")));
        assert_eq!(ada.paypal_email.unwrap().to_string(), "pay@example.org");
        assert_eq!((ada.token.unwrap().as_str(), ignored.as_slice()), ("ada", &["Balance".to_owned()][..]));
        let (ada, ignored) = read("email,name,first_name\nada@example.org,Ada L.,Augusta\n");
        assert_eq!((ada.first_name.as_deref(), ada.last_name), (Some("Augusta"), None));
        assert_eq!(ignored, ["name"]);
        let (ada, _) = read("email,name\nada@example.org,Ada\n");
        assert_eq!((ada.first_name.as_deref(), ada.last_name), (Some("Ada"), None));
    }
}
