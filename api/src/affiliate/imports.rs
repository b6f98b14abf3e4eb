//! `/dashboard/api/affiliate-program/imports`: imports partners from CSV.

use ::affiliate::partners::imports::{ImportOptions, PartnerImportResult};
use model::affiliate::partner_import;

use super::request::{ReadRequest, ResolvedRequest};
use crate::prelude::*;

/// Enough for 5,000 rows of 800 bytes.
const LIST_BYTES_MAX: usize = 4 << 20;

/// Body and query of `POST …/imports`.
#[derive(Debug)]
pub struct ImportPartners {
    list: partner_import::PartnerImport,
    options: ImportOptions,
}

/// The query of the import.
struct ImportFlags(ImportOptions);

impl RequestQuery for ImportFlags {
    fn read_query(query: &mut Query) -> Result<Self> {
        let dry_run = query.flag("dry_run", "Preview the import without changing anything")?;
        let send_invites = query.flag("send_invites", "Send an invitation email to each partner")?;
        Ok(Self(ImportOptions { dry_run, send_invites }))
    }
}

impl FromRequest for ImportPartners {
    const BODY_BYTES_MAX: Option<usize> = Some(LIST_BYTES_MAX);
    const MEDIA: Media = Media::Csv;
    const BODY: Option<BodySchema> = Some(|schemas| {
        schemas.component("AffiliateList", |_| {
            json!({
                "type": "string",
                "description": "CSV in UTF-8. The first line must name the columns. `email` is required; `first_name`, \
                    `last_name`, `company`, `website`, `country`, `campaign`, `token`, `paypal_email`, `tags` \
                    (separated by semicolons), `status`, `notes` and `parent_email` are optional. Common aliases \
                    (`name`, `paypal`) are accepted. At most 5,000 rows; invalid rows are skipped and listed",
                "examples": ["email,first_name,token\nada@example.org,Ada,ada\n"],
            })
        })
    });

    fn parameters() -> Vec<Value> {
        ImportFlags::parameters()
    }

    fn read(call: &Request) -> Result<Self> {
        let ImportFlags(options) = ImportFlags::read(call)?;
        let text = std::str::from_utf8(&call.body).map_err(|_| Problem::field("body", "is not UTF-8"))?;
        let list = partner_import::parse(text).map_err(|error| Problem::field("body", error.to_string()))?;
        Ok(Self { list, options })
    }
}

/// `POST …/imports`.
///
/// # Errors
/// The body is not a valid list or too long; the program does not exist or is not set up.
pub async fn import(state: State, owner: Owner, request: ReadRequest<ImportPartners>) -> Result<PartnerImportResult> {
    let ResolvedRequest { program, input: ImportPartners { list, options }, .. } =
        request.require_program(&state, owner.tenant()).await?;
    state.affiliate.partners.import_partners(program.account, list, options).await.or_problem(&state)
}
