//! The users of an account: list them, invite, change a role, remove. Owners do it, signed in.

use std::sync::Arc;

use mail::account::Account;
use mail::address::Address;
use mail::id::UserId;
use mail::quota::Noun;
use mail::user::{Role, User};
use queue::people::People;
use queue::quota::Reserved;
use serde::Serialize;
use serde_json::Value;
use store::access::SignedIn;

use crate::auth::mailed::{self, WayIn, Why};
use crate::auth::problem;
use crate::auth::view::UserView;
use crate::call::{Call, Input, Nothing, SMALL_BYTES_MAX, Takes};
use crate::done::Done;
use crate::fields::{self, Given, Names, Notes};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// All users of an account: they are few.
#[derive(Debug, Serialize)]
pub struct UserList {
    users: Vec<UserView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl Describe for UserList {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        schema::page("users", user)
    }
}

/// One user.
#[derive(Debug, Serialize)]
pub struct OneUser {
    user: UserView,
}

impl Describe for OneUser {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        schema::object("A user", [("user", user)])
    }
}

/// A user who was invited.
#[derive(Debug, Serialize)]
pub struct Invited {
    user: UserView,
    link_mailed: bool,
}

impl Describe for Invited {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        let mailed = schema::boolean("Whether a sign-in link was mailed to them");
        schema::object("A user who was invited", [("user", user), ("link_mailed", mailed)])
    }
}

const EMAIL: &str = "email";
const ROLE: &str = "role";

fn role(given: &Given<'_>, notes: &mut Notes) -> Option<Role> {
    let read = fields::text(given.value(ROLE)?).and_then(|text| text.parse());
    read.map_err(|text| notes.errors.add(ROLE, text)).ok()
}

fn role_schema() -> Value {
    schema::words(&["owner", "member"], "What they may do: owners invite, change and remove users")
}

/// What `POST /users` takes.
#[derive(Debug)]
pub struct Invitation {
    email: Address,
    role: Role,
}

impl Input for Invitation {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let email = (EMAIL, schema::string("Their address"));
        let body = schema::object_with("Whom to invite", &[EMAIL], [email, (ROLE, role_schema())]);
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[(EMAIL, EMAIL), (ROLE, ROLE)], foreign: &[] };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let email = match given.value(EMAIL) {
            None => Err("is required".to_owned()),
            Some(value) => fields::text(value)
                .and_then(|text| text.trim().parse().map_err(|_| "is not an address".to_owned())),
        };
        let email = email.map_err(|text| notes.errors.add(EMAIL, text)).ok();
        let role = role(&given, &mut notes).unwrap_or(Role::Member);
        match email {
            Some(email) if notes.errors.is_empty() => Ok(Self { email, role }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// A user's id, from the path. What cannot be an id is the id of nobody.
fn id_of(call: &Call) -> Result<UserId, Problem> {
    call.path_parameter("id").parse().map_err(|_| Problem::not_found("user"))
}

fn id_parameter() -> Value {
    schema::path_parameter("id", "The user's id (`user_…`)")
}

/// A user.
#[derive(Debug, Clone, Copy)]
pub struct OfUser(UserId);

impl Input for OfUser {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![id_parameter()], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        id_of(call).map(Self)
    }
}

/// What `PATCH /users/{id}` takes.
#[derive(Debug, Clone, Copy)]
pub struct RoleOfUser(UserId, Role);

impl Input for RoleOfUser {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object("What changes", [(ROLE, role_schema())]);
        let parameters = vec![id_parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[(ROLE, ROLE)], foreign: &[] };
        let id = id_of(call)?;
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        if !given.is_meant(ROLE) {
            notes.errors.add(ROLE, "is required");
        }
        match role(&given, &mut notes) {
            Some(role) if notes.errors.is_empty() => Ok(Self(id, role)),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `GET /users`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(room: Arc<Room>, who: SignedIn, _: Nothing) -> Result<UserList, Problem> {
    let found = store::user::list(room.hall.store(), who.tenant().account().id).await?;
    let users = found.iter().rev().map(UserView::of).collect();
    Ok(UserList { users, has_more: false, next_cursor: None })
}

/// `POST /users`: they get a sign-in link, if the service can mail; else they ask for one later. Who is
/// invited already gets another one. Whether the address signs in to another account is not told: it is
/// the invited who hear of it, when they accept.
///
/// # Errors
/// 409 for a user of this account, and when there are too many; 403 when the plan includes no more; 429 when they were invited too often.
pub async fn invite(room: Arc<Room>, who: SignedIn, asked: Invitation) -> Result<Invited, Problem> {
    let Invitation { email, role } = asked;
    let account = who.tenant().account();
    room.throttle.invitation(account.id, &email.to_string(), room.hall.clock().now())?;
    let people = People::of(&room.hall);
    let reserved = match people.is_user(account, &email).await.map_err(problem)? {
        true => None,
        false => Some(room.reserve(who.tenant(), Noun::Users, 1).await?),
    };
    let user = people.invite(account, email, role).await.map_err(problem)?;
    reserved.into_iter().for_each(Reserved::keep);
    let link_mailed = mailed::send(&room, &user, Why::Invitation).await.is_ok();
    tell_of_owner(&room, account, &user);
    Ok(Invited { user: UserView::of(&user), link_mailed })
}

/// An owner may all that an owner may: the others hear of a further one.
fn tell_of_owner(room: &Arc<Room>, account: &Account, user: &User) {
    if user.role == Role::Owner {
        mailed::opened(room, account, WayIn::Owner(user.clone()));
    }
}

/// `PATCH /users/{id}`.
///
/// # Errors
/// No such user; 409 when no owner would be left.
pub async fn change(room: Arc<Room>, who: SignedIn, asked: RoleOfUser) -> Result<OneUser, Problem> {
    let RoleOfUser(id, role) = asked;
    let account = who.tenant().account();
    let user = People::of(&room.hall).change_role(account.id, id, role).await.map_err(problem)?;
    tell_of_owner(&room, account, &user);
    Ok(OneUser { user: UserView::of(&user) })
}

/// `DELETE /users/{id}`.
///
/// # Errors
/// No such user; 409 when no owner would be left.
pub async fn remove(room: Arc<Room>, who: SignedIn, OfUser(id): OfUser) -> Result<Done, Problem> {
    People::of(&room.hall).remove(who.tenant().account().id, id).await.map_err(problem)?;
    Ok(Done::OK)
}
