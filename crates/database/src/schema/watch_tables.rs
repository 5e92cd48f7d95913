//! The table of the paths that applications watch.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    application_watch_paths (application_id) {
        application_id -> Id,
        patterns -> Text,
    }
}
