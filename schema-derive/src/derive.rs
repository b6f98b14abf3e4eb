//! The code that `#[derive(ToSchema)]` writes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, GenericArgument, PathArguments, Result, Type, parse_quote};

use crate::attributes::{FieldAttributes, Keyword, StructAttributes};

/// The implementation of `ToSchema` for a struct.
pub(crate) fn expand(mut input: DeriveInput) -> Result<TokenStream> {
    let attributes = StructAttributes::parse(&input.attrs)?;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "`ToSchema` can be derived for structs only"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "`ToSchema` needs named fields"));
    };
    let mut properties = Vec::new();
    let mut base = None;
    for field in &fields.named {
        let parsed = FieldAttributes::parse(&field.attrs)?;
        if parsed.is_skipped {
            continue;
        }
        if let Some(text) = &parsed.all_of {
            base = Some((schema_type(field, &parsed), text.clone()));
        } else {
            properties.push(property(field, &parsed)?);
        }
    }
    for parameter in input.generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::schema::ToSchema));
    }
    let description = option(attributes.description.as_ref());
    let mut object = quote!(::schema::object_schema(schemas, #description, Self::PROPERTIES));
    if let Some((base, text)) = base {
        object = quote! {{
            let base = <#base as ::schema::ToSchema>::schema(schemas);
            let rest = ::schema::object_schema(schemas, Some(#text), Self::PROPERTIES);
            ::schema::all_of(base, rest, #description)
        }};
    }
    if let Some(keywords) = keywords(&attributes.keywords) {
        object = quote!(::schema::with_keywords(#object, #keywords));
    }
    if let Some(name) = &attributes.name {
        object = quote!(schemas.component(#name, |schemas| #object));
    }
    let status =
        attributes.status.map(|status| quote!(const SUCCESS_STATUS: ::http::StatusCode = ::http::StatusCode::#status;));
    let name = &input.ident;
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::schema::ToSchema for #name #arguments #conditions {
            #status
            const PROPERTIES: &'static [::schema::Property] = &[#(#properties),*];

            fn schema(schemas: &mut ::schema::Schemas) -> ::serde_json::Value {
                #object
            }
        }
    })
}

/// The row of a field in the table of properties.
fn property(field: &Field, attributes: &FieldAttributes) -> Result<TokenStream> {
    let schema_type = schema_type(field, attributes);
    if attributes.is_flattened {
        let is_required = option_argument(&schema_type).is_none();
        let properties = quote!(<#schema_type as ::schema::ToSchema>::PROPERTIES);
        return Ok(quote!(::schema::Property::Flattened { properties: #properties, is_required: #is_required }));
    }
    let name = attributes.name(field)?;
    let description = option(attributes.description.as_ref());
    let schema = match &attributes.with {
        Some(function) => quote!(|schemas, text| ::schema::describe(#function(schemas), text)),
        None => quote!(<#schema_type as ::schema::ToSchema>::described),
    };
    let keywords = option(keywords(&attributes.keywords).map(|keywords| quote!(|| #keywords)));
    let is_required = !attributes.is_optional;
    Ok(quote! {
        ::schema::Property::Named {
            name: #name,
            description: #description,
            schema: #schema,
            is_required: #is_required,
            keywords: #keywords,
        }
    })
}

/// The keywords as an object; `None` if there are none.
pub(crate) fn keywords(keywords: &[Keyword]) -> Option<TokenStream> {
    let pairs = keywords.iter().map(|(name, value)| quote!(#name: #value));
    (!keywords.is_empty()).then(|| quote!(::serde_json::json!({#(#pairs),*})))
}

/// The type whose schema a field has. A field that is absent if it is `None` is never null.
fn schema_type(field: &Field, attributes: &FieldAttributes) -> Type {
    let schema_type = attributes.schema_type.as_ref().unwrap_or(&field.ty);
    match option_argument(schema_type) {
        Some(argument) if attributes.is_optional => argument.clone(),
        _ => schema_type.clone(),
    }
}

/// `T` of `Option<T>`.
pub(crate) fn option_argument(schema_type: &Type) -> Option<&Type> {
    let path = match schema_type {
        Type::Path(path) => path,
        // A type that is a variable of a macro.
        Type::Group(group) => return option_argument(&group.elem),
        _ => return None,
    };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(argument) => Some(argument),
        _ => None,
    }
}

pub(crate) fn option(value: Option<impl quote::ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
