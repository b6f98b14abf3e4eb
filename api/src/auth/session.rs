//! The session that a call comes with: shown, and ended.

use std::sync::Arc;

use store::access::SignedIn;
use store::engine::Batch;

use super::cookie;
use super::view::{OneSession, SessionView, WithCookie};
use crate::call::Nothing;
use crate::done::Done;
use crate::problem::Problem;
use crate::room::Room;

/// `POST /auth/sign-out`.
///
/// # Errors
/// The store cannot be written.
pub async fn sign_out(room: Arc<Room>, who: SignedIn, _: Nothing) -> Result<WithCookie<Done>, Problem> {
    let mut batch = Batch::progress();
    store::session::delete(&mut batch, who.session());
    room.hall.store().commit(batch).await.map_err(Problem::outage)?;
    Ok(WithCookie { reply: Done::OK, cookie: cookie::clear() })
}

/// `GET /auth/session`.
///
/// # Errors
/// None.
pub async fn session(_: Arc<Room>, who: SignedIn, _: Nothing) -> Result<OneSession, Problem> {
    Ok(OneSession { session: SessionView::of(who.session(), who.user(), who.token()) })
}
