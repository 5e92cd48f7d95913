//! The values that fields have: how each is read, and its schema.

use std::{
    collections::BTreeMap,
    num::{IntErrorKind, ParseIntError},
};

use chrono::{DateTime, SubsecRound, Utc};
use launchway_domain::{
    applications::{
        ApplicationName, ApplicationState, BasePath, Branch, BuildPack, CopyCount, DockerfilePath,
        Environment, HealthCheckPath, Hostname, InvalidVariables, Labels, Port, ProxyServer, RunCommand,
        VariableNames, Variables, WatchPath, WatchPaths,
    },
    audit,
    auth::{ApiTokenName, Password, Permission, Permissions},
    certificates::HstsMaxAge,
    clock::Timestamp,
    deployments::CommitHash,
    extensions::{Category, ExtensionKind},
    ids::{
        ApiTokenId, ApplicationId, DeliveryId, DeploymentId, ExecutionId, InvalidId, InvitationId,
        OrganizationId, SmtpConfigId, UserId,
    },
    logs::{Level, LogLineId},
    notifications::{
        ChannelKind, DeliveryState, MailHost, MailSecurity, MailUsername, Recipients, SenderName,
        WebhookKind, WebhookUrl,
    },
    organizations::{Description, OrganizationName, Role},
    previews::{CodeHostApi, CodeHostName, PreviewLifetime, PreviewLimit},
    secret::Secret,
    sources::{BlockId, BlockIds},
    users::{EmailAddress, FontFamily, FontSize, Language, Theme, Username},
    value::InvalidValue,
    webhooks::RequestNumber,
};
use serde_json::{Value, json};

use super::{Field, Invalid, ProblemCode, UNKNOWN_SHOWN, shown};
use crate::schema::{line_of, list_of, one_of, short_text_like, text_in, text_like, text_of, whole_number};

impl From<InvalidValue> for Invalid {
    fn from(refused: InvalidValue) -> Self {
        Self(ProblemCode::Invalid, refused.to_string())
    }
}

/// Implements [`Field`] for ids. An empty text counts as absent.
macro_rules! ids {
    ($($name:ty),* $(,)?) => {$(
        impl Field for $name {
            fn read(value: Value) -> Result<Self, Invalid> {
                let text = String::read(value)?;
                if text.is_empty() {
                    return Err(Invalid(ProblemCode::Required, "is required".to_owned()));
                }
                text.parse().map_err(|refused: InvalidId| Invalid(ProblemCode::InvalidId, refused.to_string()))
            }

            fn schema() -> Value {
                text_in("uuid")
            }
        }
    )*};
}

ids!(
    ApiTokenId,
    ApplicationId,
    DeliveryId,
    DeploymentId,
    ExecutionId,
    InvitationId,
    LogLineId,
    OrganizationId,
    SmtpConfigId,
    UserId,
);

/// Implements [`Field`] for enums of the domain.
macro_rules! named {
    ($($name:ty),* $(,)?) => {$(
        impl Field for $name {
            fn read(value: Value) -> Result<Self, Invalid> {
                Ok(String::read(value)?.try_into()?)
            }

            fn schema() -> Value {
                one_of(<$name>::ALL.iter().map(|known| known.as_str()))
            }
        }
    )*};
}

named!(
    ApplicationState,
    BuildPack,
    Category,
    ChannelKind,
    DeliveryState,
    ExtensionKind,
    Level,
    MailSecurity,
    ProxyServer,
    Role,
    WebhookKind,
    audit::Action,
    audit::Resource,
);

/// Implements [`Field`] for text types of the domain.
macro_rules! texts {
    ($($name:ty => $schema:expr),* $(,)?) => {$(
        impl Field for $name {
            fn read(value: Value) -> Result<Self, Invalid> {
                Ok(String::read(value)?.try_into()?)
            }

            fn schema() -> Value {
                $schema
            }
        }
    )*};
}

