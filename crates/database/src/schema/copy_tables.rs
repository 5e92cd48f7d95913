//! The table of the number of copies of applications.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    application_replicas (application_id) {
        application_id -> Id,
        replicas -> BigInt,
    }
}
