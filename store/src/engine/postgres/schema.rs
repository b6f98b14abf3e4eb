//! The tables, and whose they are.
//!
//! ```text
//! postrider_installation  name, value     format, cluster, a copy under way
//! postrider_rows          k, v            all rows
//! postrider_bodies        k, v            all bodies
//! postrider_writers       id, groups      the last group that each writer has committed
//! ```
//!
//! Nothing is written before everything that is there has been found to be ours.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::line::connect;
use super::url::{ConnectionTarget, reason};
use crate::engine::OpenError;

/// The format that this program makes and reads.
pub(crate) const FORMAT: u32 = 1;

const TABLES: &str = "
    CREATE TABLE postrider_installation (name text PRIMARY KEY, value text NOT NULL);
    CREATE TABLE postrider_rows (k bytea PRIMARY KEY, v bytea NOT NULL);
    CREATE TABLE postrider_bodies (k bytea PRIMARY KEY, v bytea NOT NULL);
    CREATE TABLE postrider_writers (
        id bytea PRIMARY KEY, groups bigint NOT NULL, seen timestamptz NOT NULL DEFAULT now()
    );";

/// For PostgreSQL itself; others that speak its protocol keep their tables in their own ways. Mail is not
/// compressed (it is encoded, and is read back whole), task rows come and go by the million.
const TUNING: &str = "
    ALTER TABLE postrider_bodies ALTER COLUMN v SET STORAGE EXTERNAL;
    ALTER TABLE postrider_rows SET
        (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, fillfactor = 90);
    ALTER TABLE postrider_bodies SET (autovacuum_vacuum_scale_factor = 0.05);
    ALTER TABLE postrider_writers SET (fillfactor = 20);";

/// A writer that has not been seen for so long is gone.
const FORGET_WRITERS: &str = "DELETE FROM postrider_writers WHERE seen < now() - interval '7 days'";

/// What is to be done with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// A node works on it.
    Serve,
    /// A copy goes into it.
    CopyInto,
    /// A copy is taken from it.
    CopyFrom,
}

/// Makes the tables where there are none, and looks whose they are.
pub(crate) async fn prepare(target: &ConnectionTarget, cluster: &str, purpose: OpenMode) -> Result<(), OpenError> {
    let refused = |what: String| OpenError::Database { database: target.shown.clone(), what };
    let client = connect(target).await.map_err(|error| refused(explain_error(&error)))?;
    let failed = |error: tokio_postgres::Error| refused(explain_error(&error));
    let found = match installation(&client).await.map_err(failed)? {
        Some(found) => found,
        None if purpose == OpenMode::CopyFrom => {
            return Err(refused("there is no postrider store in it".to_owned()));
        }
        None => {
            match create(&client, cluster, purpose).await {
                // Another node was quicker: what it made is looked at like any other.
                Err(error) if is_made_already(&error) => {
                    client.batch_execute("ROLLBACK").await.map_err(failed)?;
                }
                other => other.map_err(failed)?,
            }
            installation(&client).await.map_err(failed)?.unwrap_or_default()
        }
    };
    check_installation(&found, target, cluster, purpose)?;
    client.batch_execute(FORGET_WRITERS).await.map_err(failed)
}

/// The installation's facts; none when there are no tables.
async fn installation(client: &Client) -> Result<Option<Vec<(String, String)>>, tokio_postgres::Error> {
    match client.query("SELECT name, value FROM postrider_installation", &[]).await {
        Ok(rows) => Ok(Some(rows.iter().map(|row| (row.get(0), row.get(1))).collect())),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn create(client: &Client, cluster: &str, purpose: OpenMode) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("BEGIN").await?;
    client.batch_execute(TABLES).await?;
    let mut facts = vec![("format", FORMAT.to_string()), ("cluster", cluster.to_owned())];
    if purpose == OpenMode::CopyInto {
        facts.push((COPYING, "yes".to_owned()));
    }
    for (name, value) in facts {
        client.execute("INSERT INTO postrider_installation VALUES ($1, $2)", &[&name, &value]).await?;
    }
    client.batch_execute("COMMIT").await?;
    let version: String = client.query_one("SELECT version()", &[]).await?.get(0);
    if version.starts_with("PostgreSQL")
        && !version.contains("-YB-")
        && let Err(error) = client.batch_execute(TUNING).await
    {
        tracing::warn!(error = reason(&error), "the tables could not be tuned");
    }
    Ok(())
}

/// The fact that stands while a copy goes into the database.
const COPYING: &str = "copying";

/// A copy into the database has come to its end.
pub(crate) async fn finish_copy(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.execute("DELETE FROM postrider_installation WHERE name = $1", &[&COPYING]).await.map(drop)
}

fn is_made_already(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::DUPLICATE_TABLE | &SqlState::UNIQUE_VIOLATION | &SqlState::DUPLICATE_OBJECT))
}

fn check_installation(
    found: &[(String, String)],
    target: &ConnectionTarget,
    cluster: &str,
    purpose: OpenMode,
) -> Result<(), OpenError> {
    let fact = |wanted: &str| found.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let database = target.shown.clone();
    match fact("format").map(str::parse) {
        Some(Ok(FORMAT)) => {}
        other => {
            let found = other.map_or_else(|| "none".to_owned(), |_| fact("format").unwrap_or("none").to_owned());
            return Err(OpenError::NewerDatabase { database, found, known: FORMAT });
        }
    }
    let owner = fact("cluster").unwrap_or_default();
    if owner != cluster {
        return Err(OpenError::OtherCluster { database, found: owner.to_owned(), wanted: cluster.to_owned() });
    }
    match (purpose, fact(COPYING).is_some()) {
        (OpenMode::Serve | OpenMode::CopyFrom, true) => Err(OpenError::HalfCopied(database)),
        (OpenMode::CopyInto, false) => Err(OpenError::Database {
            database,
            what: "there is a store in it: a copy goes into an empty database".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// What the database said, and what to do about it where that is known.
fn explain_error(error: &tokio_postgres::Error) -> String {
    let said = reason(error);
    let todo = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            "look at user and password in the URL, and at pg_hba.conf"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "make the database first: CREATE DATABASE …",
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "the user must own its schema: CREATE SCHEMA AUTHORIZATION …, or GRANT CREATE ON SCHEMA public"
        }
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => READ_ONLY,
        None if said.contains("does not allow writes") || said.contains("read-only") => READ_ONLY,
        None => "is it running, and does it listen there?",
        Some(_) => return said,
    };
    format!("{said}: {todo}")
}

const READ_ONLY: &str = "this is a read-only replica: name the primary, or all hosts of the cluster";