texts!(
    ApiTokenName => line_of(1, 50, "ci"),
    ApplicationName => text_like("^[A-Za-z0-9][A-Za-z0-9 _-]{0,62}$", "shop"),
    CodeHostApi => short_text_like(r"^https?://[A-Za-z0-9.\-\[\]:]+(?:/[A-Za-z0-9._~\-/]*)?$", 1024, "https://git.example.com/api/v1"),
    CodeHostName => short_text_like(r"^[A-Za-z0-9](?:[A-Za-z0-9.\-]*[A-Za-z0-9])?(?::[0-9]{1,5})?$", 260, "github.com"),
    BlockId => text_like("^[0-9a-f]{64}$", "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"),
    BasePath => short_text_like(INSIDE, 1024, "/"),
    Branch => short_text_like(
        r"^(?![-./])(?!.*(?:\.\.|@\{|/\.|//|\.lock(?:/|$)|[/.]$))(?!(?:@|HEAD)$)[^\u0000-\u0020\u007f-\u009f~^:?*\[\\]+$",
        255,
        "main",
    ),
    CommitHash => text_like("^(?:[0-9a-f]{40}|[0-9a-f]{64})$", "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5"),
    Description => line_of(0, 100, "The web shop"),
    DockerfilePath => short_text_like(&INSIDE.replacen('^', "^(?=.*[^/.])", 1), 1024, "Dockerfile"),
    EmailAddress => json!({"type": "string", "format": "email", "maxLength": 254, "examples": ["ada@example.com"]}),
    Environment => short_text_like("^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$", 50, "production"),
    FontFamily => text_like("^[A-Za-z0-9 _-]{1,50}$", "Inter"),
    HealthCheckPath => short_text_like("^/[!-\"$-~]*$", 1024, "/health"),
    Hostname => text_of(1, 253, "shop.example.com"),
    Language => short_text_like("^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*$", 35, "pt-BR"),
    MailHost => text_of(1, 253, "smtp.example.com"),
    MailUsername => line_of(1, 255, "launchway"),
    OrganizationName => line_of(1, 50, "Ada's Team"),
    Password => json!({"type": "string", "format": "password", "minLength": 8, "maxLength": 256}),
    RunCommand => text_of(1, RunCommand::LONGEST, "./migrate"),
    SenderName => line_of(0, 100, "Launchway"),
    Theme => text_like("^[A-Za-z0-9_-]{1,20}$", "dark"),
    Username => line_of(1, 50, "ada"),
    WebhookUrl => json!({
        "type": "string", "format": "uri", "maxLength": 2048,
        "examples": ["https://hooks.example.com/services/T0/B0/x"],
    }),
);

/// A path inside of a repository: no `..`, no backslash, no control character.
const INSIDE: &str = r"^(?!.*(?:^|/)\.\.(?:/|$))(?!.*(?:\s/|/\s))[^\\\u0000-\u001f\u007f-\u009f]*$";

impl Field for bool {
    fn read(value: Value) -> Result<Self, Invalid> {
        value.as_bool().ok_or_else(|| wrong_type("true or false", &value))
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

impl Field for String {
    fn read(value: Value) -> Result<Self, Invalid> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(wrong_type("a string", &other)),
        }
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Field for Secret<String> {
    fn read(value: Value) -> Result<Self, Invalid> {
        String::read(value).map(Self::new)
    }

    fn schema() -> Value {
        text_in("password")
    }
}

impl Field for Timestamp {
    fn read(value: Value) -> Result<Self, Invalid> {
        let text = String::read(value)?;
        DateTime::parse_from_rfc3339(text.trim())
            .map(|moment| moment.with_timezone(&Utc).trunc_subsecs(6))
            .map_err(|_not_a_moment| "must be a moment like `2030-01-31T12:00:00Z`".to_owned().into())
    }

    fn schema() -> Value {
        text_in("date-time")
    }
}

impl Field for Permissions {
    fn read(value: Value) -> Result<Self, Invalid> {
        let names = strings(value)?;
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
            let unknown = unknown.join(", ");
            let rule = "must be of the form `resource:action`, such as `deploy:read`";
            Err(format!("{rule}; unknown: {unknown}").into())
        }
    }

    fn schema() -> Value {
        list_of(one_of(Permission::all().map(Permission::as_str)))
    }
}

/// A search term of at most 200 characters.
pub(crate) struct SearchTerm(String);

impl SearchTerm {
    const LONGEST: usize = 200;
}

impl From<SearchTerm> for String {
    fn from(term: SearchTerm) -> Self {
        term.0
    }
}

impl Field for SearchTerm {
    fn read(value: Value) -> Result<Self, Invalid> {
        let text = String::read(value)?;
        if text.chars().count() <= Self::LONGEST {
            Ok(Self(text))
        } else {
            Err(InvalidValue::text("at most 200 characters", &text).into())
        }
    }

