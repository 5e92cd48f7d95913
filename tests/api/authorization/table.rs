//! The table: an operation, a request for it, and the expected response of each caller.

/// One operation.
pub(crate) struct Row {
    /// Method and path, as in the OpenAPI document.
    pub(crate) operation: &'static str,
    /// The path of the request. `{…}` stands for a value of the world.
    pub(crate) request: &'static str,
    /// The body, with the same placeholders.
    pub(crate) body: &'static str,
    /// The responses to a caller without a token, one with an expired token, another organization's admin
    /// who names this organization, a viewer, a member, an admin, and a former member.
    pub(crate) expected: [&'static str; 7],
}

const fn row(
    operation: &'static str,
    request: &'static str,
    body: &'static str,
    expected: [&'static str; 7],
) -> Row {
    Row { operation, request, body, expected }
}

const OK: &str = "200";
const UNKNOWN: &str = "401 unauthenticated";
const WRONG: &str = "401 invalid_credentials";
const UNSIGNED: &str = "401 invalid_signature";
const NO: &str = "403 forbidden";
const CLOSED: &str = "403 registration_closed";
const NOT_FOUND: &str = "404 not_found";
const CONFLICT: &str = "409 conflict";

/// For everyone, with or without a token.
const PUBLIC: [&str; 7] = [OK; 7];
/// For every valid token: the operation concerns only its own user.
const SELF: [&str; 7] = [UNKNOWN, UNKNOWN, NO, OK, OK, OK, OK];
/// As [`SELF`], for something that does not exist.
const NOBODYS: [&str; 7] = [UNKNOWN, UNKNOWN, NO, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND];
/// For every member.
const MEMBERS: [&str; 7] = [UNKNOWN, UNKNOWN, NO, OK, OK, OK, NO];
/// For members who are not just viewers.
const NOT_VIEWERS: [&str; 7] = [UNKNOWN, UNKNOWN, NO, NO, OK, OK, NO];
/// For admins.
const ADMINS: [&str; 7] = [UNKNOWN, UNKNOWN, NO, NO, NO, OK, NO];

/// Every operation. The last one deletes the organization; the admin has created another one.
pub(crate) const ROWS: &[Row] = &[
    row("GET /health", "/health", "", PUBLIC),
    row("GET /api/v1/health", "/api/v1/health", "", PUBLIC),
    row("GET /ready", "/ready", "", PUBLIC),
    row("GET /docs", "/docs", "", PUBLIC),
    row("GET /metrics", "/metrics", "", PUBLIC),
    row("GET /api/v1/openapi.json", "/api/v1/openapi.json", "", PUBLIC),
    row("GET /api/v1/auth/is-admin-registered", "/api/v1/auth/is-admin-registered", "", PUBLIC),
    row(
        "POST /api/v1/auth/register",
        "/api/v1/auth/register",
        r#"{"email": "mallory@example.com", "username": "mallory", "password": "a long passphrase"}"#,
        [CLOSED; 7],
    ),
    row(
        "POST /api/v1/auth/login",
        "/api/v1/auth/login",
        r#"{"email": "nobody-{unique}@example.com", "password": "a long passphrase"}"#,
        [WRONG; 7],
    ),
    row(
        "POST /api/v1/auth/password/setup",
        "/api/v1/auth/password/setup",
        r#"{"token": "lwp_guessed", "password": "a long passphrase"}"#,
        [WRONG; 7],
    ),
    row("GET /api/v1/user", "/api/v1/user", "", SELF),
    row("GET /api/v1/user/organizations", "/api/v1/user/organizations", "", SELF),
    row("GET /api/v1/user/invitations", "/api/v1/user/invitations", "", SELF),
    row(
        "POST /api/v1/user/invitations/{id}/accept",
        "/api/v1/user/invitations/{nothing}/accept",
        r#"{"token": "lwv_guessed"}"#,
        NOBODYS,
    ),
    row(
        "POST /api/v1/user/invitations/{id}/decline",
        "/api/v1/user/invitations/{nothing}/decline",
        "",
        NOBODYS,
    ),
    row("PATCH /api/v1/user/name", "/api/v1/user/name", r#"{"name": "renamed"}"#, SELF),
    row(
        "PATCH /api/v1/user/password",
        "/api/v1/user/password",
        r#"{"current_password": "not the right one", "new_password": "a long passphrase"}"#,
        [UNKNOWN, UNKNOWN, NO, WRONG, WRONG, WRONG, WRONG],
    ),
    row("GET /api/v1/user/settings", "/api/v1/user/settings", "", SELF),
    row(
        "PATCH /api/v1/user/settings/auto-update",
        "/api/v1/user/settings/auto-update",
        r#"{"auto_update": false}"#,
        SELF,
    ),
    row("PATCH /api/v1/user/settings/font", "/api/v1/user/settings/font", r#"{"font_size": 20}"#, SELF),
    row(
        "PATCH /api/v1/user/settings/language",
        "/api/v1/user/settings/language",
        r#"{"language": "de"}"#,
        SELF,
    ),
    row("PATCH /api/v1/user/settings/theme", "/api/v1/user/settings/theme", r#"{"theme": "dark"}"#, SELF),
    row("GET /api/v1/auth/tokens", "/api/v1/auth/tokens", "", SELF),
    row("POST /api/v1/auth/tokens", "/api/v1/auth/tokens", r#"{"name": "{unique}"}"#, MEMBERS),
    row(
        "DELETE /api/v1/auth/tokens/{id}",
        "/api/v1/auth/tokens/{nothing}",
        "",
        [UNKNOWN, UNKNOWN, NO, NOT_FOUND, NOT_FOUND, NOT_FOUND, NO],
    ),
    row("POST /api/v1/auth/two-factor/setup", "/api/v1/auth/two-factor/setup", "", SELF),
    row(
        "POST /api/v1/auth/two-factor/enable",
        "/api/v1/auth/two-factor/enable",
        r#"{"code": "no code"}"#,
        [UNKNOWN, UNKNOWN, NO, WRONG, WRONG, WRONG, WRONG],
    ),
    row(
        "POST /api/v1/auth/two-factor/disable",
        "/api/v1/auth/two-factor/disable",
        r#"{"code": "no code"}"#,
        [UNKNOWN, UNKNOWN, NO, CONFLICT, CONFLICT, CONFLICT, CONFLICT],
    ),
    row("GET /api/v1/audit/logs", "/api/v1/audit/logs", "", NOT_VIEWERS),
    row("GET /api/v1/organizations", "/api/v1/organizations", "", MEMBERS),
    row("GET /api/v1/organizations/users", "/api/v1/organizations/users", "", MEMBERS),
    row("GET /api/v1/organizations/invitations", "/api/v1/organizations/invitations", "", ADMINS),
    row("GET /api/v1/organizations/usage", "/api/v1/organizations/usage", "", MEMBERS),
    row("POST /api/v1/organizations", "/api/v1/organizations", r#"{"name": "{unique}"}"#, ADMINS),
    row("PUT /api/v1/organizations", "/api/v1/organizations", r#"{"description": "ours"}"#, ADMINS),
    row(
        "POST /api/v1/organizations/users",
        "/api/v1/organizations/users",
        r#"{"email": "{unique}@example.com", "role": "viewer"}"#,
        ADMINS,
    ),
    row(
        "PATCH /api/v1/organizations/users",
        "/api/v1/organizations/users",
        r#"{"user_id": "{bystander}", "role": "member"}"#,
        ADMINS,
    ),
    row(
        "DELETE /api/v1/organizations/users",
        "/api/v1/organizations/users",
        r#"{"user_id": "{bystander}"}"#,
        ADMINS,
    ),
    row("GET /api/v1/organizations/deploy-key", "/api/v1/organizations/deploy-key", "", MEMBERS),
    row("POST /api/v1/organizations/deploy-key", "/api/v1/organizations/deploy-key", "", ADMINS),
    row("GET /api/v1/deploy/applications", "/api/v1/deploy/applications", "", MEMBERS),
    row("GET /api/v1/deploy/application", "/api/v1/deploy/application?id={application}", "", MEMBERS),
    row(
        "GET /api/v1/deploy/application/deployments",
        "/api/v1/deploy/application/deployments?id={application}",
        "",
        MEMBERS,
    ),
    row(
        "GET /api/v1/deploy/application/deployments/{deployment_id}",
        "/api/v1/deploy/application/deployments/{deployment}",
        "",
        MEMBERS,
    ),
    row(
        "GET /api/v1/deploy/application/deployments/{deployment_id}/logs",
        "/api/v1/deploy/application/deployments/{deployment}/logs",
        "",
        MEMBERS,
    ),
    // Of a finished deployment: such a stream ends.
    row(
        "GET /api/v1/deploy/application/deployments/{deployment_id}/logs/stream",
        "/api/v1/deploy/application/deployments/{cancelled}/logs/stream",
        "",
        MEMBERS,
    ),
    row(
        "GET /api/v1/deploy/application/logs/{application_id}",
        "/api/v1/deploy/application/logs/{application}",
        "",
        MEMBERS,
    ),
    row(
        "POST /api/v1/deploy/application",
        "/api/v1/deploy/application",
        r#"{"name": "{unique}", "repository": "registry.example/shop", "port": 80, "environment": "production",
            "build_pack": "image"}"#,
        NOT_VIEWERS,
    ),
    row(
        "PUT /api/v1/deploy/application",
        "/api/v1/deploy/application?id={application}&redeploy=false",
        r#"{"port": 8081}"#,
        NOT_VIEWERS,
    ),
    row(
        "POST /api/v1/deploy/application/redeploy",
        "/api/v1/deploy/application/redeploy",
        r#"{"id": "{application}"}"#,
        NOT_VIEWERS,
    ),
    row(
        "POST /api/v1/deploy/application/cancel-deployment",
        "/api/v1/deploy/application/cancel-deployment",
        r#"{"id": "{waiting}"}"#,
        NOT_VIEWERS,
    ),
    // Nothing of this application is live, which only callers learn who may change that.
    row(
        "POST /api/v1/deploy/application/rollback",
        "/api/v1/deploy/application/rollback",
        r#"{"id": "{deployment}"}"#,
        [UNKNOWN, UNKNOWN, NO, NO, CONFLICT, CONFLICT, NO],
    ),
    row(
        "POST /api/v1/deploy/application/restart",
        "/api/v1/deploy/application/restart",
        r#"{"id": "{application}"}"#,
        [UNKNOWN, UNKNOWN, NO, NO, CONFLICT, CONFLICT, NO],
    ),
    row(
        "POST /api/v1/deploy/application/stop",
        "/api/v1/deploy/application/stop",
        r#"{"id": "{application}"}"#,
        [UNKNOWN, UNKNOWN, NO, NO, CONFLICT, CONFLICT, NO],
    ),
    // The first allowed caller has added it, and removed it.
    row(
        "POST /api/v1/deploy/application/domains",
        "/api/v1/deploy/application/domains",
        r#"{"id": "{application}", "domain": "www.example.com"}"#,
        [UNKNOWN, UNKNOWN, NO, NO, OK, CONFLICT, NO],
    ),
    row(
        "DELETE /api/v1/deploy/application/domains",
        "/api/v1/deploy/application/domains",
        r#"{"id": "{application}", "domain": "www.example.com"}"#,
        [UNKNOWN, UNKNOWN, NO, NO, OK, NOT_FOUND, NO],
    ),
    row("GET /api/v1/extensions", "/api/v1/extensions", "", MEMBERS),
    row("GET /api/v1/extensions/categories", "/api/v1/extensions/categories", "", MEMBERS),
    row(
        "GET /api/v1/extensions/by-extension-id/{extension_id}",
        "/api/v1/extensions/by-extension-id/{fork}",
        "",
        MEMBERS,
    ),
    row("POST /api/v1/extensions/{extension_id}/fork", "/api/v1/extensions/hello-note/fork", "", ADMINS),
    row("POST /api/v1/extensions/{extension_id}/run", "/api/v1/extensions/{fork}/run", "", ADMINS),
    row(
        "POST /api/v1/extensions/{extension_id}/uninstall",
        "/api/v1/extensions/{fork}/uninstall",
        "",
        ADMINS,
    ),
    row(
        "GET /api/v1/extensions/by-extension-id/{extension_id}/executions",
        "/api/v1/extensions/by-extension-id/{fork}/executions",
        "",
        MEMBERS,
    ),
    row(
        "GET /api/v1/extensions/execution/{execution_id}",
        "/api/v1/extensions/execution/{execution}",
        "",
        MEMBERS,
    ),
    row(
        "GET /api/v1/extensions/execution/{execution_id}/logs",
        "/api/v1/extensions/execution/{execution}/logs",
        "",
        MEMBERS,
    ),
    // It has finished, which only callers learn who may cancel one.
    row(
        "POST /api/v1/extensions/execution/{execution_id}/cancel",
        "/api/v1/extensions/execution/{execution}/cancel",
        "",
        [UNKNOWN, UNKNOWN, NO, NO, NO, CONFLICT, NO],
    ),
    row("DELETE /api/v1/extensions/{extension_id}", "/api/v1/extensions/{fork}", "", ADMINS),
    row(
        "GET /api/v1/deploy/application/webhook-secret",
        "/api/v1/deploy/application/webhook-secret?id={from_git}",
        "",
        ADMINS,
    ),
    row(
        "POST /api/v1/deploy/application/webhook-secret",
        "/api/v1/deploy/application/webhook-secret?id={from_git}",
        "",
        ADMINS,
    ),
    // Only for signed requests.
    row("POST /api/v1/webhook", "/api/v1/webhook", r#"{"ref": "refs/heads/main"}"#, [UNSIGNED; 7]),
    row("POST /api/v1/api/v1/webhook", "/api/v1/api/v1/webhook", "", [UNSIGNED; 7]),
    row(
        "POST /api/v1/notification/webhook",
        "/api/v1/notification/webhook",
        r#"{"type": "slack", "webhook_url": "https://hooks.example.com/", "is_active": false}"#,
        ADMINS,
    ),
    row(
        "POST /api/v1/api/v1/notification/webhook",
        "/api/v1/api/v1/notification/webhook",
        r#"{"type": "discord", "webhook_url": "https://hooks.example.com/", "is_active": false}"#,
        ADMINS,
    ),
    row(
        "PUT /api/v1/notification/webhook",
        "/api/v1/notification/webhook",
        r#"{"type": "slack", "is_active": false}"#,
        ADMINS,
    ),
    row("GET /api/v1/notification/webhook/{type}", "/api/v1/notification/webhook/slack", "", MEMBERS),
    row(
        "POST /api/v1/notification/webhook/generic/secret",
        "/api/v1/notification/webhook/generic/secret",
        "",
        ADMINS,
    ),
    row("POST /api/v1/notification/test", "/api/v1/notification/test", r#"{"channel": "slack"}"#, ADMINS),
    row("DELETE /api/v1/notification/webhook/{type}", "/api/v1/notification/webhook/slack", "", ADMINS),
    row(
        "POST /api/v1/notification/smtp",
        "/api/v1/notification/smtp",
        r#"{"host": "smtp.example.com", "from_email": "launchway@example.com"}"#,
        ADMINS,
    ),
    row("GET /api/v1/notification/smtp", "/api/v1/notification/smtp", "", MEMBERS),
    row("PUT /api/v1/notification/smtp", "/api/v1/notification/smtp", r#"{"is_active": false}"#, ADMINS),
    row("DELETE /api/v1/notification/smtp", "/api/v1/notification/smtp", "", ADMINS),
    // It was deleted, which only callers learn who may delete it.
    row(
        "DELETE /api/v1/api/v1/notification/smtp",
        "/api/v1/api/v1/notification/smtp",
        "",
        [UNKNOWN, UNKNOWN, NO, NO, NO, NOT_FOUND, NO],
    ),
    row("GET /api/v1/notification/deliveries", "/api/v1/notification/deliveries", "", MEMBERS),
    row(
        "POST /api/v1/notification/deliveries/{delivery_id}/replay",
        "/api/v1/notification/deliveries/{nothing}/replay",
        "",
        [UNKNOWN, UNKNOWN, NO, NO, NO, NOT_FOUND, NO],
    ),
    row("GET /api/v1/proxy/ask", "/api/v1/proxy/ask?domain=www.example.com", "", [NOT_FOUND; 7]),
    row("DELETE /api/v1/deploy/application", "/api/v1/deploy/application?id={spare}", "", NOT_VIEWERS),
    row("POST /api/v1/auth/logout", "/api/v1/auth/logout", "", SELF),
    row(
        "DELETE /api/v1/organizations",
        "/api/v1/organizations?id={organization}",
        "",
        [UNKNOWN, UNKNOWN, NO, NO, NO, OK, NOT_FOUND],
    ),
];
