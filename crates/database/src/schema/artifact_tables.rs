//! The tables of artifacts that every server of an installation needs.

use diesel::{allow_tables_to_appear_in_same_query, table};

table! {
    use diesel::sql_types::*;

    setup_token (singleton) {
        singleton -> Integer,
        sealed -> Text,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    compositions (application_id, deployment_id) {
        application_id -> Id,
        deployment_id -> Id,
        sealed -> Text,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    site_archives (deployment_id) {
        deployment_id -> Id,
        application_id -> Id,
        upload_id -> Id,
        parts -> BigInt,
        size -> BigInt,
        sha256 -> Binary,
        is_removed -> Bool,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    site_archive_parts (upload_id, part) {
        upload_id -> Id,
        part -> BigInt,
        bytes -> Binary,
        written_at -> Ts,
    }
}

allow_tables_to_appear_in_same_query!(site_archives, site_archive_parts);