    fn schema() -> Value {
        json!({"type": "string", "maxLength": Self::LONGEST})
    }
}

/// Implements [`Field`] for numbers of the domain.
macro_rules! numbers {
    ($($name:ty => $min:expr, $max:expr);* $(;)?) => {$(
        impl Field for $name {
            fn read(value: Value) -> Result<Self, Invalid> {
                let number = whole(&value).ok_or_else(|| not_whole(&value))?;
                number.try_into().map_err(|refused: InvalidValue| out_of_range(refused.to_string()))
            }

            fn schema() -> Value {
                whole_number($min, Some($max))
            }
        }
    )*};
}

numbers!(
    Port => 1, 65535;
    CopyCount => 1, i64::from(CopyCount::MOST);
    FontSize => 8, 32;
    HstsMaxAge => 0, i64::from(HstsMaxAge::MOST);
    PreviewLifetime => 1, i64::from(PreviewLifetime::MOST);
    PreviewLimit => 1, i64::from(PreviewLimit::MOST);
    RequestNumber => 1, RequestNumber::MOST;
);

impl Field for Labels {
    fn read(value: Value) -> Result<Self, Invalid> {
        Ok(strings(value)?.try_into()?)
    }

    fn schema() -> Value {
        json!({"type": "array", "items": line_of(1, 63, "team=web"), "maxItems": Self::MOST})
    }
}

impl Field for WatchPaths {
    fn read(value: Value) -> Result<Self, Invalid> {
        Ok(strings(value)?.try_into()?)
    }

    fn schema() -> Value {
        let pattern = line_of(1, WatchPath::LONGEST, "apps/web/**");
        json!({"type": "array", "items": pattern, "maxItems": Self::MOST})
    }
}

impl Field for BlockIds {
    fn read(value: Value) -> Result<Self, Invalid> {
        Ok(strings(value)?.try_into()?)
    }

    fn schema() -> Value {
        json!({"type": "array", "items": BlockId::schema(), "minItems": 1, "maxItems": Self::MOST})
    }
}

impl Field for VariableNames {
    fn read(value: Value) -> Result<Self, Invalid> {
        Ok(strings(value)?.try_into()?)
    }

    fn schema() -> Value {
        let name = text_like("^[A-Za-z_][A-Za-z0-9_]{0,254}$", "LOG_LEVEL");
        json!({"type": "array", "items": name, "maxItems": Variables::MOST})
    }
}

impl Field for Recipients {
    fn read(value: Value) -> Result<Self, Invalid> {
        let Value::Array(items) = value else { return Err(wrong_type("an array of strings", &value)) };
        let addresses = items.into_iter().map(EmailAddress::read).collect::<Result<Vec<_>, _>>();
        Ok(addresses?.try_into()?)
    }

    fn schema() -> Value {
        json!({"type": "array", "items": EmailAddress::schema(), "maxItems": Self::MOST})
    }
}

impl Field for Variables {
    /// Also parses JSON text, because responses show variables so.
    fn read(value: Value) -> Result<Self, Invalid> {
        let value = match &value {
            Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or(value),
            _ => value,
        };
        let texts = BTreeMap::read(value)?;
        texts.try_into().map_err(|refused: InvalidVariables| refused.to_string().into())
    }

