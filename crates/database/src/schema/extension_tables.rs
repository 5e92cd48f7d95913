//! The tables of extensions and their runs.

use diesel::{allow_tables_to_appear_in_same_query, table};

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    extensions (id) {
        id -> Id,
        organization_id -> Nullable<Id>,
        key -> Text,
        parent_key -> Nullable<Text>,
        name -> Text,
        name_key -> Text,
        description -> Text,
        author -> Text,
        icon -> Text,
        category -> Text,
        kind -> Text,
        version -> Text,
        is_verified -> Bool,
        content_hash -> Text,
        yaml -> Text,
        parsed -> Text,
        validation -> Text,
        validation_errors -> Text,
        search -> Text,
        created_at -> Ts,
        updated_at -> Ts,
        deleted_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    extension_variables (id) {
        id -> Id,
        extension_id -> Id,
        position -> Integer,
        name -> Text,
        kind -> Text,
        description -> Text,
        default_value -> Nullable<Text>,
        is_required -> Bool,
        pattern -> Text,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    extension_installations (organization_id, extension_key) {
        organization_id -> Id,
        extension_key -> Text,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    extension_executions (id) {
        id -> Id,
        organization_id -> Id,
        extension_id -> Id,
        user_id -> Id,
        job_id -> Id,
        status -> Text,
        server_hostname -> Text,
        exit_code -> Integer,
        error_message -> Text,
        shown_values -> Text,
        sealed_values -> Text,
        definition -> Text,
        log_seq -> BigInt,
        log_bytes -> BigInt,
        started_at -> Nullable<Ts>,
        completed_at -> Nullable<Ts>,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    execution_steps (id) {
        id -> Id,
        execution_id -> Id,
        step_order -> Integer,
        name -> Text,
        phase -> Text,
        status -> Text,
        exit_code -> Integer,
        log_bytes -> BigInt,
        started_at -> Nullable<Ts>,
        completed_at -> Nullable<Ts>,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    execution_logs (execution_id, number) {
        execution_id -> Id,
        number -> BigInt,
        step_id -> Nullable<Id>,
        log_end -> BigInt,
        step_end -> Nullable<BigInt>,
        level -> Text,
        log -> Text,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    extension_routes (id) {
        id -> Id,
        organization_id -> Id,
        extension_key -> Text,
        host -> Text,
        container_id -> Text,
        address -> Text,
        port -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    extension_ports (port, protocol) {
        port -> BigInt,
        protocol -> Text,
        organization_id -> Id,
        extension_key -> Text,
        execution_id -> Id,
        container -> Text,
        container_port -> BigInt,
    }
}

allow_tables_to_appear_in_same_query!(extension_executions, execution_steps, execution_logs);
