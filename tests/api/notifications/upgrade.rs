//! An installation from before notifications existed gets them by an upgrade.

use serde_json::json;

use super::{House, Start, add, from_both_databases, settled};

from_both_databases!(a_database_of_the_version_before_is_brought_up_to_date);

const VERSION: &str = "20261115000008";

fn a_database_of_the_version_before_is_brought_up_to_date(start: Start) {
    let mut house = House::new(start);
    let person = add(&house.admin, "grace@example.com");
    let wish = json!({
        "name": "shop", "repository": "registry.example/shop", "port": 80, "environment": "production",
        "build_pack": "image",
    });
    let shop = house.admin.post("/api/v1/deploy/application", &wish).success();
    house.server.kill();
    let down = match house.server.data_dir().join("launchway.db").exists() {
        true => include_str!("../../../migrations/sqlite/2026-11-15-000008_notifications/down.sql"),
        false => include_str!("../../../migrations/postgres/2026-11-15-000008_notifications/down.sql"),
    };
    house
        .server
        .execute(&format!("{down};\nDELETE FROM __diesel_schema_migrations WHERE version = '{VERSION}';"));
    house.restart();
    let applied =
        format!("SELECT version AS value FROM __diesel_schema_migrations WHERE version = '{VERSION}'");
    assert_eq!(house.server.query(&applied), [VERSION]);
    let shown = house.admin.get(&format!("/api/v1/deploy/application?id={}", shop["id"].as_str().unwrap()));
    assert_eq!(shown.success()["name"], "shop");
    house.tell("generic");
    super::remove(&house.admin, &person);
    settled(&house.admin, "delivered", 1);
    let deployment = &shop["deployments"][0]["id"];
    house.admin.post("/api/v1/deploy/application/cancel-deployment", &json!({"id": deployment})).success();
    settled(&house.admin, "delivered", 2);
    let told = super::only(&house.postbox.messages(), "deployment.cancelled");
    // The user who requested an earlier deployment was not recorded.
    assert!(told["data"].get("requested_by").is_none(), "{told}");
    assert_eq!(told["data"]["application"], "shop");
}
