//! Reads the fields of a body, and reports all of their problems at once.

use std::{collections::BTreeMap, str::FromStr};

use chrono::{DateTime, SubsecRound, Utc};
use launchway_domain::{
    applications::{
        ApplicationName, ApplicationState, BasePath, Branch, BuildPack, DockerfilePath, Environment,
        HealthCheckPath, Hostname, InvalidVariables, Labels, Port, ProxyServer, RunCommand, Variables,
    },
    audit::{Action, Resource},
    auth::{ApiTokenName, Password, Permission, Permissions},
    clock::Timestamp,
    extensions::{Category, ExtensionKind},
    ids::InvalidId,
    logs::Level,
    notifications::{
        ChannelKind, DeliveryState, MailHost, MailSecurity, MailUsername, Recipients, SenderName,
        WebhookKind, WebhookUrl,
    },
    organizations::{Description, OrganizationName, Role},
    secret::Secret,
    users::{EmailAddress, FontFamily, FontSize, Language, Theme, Username},
    value::InvalidValue,
};
use serde_json::{Map, Value};

use crate::error::{ApiError, Code};

/// The fields of a body, taken one by one.
///
/// Take all fields first, then call [`finish`](Fields::finish), and only then use `?` on them: so every
/// problem is in one response.
pub(crate) struct Fields {
    left: Map<String, Value>,
    problems: Vec<String>,
    code: Code,
}

/// The error of a rejected field. Its problem is reported by [`Fields::finish`].
#[derive(Debug)]
pub(crate) struct Refused;

impl From<Refused> for ApiError {
    fn from(_: Refused) -> Self {
        // Unreachable: `finish` has reported it before.
        Self::new(Code::ValidationFailed, "the body has a field that is not valid")
    }
}

impl Fields {
    pub(crate) fn new(object: Map<String, Value>) -> Self {
        Self { left: object, problems: Vec::new(), code: Code::ValidationFailed }
    }

    /// Takes a required field.
    pub(crate) fn required<T: Field>(&mut self, name: &str) -> Result<T, Refused> {
        match self.left.remove(name) {
            None | Some(Value::Null) => self.refuse(format!("{name} is required")),
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

    /// Takes a required id.
    pub(crate) fn required_id<T: FromStr<Err = InvalidId>>(&mut self, name: &str) -> Result<T, Refused> {
        match self.id(name)? {
            Some(id) => Ok(id),
            None => self.refuse(format!("{name} is required")),
        }
    }

    /// Takes an optional id.
    pub(crate) fn id<T: FromStr<Err = InvalidId>>(&mut self, name: &str) -> Result<Option<T>, Refused> {
        let Some(text) = self.optional::<String>(name)? else { return Ok(None) };
        text.parse().map(Some).or_else(|refused| {
            self.code = Code::InvalidId;
            self.refuse(format!("{name} {refused}"))
        })
    }

    /// Reports a violated rule about several fields.
    pub(crate) fn refuse<T>(&mut self, problem: String) -> Result<T, Refused> {
        self.problems.push(problem);
        Err(Refused)
    }

    /// Reports all problems, but ignores unknown fields: a query may carry parameters for other software.
    pub(crate) fn finish_query(mut self) -> Result<(), ApiError> {
        self.left.clear();
        self.finish()
    }

    /// Reports all problems, and unknown fields.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
        let code = if self.left.is_empty() { self.code } else { Code::UnknownField };
        self.problems.extend(
            self.left
                .keys()
                .take(UNKNOWN_SHOWN)
                .take(UNKNOWN_SHOWN)
                .map(|name| format!("{} is not a field of this request", shown(name))),
        );
        if self.problems.is_empty() { Ok(()) } else { Err(ApiError::new(code, self.problems.join("; "))) }
    }

    fn read<T: Field>(&mut self, name: &str, value: Value) -> Result<T, Refused> {
        T::read(value).or_else(|problem| self.refuse(format!("{name} {problem}")))
    }
}

/// The number of unknown fields that are listed: a response must not be much longer than its request.
const UNKNOWN_SHOWN: usize = 20;

/// Truncates and sanitizes a name of a client.
fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

/// A value of a field.
pub(crate) trait Field: Sized {
    /// Parses the value, or describes its problem: "must be …".
    fn read(value: Value) -> Result<Self, String>;
}

impl Field for bool {
    fn read(value: Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| wrong_type("true or false", &value))
    }
}

impl Field for String {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(wrong_type("a string", &other)),
        }
    }
}

impl Field for Secret<String> {
    fn read(value: Value) -> Result<Self, String> {
        String::read(value).map(Secret::new)
    }
}

impl Field for Timestamp {
    fn read(value: Value) -> Result<Self, String> {
        let text = String::read(value)?;
        DateTime::parse_from_rfc3339(text.trim())
            .map(|moment| moment.with_timezone(&Utc).trunc_subsecs(6))
            .map_err(|_not_a_moment| "must be a moment like `2030-01-31T12:00:00Z`".to_owned())
    }
}

