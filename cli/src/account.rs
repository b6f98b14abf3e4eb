//! `read_account`: the account of a credential, as far as the credential may read it.

use serde_json::Value;

use crate::client::{ApiClient, Call};
use crate::error::CliError;

/// Reads the account of a client's credential; `None` if it is a valid key for sending only.
///
/// # Errors
/// As [`ApiClient::call`].
pub(crate) async fn read_account(client: &ApiClient) -> Result<Option<Value>, CliError> {
    match client.call(&Call::get("/account")).await {
        Ok(answer) => {
            let answer = answer.json()?;
            Ok(Some(answer.get("account").cloned().unwrap_or(answer)))
        }
        Err(CliError::Api(error)) if error.is_for_sending_only() => Ok(None),
        Err(error) => Err(error),
    }
}
