//! Reads the fields of a request, and reports all of their problems at once.

mod values;

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

pub(crate) use self::values::{AtLeast, Choice, SearchTerm, out_of_range};
use crate::{
    error::{ApiError, Code},
    schema::or_null,
};

/// The fields of a request, taken one by one.
///
/// Take all fields first, then call [`finish`](Fields::finish), and only then use `?` on them: so every
/// problem is in one response.
pub(crate) struct Fields {
    left: Map<String, Value>,
    problems: Vec<Problem>,
}

/// A problem of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The name of the field.
    #[schema(example = "font_size")]
    field: String,
    #[schema(inline)]
    code: ProblemCode,
    /// A sentence for users.
    #[schema(example = "font_size must be from 8 to 32, got 99")]
    message: String,
}

/// The stable code of a problem, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProblemCode {
    /// It is missing.
    Required,
    /// It has another type, such as a number instead of a text.
    WrongType,
    /// It is a number beyond its limits.
    OutOfRange,
    /// It is no UUID.
    InvalidId,
    /// It violates another rule.
    Invalid,
    /// The request has no such field.
    Unknown,
}

/// The reason why a value is refused: its code, and "must be …".
#[derive(Debug)]
pub(crate) struct Invalid(ProblemCode, String);

/// The error of a rejected field. Its problem is reported by [`Fields::finish`].
#[derive(Debug)]
pub(crate) struct Refused;

impl From<Refused> for ApiError {
    fn from(_: Refused) -> Self {
        // Unreachable: `finish` has reported it before.
        Self::new(Code::ValidationFailed, "the request has a field that is not valid")
    }
}

/// A value of a field.
pub(crate) trait Field: Sized {
    /// Parses the value, or describes its problem: "must be …".
    fn read(value: Value) -> Result<Self, Invalid>;

    /// Returns the schema of the value.
    fn schema() -> Value;
}

/// One field of a request, or several that belong together.
pub(crate) trait Take: Sized {
    /// Takes it from the fields by its name.
    fn take(fields: &mut Fields, name: &str) -> Result<Self, Refused>;

    /// Adds its description.
    fn describe(properties: &mut Properties, name: &str, about: &str);
}

/// A required field.
impl<T: Field> Take for T {
    fn take(fields: &mut Fields, name: &str) -> Result<Self, Refused> {
        fields.required(name)
    }

    fn describe(properties: &mut Properties, name: &str, about: &str) {
        properties.add(name, about, true, T::schema());
    }
}

/// An optional field; null and `""` count as absent.
impl<T: Field> Take for Option<T> {
    fn take(fields: &mut Fields, name: &str) -> Result<Self, Refused> {
        fields.optional(name)
    }

    fn describe(properties: &mut Properties, name: &str, about: &str) {
        properties.add(name, about, false, T::schema());
    }
}

/// The descriptions of fields.
#[derive(Default)]
pub(crate) struct Properties(Vec<Property>);

/// The description of a field.
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) is_required: bool,
    pub(crate) schema: Value,
    /// Another name by which it is accepted.
    pub(crate) alias: Option<&'static str>,
}

impl Properties {
    /// Adds the description of a field.
    pub(crate) fn add(&mut self, name: &str, about: &str, is_required: bool, schema: Value) {
        let (name, about) = (name.to_owned(), about.trim().to_owned());
        self.0.push(Property { name, about, is_required, schema, alias: None });
    }

    /// Sets another name by which the last field is accepted.
    pub(crate) fn also(&mut self, alias: &'static str) {
        if let Some(last) = self.0.last_mut() {
            last.alias = Some(alias);
        }
    }

    /// Returns the schema of an object with these fields and no other.
    pub(crate) fn object(self, about: &str) -> Value {
        let mut object = json!({"type": "object", "properties": {}, "additionalProperties": false});
        if !about.trim().is_empty() {
            object["description"] = json!(about.trim());
        }
        let required: Vec<_> =
            self.0.iter().filter(|field| field.is_required).map(|field| field.name.clone()).collect();
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        for Property { name, about, is_required, schema, .. } in self.0 {
            let mut schema = if is_required { schema } else { or_null(schema) };
            if !about.is_empty() {
                schema["description"] = json!(about);
            }
            object["properties"][name] = schema;
        }
        object
    }
}

impl IntoIterator for Properties {
    type Item = Property;
    type IntoIter = std::vec::IntoIter<Property>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Fields {
    pub(crate) fn new(object: Map<String, Value>) -> Self {
        Self { left: object, problems: Vec::new() }
    }

    /// Accepts a field by a former name. If both are there, the former one is ignored.
    pub(crate) fn rename(&mut self, former: &str, name: &str) {
        if let Some(value) = self.left.remove(former) {
            self.left.entry(name).or_insert(value);
        }
    }

    /// Takes a required field.
    pub(crate) fn required<T: Field>(&mut self, name: &str) -> Result<T, Refused> {
        match self.left.remove(name) {
            None | Some(Value::Null) => self.is_required(name),
            Some(value) => self.read(name, value),
        }
    }

    /// Takes an optional field; null and `""` count as absent.
    pub(crate) fn optional<T: Field>(&mut self, name: &str) -> Result<Option<T>, Refused> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(value) => self.read(name, value).map(Some),
        }
    }

    /// Reports a missing field.
    pub(crate) fn is_required<T>(&mut self, name: &str) -> Result<T, Refused> {
        self.refuse(name, Invalid(ProblemCode::Required, "is required".to_owned()))
    }

    /// Reports a problem of a field.
    pub(crate) fn refuse<T>(&mut self, name: &str, invalid: impl Into<Invalid>) -> Result<T, Refused> {
        let Invalid(code, message) = invalid.into();
        self.problems.push(Problem { field: name.to_owned(), code, message: format!("{name} {message}") });
        Err(Refused)
    }

    /// Reports all problems, but ignores unknown fields: a query may carry parameters for other software.
    pub(crate) fn finish_query(mut self) -> Result<(), ApiError> {
        self.left.clear();
        self.finish()
    }

    /// Reports all problems, and unknown fields.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
        let code = if !self.left.is_empty() {
            Code::UnknownField
        } else if self.problems.iter().any(|problem| problem.code == ProblemCode::InvalidId) {
            Code::InvalidId
        } else {
            Code::ValidationFailed
        };
        self.problems.extend(self.left.keys().take(UNKNOWN_SHOWN).map(|name| {
            let field = shown(name);
            let message = format!("{field} is not a field of this request");
            Problem { field, code: ProblemCode::Unknown, message }
        }));
        if self.problems.is_empty() { Ok(()) } else { Err(ApiError::of_fields(code, self.problems)) }
    }

    fn read<T: Field>(&mut self, name: &str, value: Value) -> Result<T, Refused> {
        T::read(value).or_else(|invalid| self.refuse(name, invalid))
    }
}

impl Problem {
    /// Returns the sentence for users.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<String> for Invalid {
    fn from(message: String) -> Self {
        Self(ProblemCode::Invalid, message)
    }
}

/// The number of unknown fields that are listed: a response must not be much longer than its request.
const UNKNOWN_SHOWN: usize = 20;

/// Truncates and sanitizes a name of a client.
fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}
