//! The response with one object under the name of its noun.

/// Defines the response: `"description", ResponseName { noun: NounView } as "NameOfTheSchema"`.
macro_rules! object_response {
    ($description:literal, $visibility:vis $name:ident { $noun:ident: $view:ty } $(as $schema:literal)?) => {
        #[doc = $description]
        #[derive(Debug, ::serde::Serialize, ::schema::ToSchema)]
        $(#[schema(name = $schema)])?
        $visibility struct $name {
            $visibility $noun: $view,
        }
    };
}

pub(crate) use object_response;
