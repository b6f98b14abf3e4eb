//! A user's own password: given, and changed.

use std::net::IpAddr;
use std::sync::Arc;

use queue::people::People;
use serde::Serialize;
use serde_json::{Value, json};
use store::access::SignedIn;

use super::{PASSWORD, mailed, password, passwords, problem};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::fields::{Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

const CURRENT_PASSWORD: &str = "current_password";

/// What `POST /auth/password` takes.
pub struct NewPassword {
    current: Option<String>,
    password: String,
    from: Option<IpAddr>,
}

impl Input for NewPassword {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let password = json!({
            "type": "string", "minLength": passwords::CHARS_MIN, "maxLength": passwords::BYTES_MAX,
            "description": "The new password",
        });
        let body = schema::object_with(
            "A new password",
            &[PASSWORD],
            [(CURRENT_PASSWORD, schema::string("The one until now, if there is one")), (PASSWORD, password)],
        );
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[(PASSWORD, PASSWORD), ("new_password", PASSWORD), (CURRENT_PASSWORD, CURRENT_PASSWORD)],
            foreign: &[],
        };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let current = password(&given, CURRENT_PASSWORD, &mut notes);
        let new = password(&given, PASSWORD, &mut notes);
        if !given.is_meant(PASSWORD) {
            notes.errors.add(PASSWORD, "is required");
        }
        if new.as_ref().is_some_and(|new| new.chars().count() < passwords::CHARS_MIN) {
            notes.errors.add(PASSWORD, format!("is shorter than {} characters", passwords::CHARS_MIN));
        }
        match new {
            Some(password) if notes.errors.is_empty() => Ok(Self { current, password, from: call.from }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// A password was set.
#[derive(Debug, Serialize)]
pub struct PasswordSet {
    ok: bool,
    sessions_ended: usize,
}

impl Describe for PasswordSet {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("PasswordSet", |_| {
            schema::object(
                "The password was set",
                [
                    ("ok", json!({"type": "boolean", "const": true})),
                    ("sessions_ended", schema::count("Other sessions of the user that ended")),
                ],
            )
        })
    }
}

/// `POST /auth/password`: the user's own; their other sessions end, and they are told by mail. Who has signed in by a mailed
/// link within 15 minutes need not know the one until now.
///
/// # Errors
/// 403 when the current password is wrong; 429 after too many tries.
pub async fn set_password(
    room: Arc<Room>,
    who: SignedIn,
    asked: NewPassword,
) -> Result<PasswordSet, Problem> {
    let NewPassword { current, password, from } = asked;
    let user = who.user();
    let is_by_link = who.session().is_by_fresh_link(room.hall.clock().now());
    if user.password.is_some() && !is_by_link {
        let email = user.email.to_string();
        let tried = room.throttle.password(from, &email, room.hall.clock().now())?;
        match room.passwords.check(current.unwrap_or_default(), user.password.clone()).await {
            Ok(true) => tried.right(),
            Ok(false) => {
                let text = "`current_password` is wrong. If you have forgotten it, sign in by a mailed link and set another \
                            within 15 minutes";
                return Err(Problem::new(Code::FORBIDDEN, text));
            }
            Err(problem) => {
                tried.void();
                return Err(problem);
            }
        }
    }
    let salt = room.hall.entropy().u128().to_ne_bytes();
    let hash = room.passwords.hash(password, salt).await?;
    let people = People::of(&room.hall);
    let sessions_ended = people.set_password(user, hash, who.session().id).await.map_err(problem)?;
    mailed::password_changed(&room, user);
    Ok(PasswordSet { ok: true, sessions_ended })
}
