//! The fields of each record, and the formats of ids and timestamps.

use serde_json::Value;

pub(crate) const USER: &[&str] = &[
    "id",
    "username",
    "email",
    "avatar",
    "type",
    "is_verified",
    "two_factor_enabled",
    "two_factor_secret",
    "idp_user_id",
    "organizations",
    "organization_users",
    "created_at",
    "updated_at",
    "deleted_at",
];

pub(crate) const ORGANIZATION: &[&str] =
    &["id", "name", "description", "users", "created_at", "updated_at", "deleted_at"];

pub(crate) const MEMBERSHIP: &[&str] = &[
    "id",
    "organization_id",
    "user_id",
    "organization",
    "user",
    "roles",
    "permissions",
    "created_at",
    "updated_at",
    "deleted_at",
];

pub(crate) const SETTINGS: &[&str] = &[
    "id",
    "user_id",
    "user",
    "auto_update",
    "theme",
    "font_family",
    "font_size",
    "language",
    "created_at",
    "updated_at",
    "deleted_at",
];

pub(crate) const APPLICATION: &[&str] = &[
    "id",
    "name",
    "repository",
    "branch",
    "base_path",
    "dockerfile_path",
    "build_pack",
    "build_variables",
    "environment",
    "environment_variables",
    "domain",
    "domains",
    "certificates",
    "hsts",
    "status_detail",
    "port",
    "pre_run_command",
    "post_run_command",
    "proxy_server",
    "labels",
    "health_check_path",
    "auto_deploy",
    "replicas",
    "watch_paths",
    "organization_id",
    "user_id",
    "organization",
    "user",
    "status",
    "deployments",
    "logs",
    "created_at",
    "updated_at",
];

pub(crate) const APPLICATION_STATUS: &[&str] =
    &["id", "application_id", "application", "status", "created_at", "updated_at"];

pub(crate) const DEPLOYMENT: &[&str] = &[
    "id",
    "application_id",
    "application",
    "commit_hash",
    "source_digest",
    "container_id",
    "container_image",
    "container_name",
    "container_status",
    "status",
    "logs",
    "created_at",
    "updated_at",
];

pub(crate) const DEPLOYMENT_STATUS: &[&str] =
    &["id", "application_deployment_id", "application_deployment", "status", "created_at", "updated_at"];

pub(crate) const LOG: &[&str] = &[
    "id",
    "application_id",
    "application",
    "application_deployment_id",
    "application_deployment",
    "level",
    "log",
    "created_at",
    "updated_at",
];

pub(crate) const EXTENSION: &[&str] = &[
    "id",
    "extension_id",
    "parent_extension_id",
    "name",
    "description",
    "author",
    "category",
    "icon",
    "extension_type",
    "version",
    "is_verified",
    "content_hash",
    "yaml_content",
    "parsed_content",
    "validation_status",
    "validation_errors",
    "variables",
    "created_at",
    "updated_at",
    "deleted_at",
];

pub(crate) const EXTENSION_VARIABLE: &[&str] = &[
    "id",
    "extension_id",
    "extension",
    "variable_name",
    "variable_type",
    "description",
    "default_value",
    "is_required",
    "validation_pattern",
    "created_at",
];

pub(crate) const EXECUTION: &[&str] = &[
    "id",
    "extension_id",
    "extension",
    "server_hostname",
    "status",
    "exit_code",
    "error_message",
    "execution_log",
    "log_seq",
    "variable_values",
    "steps",
    "started_at",
    "completed_at",
    "created_at",
];

pub(crate) const EXECUTION_STEP: &[&str] = &[
    "id",
    "execution_id",
    "execution",
    "step_name",
    "step_order",
    "phase",
    "status",
    "exit_code",
    "output",
    "started_at",
    "completed_at",
    "created_at",
];

pub(crate) const WEBHOOK_CONFIG: &[&str] =
    &["id", "user_id", "organization_id", "webhook_url", "type", "is_active", "created_at", "updated_at"];

pub(crate) const SMTP_CONFIG: &[&str] = &[
    "id",
    "user_id",
    "organization_id",
    "host",
    "port",
    "username",
    "from_email",
    "from_name",
    "to",
    "security",
    "is_active",
    "created_at",
    "updated_at",
];

pub(crate) const DELIVERY: &[&str] = &[
    "id",
    "event_id",
    "event",
    "type",
    "channel",
    "status",
    "next_attempt_at",
    "reason",
    "attempts",
    "created_at",
    "completed_at",
];

/// Asserts that a record has exactly these fields, with an id and timestamps in the right format.
#[track_caller]
pub(crate) fn expect_record(record: &Value, fields: &[&str]) {
    expect_fields(record, fields);
    expect_moment(&record["updated_at"]);
    if fields.contains(&"deleted_at") {
        assert_eq!(record["deleted_at"], Value::Null);
    }
}

/// Asserts that a record has exactly these fields, with an id and the time of its creation.
#[track_caller]
pub(crate) fn expect_fields(record: &Value, fields: &[&str]) {
    let mut expected: Vec<_> = fields.to_vec();
    expected.sort_unstable();
    let mut got: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    got.sort_unstable();
    assert_eq!(got, expected);
    expect_id(&record["id"]);
    expect_moment(&record["created_at"]);
}

/// Asserts that a user has every embedded record, and nothing deeper.
#[track_caller]
pub(crate) fn expect_user_with_memberships(user: &Value) {
    expect_record(user, USER);
    assert_eq!(user["two_factor_secret"], "");
    for organization in user["organizations"].as_array().unwrap() {
        expect_record(organization, ORGANIZATION);
        assert_eq!(organization["users"], Value::Array(Vec::new()));
    }
    for membership in user["organization_users"].as_array().unwrap() {
        expect_record(membership, MEMBERSHIP);
        assert_eq!(membership["user_id"], user["id"]);
        assert_eq!((&membership["organization"], &membership["user"]), (&Value::Null, &Value::Null));
    }
}

/// Asserts that a text is a UUID of version 7 in lower case.
#[track_caller]
pub(crate) fn expect_id(id: &Value) {
    let text = id.as_str().unwrap();
    let form: String = text.chars().map(|c| if "0123456789abcdef".contains(c) { 'x' } else { c }).collect();
    assert_eq!(form, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "{text}");
    assert_eq!(&text[14..15], "7", "{text} is of another version");
    assert!("89ab".contains(&text[19..20]), "{text} is of another variant");
}

/// Asserts that a text is a timestamp of RFC 3339, in UTC, with microseconds and `Z`.
#[track_caller]
pub(crate) fn expect_moment(moment: &Value) {
    let text = moment.as_str().unwrap();
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "0000-00-00T00:00:00.000000Z", "{text}");
}
