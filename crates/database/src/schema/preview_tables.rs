//! The tables of previews.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    preview_settings (application_id) {
        application_id -> Id,
        is_enabled -> Bool,
        most_at_once -> BigInt,
        lifetime_hours -> BigInt,
        shared_variables -> Text,
        runs_commands -> Bool,
        build_variables -> Text,
        environment_variables -> Text,
        updated_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    previews (parent_id, number) {
        parent_id -> Id,
        number -> BigInt,
        code_host -> Text,
        application_id -> Nullable<Id>,
        state -> Text,
        branch -> Text,
        head_commit -> Nullable<Text>,
        is_from_fork -> Bool,
        approved_commit -> Nullable<Text>,
        expires_at -> Ts,
        created_at -> Ts,
        updated_at -> Ts,
        reported_commit -> Nullable<Text>,
        reported_state -> Nullable<Text>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    code_host_tokens (organization_id, host) {
        organization_id -> Id,
        host -> Text,
        api_url -> Nullable<Text>,
        token -> Text,
        updated_at -> Ts,
        problem -> Nullable<Text>,
    }
}
