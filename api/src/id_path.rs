//! The path of an object by its id.

/// Defines a path that ends in an id: `pub PathName(IdType), "description", "noun"`. A malformed id is answered 404, like an
/// unknown one.
macro_rules! id_path {
    ($visibility:vis $name:ident($id:ty), $description:literal, $noun:literal) => {
        #[derive(Debug, Clone, Copy)]
        $visibility struct $name(pub(crate) $id);

        impl ::httpd::request::FromRequest for $name {
            fn parameters() -> Vec<::serde_json::Value> {
                vec![schema::path_parameter("id", $description)]
            }

            fn read(call: &::httpd::request::Request) -> Result<Self, ::httpd::problem::Problem> {
                let id = call.path_parameter("id").parse();
                id.map(Self).map_err(|_| ::httpd::problem::Problem::not_found($noun))
            }
        }
    };
}

/// Like `id_path`, but errors that take precedence come first: `id()` reports a malformed id.
macro_rules! deferred_id_path {
    ($visibility:vis $name:ident($parameter:literal: $id:ty), $description:literal, $noun:expr) => {
        #[derive(Debug, Clone, Copy)]
        $visibility struct $name(Option<$id>);

        impl $name {
            pub(super) fn id(self) -> Result<$id, ::httpd::problem::Problem> {
                self.0.ok_or_else(|| ::httpd::problem::Problem::not_found($noun))
            }
        }

        impl ::httpd::request::FromRequest for $name {
            fn parameters() -> Vec<::serde_json::Value> {
                vec![schema::path_parameter($parameter, $description)]
            }

            fn read(call: &::httpd::request::Request) -> Result<Self, ::httpd::problem::Problem> {
                Ok(Self(call.path_parameter($parameter).parse().ok()))
            }
        }
    };
}

pub(crate) use {deferred_id_path, id_path};