    fn schema() -> Value {
        json!({
            "type": ["object", "string"],
            "maxProperties": Self::MOST,
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,254}$"},
            "additionalProperties": {"type": "string", "maxLength": Self::LONGEST_VALUE},
        })
    }
}

/// Texts by name.
impl Field for BTreeMap<String, String> {
    fn read(value: Value) -> Result<Self, Invalid> {
        let Value::Object(items) = value else { return Err(wrong_type("an object of strings", &value)) };
        let mut texts = Self::new();
        for (name, value) in items {
            // Values may be secret: an error contains the name only.
            let Value::String(value) = value else {
                let message =
                    format!("must be an object of strings: the value of `{}` is none", shown(&name));
                return Err(Invalid(ProblemCode::WrongType, message));
            };
            texts.insert(name, value);
        }
        Ok(texts)
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": {"type": "string"}})
    }
}

/// A boolean of a query, where there is only text.
pub(crate) struct Choice(pub(crate) bool);

impl Field for Choice {
    fn read(value: Value) -> Result<Self, Invalid> {
        match String::read(value)?.trim() {
            "true" | "1" => Ok(Self(true)),
            "false" | "0" => Ok(Self(false)),
            other => Err(InvalidValue::text("`true` or `false`", other).into()),
        }
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

/// A number of at least `MIN`. It may be text, because a query has nothing else.
pub(crate) struct AtLeast<const MIN: i64>(pub(crate) i64);

impl<const MIN: i64> Field for AtLeast<MIN> {
    fn read(value: Value) -> Result<Self, Invalid> {
        let number = match &value {
            Value::String(text) => match text.trim().parse() {
                // A page beyond the last one is empty, and a size beyond the largest is the largest.
                Err(error) if *ParseIntError::kind(&error) == IntErrorKind::PosOverflow => Some(i64::MAX),
                number => number.ok(),
            },
            other => whole(other),
        };
        match (number, &value) {
            (Some(number), _) if number >= MIN => Ok(Self(number)),
            (Some(number), _) => Err(out_of_range(format!("must be at least {MIN}, got {number}"))),
            (None, Value::String(text)) => Err(InvalidValue::text("a whole number", text).into()),
            (None, other) => Err(not_whole(other)),
        }
    }

    fn schema() -> Value {
        whole_number(MIN, None)
    }
}

/// Returns the problem of a number beyond its limits.
pub(crate) fn out_of_range(message: String) -> Invalid {
    Invalid(ProblemCode::OutOfRange, message)
}

/// Returns a whole number, also if it is written with a fraction of zero.
fn whole(value: &Value) -> Option<i64> {
    /// The range in which every whole number is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let exact = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
    value.as_i64().or_else(|| exact.and_then(|number| format!("{number:.0}").parse().ok()))
}

fn not_whole(value: &Value) -> Invalid {
    match value {
        Value::Number(number) => Invalid::from(format!("must be a whole number, got {number}")),
        other => wrong_type("a whole number", other),
    }
}

fn strings(value: Value) -> Result<Vec<String>, Invalid> {
    let Value::Array(items) = value else { return Err(wrong_type("an array of strings", &value)) };
    let items = items.into_iter().map(String::read).collect::<Result<_, _>>();
    items.map_err(|_not_text| Invalid(ProblemCode::WrongType, "must be an array of strings".to_owned()))
}

fn wrong_type(expected: &str, got: &Value) -> Invalid {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Invalid(ProblemCode::WrongType, format!("must be {expected}, got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_all_limits_counts_as_the_largest() {
        let read = |text: &str| AtLeast::<1>::read(json!(text)).map(|number| number.0).ok();
        assert_eq!(read("602955946583764238336"), Some(i64::MAX));
        assert_eq!(
            (read(" 7 "), read("0"), read("-602955946583764238336"), read("x")),
            (Some(7), None, None, None)
        );
    }
}
