//! The tables of the index of texts.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    search_indexes (kind, owner_id) {
        kind -> Text,
        owner_id -> Id,
        next_block -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::Id;

    search_postings (kind, owner_id, block, bucket) {
        kind -> Text,
        owner_id -> Id,
        block -> BigInt,
        bucket -> Integer,
        postings -> Binary,
    }
}
