//! The tables of the installation as a whole.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    installation_identity (singleton) {
        singleton -> Integer,
        id -> Id,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    replicas (id) {
        id -> Id,
        boot -> Id,
        version -> Text,
        hostname -> Text,
        address -> Text,
        engine -> Nullable<Text>,
        started_at -> Ts,
        seen_at -> Ts,
        left_at -> Nullable<Ts>,
        routes_seen -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    leadership (singleton) {
        singleton -> Integer,
        replica -> Id,
        boot -> Id,
        epoch -> BigInt,
        valid_until -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    drains (replica, application_id, container) {
        replica -> Id,
        application_id -> Id,
        container -> Text,
        requested_at -> Ts,
        drained_at -> Nullable<Ts>,
    }
}

table! {
    catalog_version (singleton) {
        singleton -> Integer,
        version -> Text,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    homes (subject) {
        subject -> Id,
        server -> Id,
        engine -> Text,
        node -> Text,
        machine -> Text,
    }
}
