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
