//! The response of a list: a page of entries under the name of their noun.

/// Defines the response of a list: `ListName { nouns: NounView } as "NameOfTheSchema"`.
macro_rules! list_response {
    ($visibility:vis $name:ident { $entries:ident: $view:ty } $(as $schema:literal)?) => {
        /// A page of the list
        #[derive(Debug, ::serde::Serialize, ::schema::ToSchema)]
        $(#[schema(name = $schema)])?
        $visibility struct $name {
            /// The entries, newest first
            $visibility $entries: Vec<$view>,
            /// Whether there are more
            $visibility has_more: bool,
            /// The `cursor` of the next page
            $visibility next_cursor: Option<String>,
        }

        impl $name {
            $visibility fn new($entries: Vec<$view>, next_cursor: Option<String>) -> Self {
                Self { $entries, has_more: next_cursor.is_some(), next_cursor }
            }
        }
    };
}

pub(crate) use list_response;
