//! The tables, and the cluster to which they belong.
//!
//! ```text
//! postrider_installation  name, value  format, cluster, copy in progress
//! postrider_rows          k, v         all rows
//! postrider_bodies        k, v         all bodies
//! postrider_writers       id, groups   number of the last group that each writer has committed
//! ```
//!
//! An existing database is checked completely before anything is written to it.

use std::io;

use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connection::{OPEN_MAX, connect};
use super::url::{ConnectionTarget, reason};
use crate::engine::{OpenError, StoreFormat};

/// The format that this version reads and writes.
pub(crate) const FORMAT: u32 = 1;

const TABLES: &str = "
    CREATE TABLE postrider_installation (name text PRIMARY KEY, value text NOT NULL);
    CREATE TABLE postrider_rows (k bytea PRIMARY KEY, v bytea NOT NULL);
    CREATE TABLE postrider_bodies (k bytea PRIMARY KEY, v bytea NOT NULL);
    CREATE TABLE postrider_writers (
        id bytea PRIMARY KEY, groups bigint NOT NULL, seen timestamptz NOT NULL DEFAULT now()
    );";

/// Storage parameters of PostgreSQL; other servers with its protocol differ. Bodies are not compressed, because mail is
/// encoded and read back whole. Autovacuum is frequent, because millions of task rows are inserted and deleted.
const TUNING: &str = "
    ALTER TABLE postrider_bodies ALTER COLUMN v SET STORAGE EXTERNAL;
    ALTER TABLE postrider_rows SET
        (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, fillfactor = 90);
    ALTER TABLE postrider_bodies SET (autovacuum_vacuum_scale_factor = 0.05);
    ALTER TABLE postrider_writers SET (fillfactor = 20);";

/// Deletes writers that have not been seen for a week.
const FORGET_WRITERS: &str = "DELETE FROM postrider_writers WHERE seen < now() - interval '7 days'";

/// Purpose of opening the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// A node runs on it.
    Serve,
    /// A command uses the store that it contains.
    Existing,
    /// It is the target of a copy.
    CopyInto,
    /// It is the source of a copy.
    CopyFrom,
}

/// Creates the tables if there are none, and checks to which cluster they belong. Writes nothing if the store must
/// exist already.
pub(crate) async fn prepare(target: &ConnectionTarget, cluster: &str, purpose: OpenMode) -> Result<(), OpenError> {
    let failed = |error: tokio_postgres::Error| open_error(target, &error);
    let client = connect_in_time(target).await?;
    let found = match installation(&client).await.map_err(failed)? {
        Some(found) => found,
        None if matches!(purpose, OpenMode::Existing | OpenMode::CopyFrom) => {
            let reason = "the database contains no postrider store".to_owned();
            return Err(OpenError::Database { database: target.display_name.clone(), reason });
        }
        None => {
            match create(&client, cluster, purpose).await {
                // Another node created them concurrently: check its tables like any others.
                Err(error) if is_made_already(&error) => {
                    client.batch_execute("ROLLBACK").await.map_err(failed)?;
                }
                other => other.map_err(failed)?,
            }
            installation(&client).await.map_err(failed)?.unwrap_or_default()
        }
    };
    check_installation(&found, target, cluster, purpose)?;
    if purpose == OpenMode::Existing {
        return Ok(());
    }
    client.batch_execute(FORGET_WRITERS).await.map_err(failed)
}

/// Checks an existing database as [`prepare`] does, and writes nothing.
pub(crate) async fn read_format(target: &ConnectionTarget, cluster: &str) -> Result<StoreFormat, OpenError> {
    let client = connect_in_time(target).await?;
    let found = installation(&client).await.map_err(|error| open_error(target, &error))?;
    if let Some(found) = &found {
        check_installation(found, target, cluster, OpenMode::Serve)?;
    }
    Ok(StoreFormat { stored: found.map(|_| FORMAT), oldest_readable: FORMAT, newest_readable: FORMAT })
}

/// Connects within [`OPEN_MAX`]: a server can accept the connection and not answer.
async fn connect_in_time(target: &ConnectionTarget) -> Result<Client, OpenError> {
    let connected = timeout(OPEN_MAX, connect(target)).await.map_err(|_| {
        let reason = "timeout while connecting".to_owned();
        OpenError::Away { database: target.display_name.clone(), reason }
    })?;
    connected.map_err(|error| open_error(target, &error))
}

/// Reads the installation's properties; `None` if there are no tables.
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
        tracing::warn!(error = reason(&error), "cannot set storage parameters of the tables");
    }
    Ok(())
}

/// The property that is set while a copy into the database is in progress.
const COPYING: &str = "copying";

/// Marks the copy into the database as complete.
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
    let database = target.display_name.clone();
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
        (OpenMode::Serve | OpenMode::Existing | OpenMode::CopyFrom, true) => Err(OpenError::HalfCopied(database)),
        (OpenMode::CopyInto, false) => Err(OpenError::Database {
            database,
            reason: "the database already contains a store: copy into an empty database".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The error of opening a database, by whether a later try may succeed.
fn open_error(target: &ConnectionTarget, error: &tokio_postgres::Error) -> OpenError {
    let (database, reason) = (target.display_name.clone(), explain_error(error));
    if is_away(error) { OpenError::Away { database, reason } } else { OpenError::Database { database, reason } }
}

/// Returns whether the database is unavailable now. A wrong password, an unknown database, a certificate that cannot be
/// verified and missing privileges are not.
fn is_away(error: &tokio_postgres::Error) -> bool {
    use std::error::Error as _;
    if let Some(db) = error.as_db_error() {
        return is_away_code(db.code().code());
    }
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        // rustls reports a certificate, or bytes that are not TLS, as invalid data.
        Some(error) => !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput),
        None => error.is_closed(),
    }
}

/// Classes of SQLSTATE codes: 08 connection, 40 serialization, 53 resources (such as too many connections), 57 operator
/// intervention (starting up, shutting down, a timeout). A replica is read-only until it is promoted.
fn is_away_code(code: &str) -> bool {
    ["08", "40", "53", "57"].iter().any(|class| code.starts_with(class))
        || code == SqlState::READ_ONLY_SQL_TRANSACTION.code()
}

/// The database's error, with advice where the cause is known.
fn explain_error(error: &tokio_postgres::Error) -> String {
    let message = reason(error);
    let advice = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            "check user and password in the URL, and pg_hba.conf"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "create the database first: CREATE DATABASE …",
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "the user must own its schema: CREATE SCHEMA AUTHORIZATION …, or GRANT CREATE ON SCHEMA public"
        }
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => READ_ONLY,
        None if message.contains("does not allow writes") || message.contains("read-only") => READ_ONLY,
        None => "is it running, and does it listen there?",
        Some(_) => return message,
    };
    format!("{message}: {advice}")
}

const READ_ONLY: &str = "this is a read-only replica: name the primary, or all hosts of the cluster";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_end_by_themselves_are_told_from_wrong_configuration() {
        for code in ["57P03", "57P01", "53300", "08006", "25006", "57014", "40001"] {
            assert!(is_away_code(code), "{code}");
        }
        for code in ["28P01", "28000", "3D000", "42501", "42P01", "0A000"] {
            assert!(!is_away_code(code), "{code}");
        }
    }
}
