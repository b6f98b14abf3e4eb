//! `/dashboard/api/affiliate-program/imports`: a list of partners in CSV.

use std::sync::Arc;

use ::affiliate::imports::{ImportOptions, PartnerImportResult};
use mail::affiliate::partner_list;
use serde_json::{Value, json};

use super::asked::{ReadRequest, ResolvedRequest};
use super::refusal_problem;
use crate::call::{FromRequest, Media, Owner, Request, RequestSpec};
use crate::page;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// Five thousand rows of eight hundred bytes.
const LIST_BYTES_MAX: usize = 4 << 20;

/// What `POST …/imports` takes.
#[derive(Debug)]
pub struct ImportPartners {
    list: partner_list::PartnerImport,
    manner: ImportOptions,
}

impl FromRequest for ImportPartners {
    const BODY_BYTES_MAX: Option<usize> = Some(LIST_BYTES_MAX);
    const MEDIA: Media = Media::Csv;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("AffiliateList", |_| {
            json!({
                "type": "string",
                "description": "CSV in UTF-8. The first line names the columns: `email`, and of `first_name`, \
                    `last_name`, `company`, `website`, `country`, `campaign`, `token`, `paypal_email`, `tags` \
                    (with semicolons), `status`, `notes` and `parent_email` those that there are, also by usual other names \
                    (`name`, `paypal`); up to 5,000 rows",
                "examples": ["email,first_name,token\nada@example.org,Ada,ada\n"],
            })
        });
        let flag = |name, about| schema::query_parameter(name, about, json!({"type": "boolean", "default": false}));
        let parameters =
            vec![flag("dry_run", "Only say what would become of it"), flag("send_invites", "Write to the partners")];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let manner = ImportOptions {
            dry_run: page::parse_flag(&given, "dry_run")?,
            send_invites: page::parse_flag(&given, "send_invites")?,
        };
        let text = std::str::from_utf8(&call.body).map_err(|_| Problem::field("body", "is not UTF-8"))?;
        let list = partner_list::parse(text).map_err(|error| Problem::field("body", error.to_string()))?;
        Ok(Self { list, manner })
    }
}

impl ToSchema for PartnerImportResult {
    fn schema(schemas: &mut Schemas) -> Value {
        let row = || schema::count("Its row, counted from 1 without the line of names");
        let partner = schema::object(
            "A partner of the list",
            [
                ("row", row()),
                ("email", schema::string("Its address")),
                ("token", schema::string("The token of its link")),
                ("id", schema::nullable_string("Its id (`aff_…`); null in a dry run")),
            ],
        );
        let skipped = schema::object(
            "A row that is left out",
            [
                ("row", row()),
                ("email", schema::string("The address as it stands there")),
                (
                    "reason",
                    schema::string(
                        "`invalid_email`, `duplicate_in_file`, `already_partner`, or `invalid_` and a column",
                    ),
                ),
            ],
        );
        let fields = [
            ("dry_run", schema::boolean("Whether nothing was written")),
            ("imported", schema::count("Partners who joined, or would")),
            ("partners", schema::list(partner, "Who they are")),
            ("skipped", schema::list(skipped, "Rows that are left out")),
            (
                "ignored_columns",
                schema::list(schema::string("Its name as it stands there"), "Columns that were passed over"),
            ),
        ];
        schemas.component("AffiliateImport", |_| schema::object("What became of a list of partners", fields))
    }
}

/// `POST …/imports`.
///
/// # Errors
/// It is no list, or too long; there is no program that is set up.
pub async fn import(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<ImportPartners>,
) -> Result<PartnerImportResult, Problem> {
    let ResolvedRequest { program, input: ImportPartners { list, manner }, .. } =
        asked.require_program(&room, owner.tenant()).await?;
    let done = room.affiliate.import_partners(program.account, list, manner).await;
    done.map_err(|refusal| refusal_problem(&room, refusal))
}