impl Field for Permissions {
    fn read(value: Value) -> Result<Self, String> {
        let Value::Array(items) = value else {
            return Err(wrong_type("an array of strings", &value));
        };
        let names = items.into_iter().map(String::read).collect::<Result<Vec<_>, _>>();
        let names = names.map_err(|_not_text| "must be an array of strings".to_owned())?;
        let (known, unknown): (Vec<_>, Vec<_>) = names
            .iter()
            .map(|name| name.parse::<Permission>().map_err(|_unknown| name))
            .partition(Result::is_ok);
        let unknown: Vec<_> = unknown
            .into_iter()
            .filter_map(Result::err)
            .take(UNKNOWN_SHOWN)
            .map(|name| format!("`{}`", shown(name)))
            .collect();
        if unknown.is_empty() {
            Ok(known.into_iter().flatten().collect())
        } else {
            Err(format!(
                "must be of the form `resource:action`, such as `deploy:read`; unknown: {}",
                unknown.join(", ")
            ))
        }
    }
}

/// A search term of at most 200 characters.
pub(crate) struct SearchTerm(String);

impl From<SearchTerm> for String {
    fn from(term: SearchTerm) -> Self {
        term.0
    }
}

impl Field for SearchTerm {
    fn read(value: Value) -> Result<Self, String> {
        let text = String::read(value)?;
        if text.chars().count() <= 200 {
            Ok(Self(text))
        } else {
            Err(InvalidValue::text("at most 200 characters", &text).to_string())
        }
    }
}

/// Parses text types of the domain from strings by their constructor.
macro_rules! text_fields {
    ($($name:ty),* $(,)?) => {$(
        impl Field for $name {
            fn read(value: Value) -> Result<Self, String> {
                String::read(value)?.try_into().map_err(|refused: InvalidValue| refused.to_string())
            }
        }
    )*};
}

text_fields!(
    Action,
    ApiTokenName,
    ApplicationName,
    ApplicationState,
    BasePath,
    Branch,
    BuildPack,
    Category,
    ChannelKind,
    DeliveryState,
    Description,
    DockerfilePath,
    EmailAddress,
    Environment,
    ExtensionKind,
    FontFamily,
    HealthCheckPath,
    Hostname,
    Language,
    Level,
    MailHost,
    MailSecurity,
    MailUsername,
    OrganizationName,
    Password,
    ProxyServer,
    Resource,
    Role,
    RunCommand,
    SenderName,
    Theme,
    Username,
    WebhookKind,
    WebhookUrl,
);

impl Field for Port {
    fn read(value: Value) -> Result<Self, String> {
        let number = value.as_i64().ok_or_else(|| wrong_type("a whole number", &value))?;
        number.try_into().map_err(|refused: InvalidValue| refused.to_string())
    }
}

impl Field for Labels {
    fn read(value: Value) -> Result<Self, String> {
        let Value::Array(items) = value else { return Err(wrong_type("an array of strings", &value)) };
        let items = items.into_iter().map(String::read).collect::<Result<Vec<_>, _>>();
        let items = items.map_err(|_not_text| "must be an array of strings".to_owned())?;
        items.try_into().map_err(|refused: InvalidValue| refused.to_string())
    }
}

impl Field for Recipients {
    fn read(value: Value) -> Result<Self, String> {
        let Value::Array(items) = value else { return Err(wrong_type("an array of strings", &value)) };
        let addresses = items.into_iter().map(EmailAddress::read).collect::<Result<Vec<_>, _>>();
        addresses?.try_into().map_err(|refused: InvalidValue| refused.to_string())
    }
}

impl Field for Variables {
    fn read(value: Value) -> Result<Self, String> {
        BTreeMap::read(value)?.try_into().map_err(|refused: InvalidVariables| refused.to_string())
    }
}

/// Texts by name.
impl Field for BTreeMap<String, String> {
    fn read(value: Value) -> Result<Self, String> {
        let Value::Object(items) = value else { return Err(wrong_type("an object of strings", &value)) };
        let mut texts = Self::new();
        for (name, value) in items {
            // Values may be secret: an error contains the name only.
            let Value::String(value) = value else {
                return Err(format!("must be an object of strings: the value of `{}` is none", shown(&name)));
            };
            texts.insert(name, value);
        }
        Ok(texts)
    }
}

/// A boolean of a query, where there is only text.
pub(crate) struct Choice(pub(crate) bool);

impl Field for Choice {
    fn read(value: Value) -> Result<Self, String> {
        match String::read(value)?.trim() {
            "true" | "1" => Ok(Self(true)),
            "false" | "0" => Ok(Self(false)),
            other => Err(InvalidValue::text("`true` or `false`", other).to_string()),
        }
    }
}

impl Field for i64 {
    /// Also parses text, because a query has nothing else.
    fn read(value: Value) -> Result<Self, String> {
        let number = match &value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_i64(),
        };
        number.ok_or_else(|| match &value {
            Value::String(text) => InvalidValue::text("a whole number", text).to_string(),
            other => wrong_type("a whole number", other),
        })
    }
}

impl Field for FontSize {
    fn read(value: Value) -> Result<Self, String> {
        let number = value.as_i64().ok_or_else(|| wrong_type("a whole number", &value))?;
        number.try_into().map_err(|refused: InvalidValue| refused.to_string())
    }
}

fn wrong_type(expected: &str, got: &Value) -> String {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("must be {expected}, got {got}")
}
