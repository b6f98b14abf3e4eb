//! Fields of requests and responses that carry a secret.

/// Fields that carry a secret: they are not taken from a model and not shown to it. A conversation is stored by others.
pub(crate) const SECRET_FIELDS: &[&str] = &["secret", "password", "credentials", "dkim_private_key"];
