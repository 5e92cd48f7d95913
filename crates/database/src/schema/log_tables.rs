//! The tables of logs of applications.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    log_heads (application_id) {
        application_id -> Id,
        first_number -> BigInt,
        last_number -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    log_usage (application_id) {
        application_id -> Id,
        bytes -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    deployment_log_heads (deployment_id, application_id) {
        deployment_id -> Id,
        application_id -> Id,
        first_number -> BigInt,
        last_number -> BigInt,
        last_printed_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    application_logs (application_id, number) {
        application_id -> Id,
        number -> BigInt,
        deployment_id -> Id,
        deployment_number -> BigInt,
        level -> Text,
        log -> Text,
        search -> Nullable<Text>,
        created_at -> Ts,
    }
}
