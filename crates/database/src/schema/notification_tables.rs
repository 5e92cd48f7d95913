//! The tables of notifications.

use diesel::{allow_tables_to_appear_in_same_query, table};

use super::{extension_executions, extensions, jobs, organizations, users};

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    webhook_configs (id) {
        id -> Id,
        user_id -> Id,
        organization_id -> Id,
        kind -> Text,
        webhook_url -> Text,
        is_active -> Bool,
        created_at -> Ts,
        updated_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    signing_secrets (id) {
        id -> Id,
        config_id -> Id,
        secret -> Text,
        created_at -> Ts,
        valid_until -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    smtp_configs (id) {
        id -> Id,
        user_id -> Id,
        organization_id -> Id,
        host -> Text,
        port -> BigInt,
        security -> Text,
        username -> Nullable<Text>,
        password -> Nullable<Text>,
        from_email -> Text,
        from_name -> Text,
        recipients -> Text,
        is_active -> Bool,
        created_at -> Ts,
        updated_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    events (id) {
        id -> Id,
        organization_id -> Id,
        kind -> Text,
        facts -> Text,
        body -> Nullable<Text>,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    deliveries (id) {
        id -> Id,
        event_id -> Id,
        organization_id -> Id,
        channel -> Text,
        config_id -> Id,
        state -> Text,
        attempt -> Integer,
        failures -> Integer,
        next_at -> Ts,
        lease_instance -> Nullable<Id>,
        lease_boot -> Nullable<Id>,
        lease_until -> Nullable<Ts>,
        reason -> Text,
        created_at -> Ts,
        finished_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    delivery_attempts (delivery_id, number) {
        delivery_id -> Id,
        number -> Integer,
        at -> Ts,
        took_ms -> BigInt,
        status -> Nullable<Integer>,
        error -> Text,
    }
}

allow_tables_to_appear_in_same_query!(deliveries, events);
allow_tables_to_appear_in_same_query!(deliveries, organizations);
allow_tables_to_appear_in_same_query!(events, organizations);

// Active channels are looked up in the query that collects the data of an event.
allow_tables_to_appear_in_same_query!(extension_executions, extensions, webhook_configs);
allow_tables_to_appear_in_same_query!(extension_executions, organizations);
allow_tables_to_appear_in_same_query!(extension_executions, users);
allow_tables_to_appear_in_same_query!(extension_executions, smtp_configs);
allow_tables_to_appear_in_same_query!(extensions, organizations);
allow_tables_to_appear_in_same_query!(extensions, users);
allow_tables_to_appear_in_same_query!(extensions, smtp_configs);
allow_tables_to_appear_in_same_query!(jobs, organizations);
allow_tables_to_appear_in_same_query!(jobs, webhook_configs);
allow_tables_to_appear_in_same_query!(jobs, smtp_configs);
