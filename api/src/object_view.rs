//! `object_view`: a JSON object of a response, with the value of each of its fields.

/// Declares an object and the function that builds it: each row is a field, its type and its value. Values that several
/// fields need follow the parameters, each as `let`.
macro_rules! object_view {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident,
        $(#[$note:meta])*
        $access:vis fn $constructor:ident(
            $($parameter:ident: $source:ty),+ $(; let $shared:pat = $made:expr)*
        ) {
            $($(#[$each:meta])* $field:ident: $type:ty = $value:expr,)*
        }
    ) => {
        #[derive(Debug, ::serde::Serialize, ::schema::ToSchema)]
        $(#[$about])*
        $visibility struct $name {
            $($(#[$each])* $field: $type,)*
        }

        impl $name {
            $(#[$note])*
            $access fn $constructor($($parameter: $source),+) -> Self {
                $(let $shared = $made;)*
                Self { $($field: $value,)* }
            }
        }
    };
}

pub(crate) use object_view;
