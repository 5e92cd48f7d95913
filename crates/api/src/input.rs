//! Inputs: the fields of a body, a query or a path, declared once.

use serde_json::Value;

use crate::{
    error::ApiError,
    fields::{Fields, Properties, Refused},
    schema::Schemas,
};

/// The fields of a body, a query or a path. [`input!`](crate::input::input) declares one.
pub(crate) trait Input: Sized {
    /// The name of the schema.
    const NAME: &'static str;
    /// The description of the schema.
    const ABOUT: &'static str;

    /// Takes the fields.
    fn take(fields: &mut Fields) -> Result<Self, Refused>;

    /// Adds the descriptions of the fields.
    fn describe(properties: &mut Properties);

    /// Reads a body: unknown fields are refused.
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let input = Self::take(&mut fields);
        fields.finish()?;
        Ok(input?)
    }

    /// Returns the descriptions of the fields.
    fn properties() -> Properties {
        let mut properties = Properties::default();
        Self::describe(&mut properties);
        properties
    }

    /// Adds the schema of a body, and returns a reference to it.
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.add(Self::NAME, |_| Self::properties().object(Self::ABOUT))
    }
}

/// Declares a struct whose fields are taken from a request by their names.
///
/// An `Option` is an optional field, any other type that is a [`Field`](crate::fields::Field) a required one.
/// `name as "wire": Type` is a field with another name in the request, and `name as "wire" | "alias": Type` one
/// that is also accepted by a former name. A type that implements
/// [`Take`](crate::fields::Take) itself, such as another input, stands for several fields.
macro_rules! input {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            $($(#[doc = $doc:literal])* $field_vis:vis $field:ident $(as $wire:literal $(| $alias:literal)?)? : $type:ty),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        $vis struct $name {
            $($(#[doc = $doc])* $field_vis $field: $type),*
        }

        impl $crate::input::Input for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static str = concat!($($about),*);

            fn take(fields: &mut $crate::fields::Fields) -> Result<Self, $crate::fields::Refused> {
                $($($(fields.rename($alias, $wire);)?)?)*
                $(let $field = <$type as $crate::fields::Take>::take(
                    fields,
                    $crate::input::wire_name!($field $($wire)?),
                );)*
                Ok(Self { $($field: $field?),* })
            }

            fn describe(properties: &mut $crate::fields::Properties) {
                $(<$type as $crate::fields::Take>::describe(
                    properties,
                    $crate::input::wire_name!($field $($wire)?),
                    concat!($($doc),*),
                );
                $($(properties.also($alias);)?)?)*
            }
        }

        /// As a part of another input: all of its fields.
        impl $crate::fields::Take for $name {
            fn take(
                fields: &mut $crate::fields::Fields,
                _name: &str,
            ) -> Result<Self, $crate::fields::Refused> {
                <Self as $crate::input::Input>::take(fields)
            }

            fn describe(properties: &mut $crate::fields::Properties, _name: &str, _about: &str) {
                <Self as $crate::input::Input>::describe(properties);
            }
        }
    };
}
pub(crate) use input;

/// Returns the name of a field in the request.
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}
pub(crate) use wire_name;

/// A body without fields.
pub(crate) struct NoFields;

impl Input for NoFields {
    const NAME: &'static str = "NoFields";
    const ABOUT: &'static str = "No fields: the body may be empty.";

    fn take(_fields: &mut Fields) -> Result<Self, Refused> {
        Ok(Self)
    }

    fn describe(_properties: &mut Properties) {}
}
