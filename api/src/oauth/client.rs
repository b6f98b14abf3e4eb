//! Clients: built in, registered (RFC 7591), or described by a metadata document at the URL that is their id.

use model::oauth::{ClientReference, OAuthClient};

use super::error::{OAuthError, OAuthErrorCode, OAuthFailure};
use super::resolved_client::{ClientIdentity, ResolvedClient};
use crate::prelude::*;

/// The id of the command line's client.
pub const CLI_CLIENT_ID: &str = "postrider-cli";
/// Its redirect URIs: any port of this machine.
const CLI_REDIRECT_URIS: [&str; 2] = ["http://127.0.0.1/callback", "http://[::1]/callback"];
/// Longer ids belong to no client.
const CLIENT_ID_BYTES_MAX: usize = 512;

fn invalid_client(description: impl Into<String>) -> OAuthFailure {
    OAuthError::new(OAuthErrorCode::InvalidClient, description).into()
}

/// Finds a client. A metadata document is fetched, unless it is cached.
///
/// # Errors
/// `invalid_client` if there is no such client, or its document is unusable; the store cannot be read.
pub async fn resolve(state: &AppState, client_id: &str) -> Result<ResolvedClient, OAuthFailure> {
    if client_id.len() > CLIENT_ID_BYTES_MAX {
        return Err(invalid_client("The client id is too long"));
    }
    if client_id == CLI_CLIENT_ID {
        return Ok(ResolvedClient {
            reference: ClientReference { id: CLI_CLIENT_ID.to_owned(), name: "postrider command line".to_owned() },
            identity: ClientIdentity::BuiltIn,
            redirect_uris: CLI_REDIRECT_URIS.map(str::to_owned).to_vec(),
            uses_device_codes: true,
        });
    }
    if client_id.contains("://") {
        let (http, now) = (state.queue.events.webhooks.client(), state.services.clock.now());
        return state.oauth.documents.client(http, client_id, now).await.map_err(invalid_client);
    }
    let Ok(id) = client_id.parse::<OAuthClientId>() else {
        return Err(invalid_client("The client id is unknown; register the client again"));
    };
    match store::oauth::client::get(&state.services.store, id).await? {
        Some(client) if state.services.clock.now() < client.expires_at => Ok(ResolvedClient {
            reference: ClientReference { id: client_id.to_owned(), name: client.name },
            identity: ClientIdentity::Registered,
            redirect_uris: client.redirect_uris,
            uses_device_codes: client.uses_device_codes,
        }),
        _ => Err(invalid_client("The client id is unknown or was deleted; register the client again")),
    }
}

/// Extends the life of a registered client, because a grant of it is created or refreshed. The commit conflicts if the
/// client was changed meanwhile.
pub(super) async fn note_use(
    state: &AppState,
    batch: &mut Batch,
    client: &ClientReference,
) -> Result<(), store::engine::ReadError> {
    let Ok(id) = client.id.parse::<OAuthClientId>() else { return Ok(()) };
    let found: Option<OAuthClient> = store::oauth::client::get(&state.services.store, id).await?;
    let Some(before) = found else { return Ok(()) };
    if let Some(after) = before.extended(state.services.clock.now()) {
        store::oauth::client::update(batch, &before, &after);
    }
    Ok(())
}
