//! The table of the images of deployments.

use diesel::table;

table! {
    use diesel::sql_types::*;
    use super::super::super::columns::{Id, Ts};

    deployment_images (deployment_id, image_id) {
        deployment_id -> Id,
        image_id -> Text,
        organization_id -> Id,
        bytes -> BigInt,
        recorded_at -> Ts,
    }
}
