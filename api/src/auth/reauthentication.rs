//! `POST /auth/reauthenticate`: proves the user's identity again, for the operations that need a recent proof.

use accounts::users::UserService;

use super::confirmation::Confirmation;
use super::request::SignInClient;
use super::user_error_problem;
use super::view::{SessionResponse, SessionView};
use crate::prelude::*;

/// `POST /auth/reauthenticate`: records the time in the session. Secrets and money are available for 15 minutes from
/// then. A user with neither password nor one-time passwords signs in again by a mailed link instead.
///
/// # Errors
/// 403 when the password or the code is wrong; 429 after too many attempts.
pub async fn reauthenticate(
    state: State,
    signed_in: SignedInUser,
    (client, request): (SignInClient, Confirmation),
) -> Result<SessionResponse> {
    let user = signed_in.user();
    let after = request.verify(&state, user, client.client_ip).await?;
    let users = UserService::new(&state.services);
    let stamped = users.reauthenticate(signed_in.session(), user, &after).await;
    let session = stamped.map_err(user_error_problem)?;
    Ok(SessionResponse { session: SessionView::from_session(&session, &after, signed_in.token()) })
}
