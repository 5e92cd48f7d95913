//! The tables of certificates.

use diesel::{allow_tables_to_appear_in_same_query, table};

use super::{applications, hosts};

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    certificates (domain) {
        domain -> Text,
        application_id -> Nullable<Id>,
        source -> Text,
        chain -> Nullable<Text>,
        private_key -> Nullable<Text>,
        not_before -> Nullable<Ts>,
        not_after -> Nullable<Ts>,
        failures -> Integer,
        last_error -> Nullable<Text>,
        next_attempt_at -> Nullable<Ts>,
        warned_for -> Nullable<Ts>,
        updated_at -> Ts,
        renewal_check_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Ts;

    acme_accounts (directory) {
        directory -> Text,
        credentials -> Text,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Ts;

    acme_challenges (token) {
        token -> Text,
        key_authorization -> Text,
        created_at -> Ts,
        domain -> Nullable<Text>,
    }
}

table! {
    use diesel::sql_types::*;

    domain_hsts (domain) {
        domain -> Text,
        max_age -> Integer,
    }
}

allow_tables_to_appear_in_same_query!(domain_hsts, hosts);
allow_tables_to_appear_in_same_query!(domain_hsts, applications);
