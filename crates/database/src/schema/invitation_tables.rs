//! The tables of invitations.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    invitations (id) {
        id -> Id,
        organization_id -> Id,
        user_id -> Id,
        role -> Text,
        invited_by -> Id,
        token_hash -> Nullable<Binary>,
        created_at -> Ts,
        expires_at -> Ts,
    }
}
