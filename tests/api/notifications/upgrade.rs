//! An installation from before notifications existed gets them by an upgrade.

use serde_json::json;

use super::{Fixture, Start, add, from_both_databases, settled};

from_both_databases!(a_database_of_the_version_before_is_brought_up_to_date);

const VERSION: &str = "20261115000008";

fn a_database_of_the_version_before_is_brought_up_to_date(start: Start) {
    let mut fixture = Fixture::new(start);
    let person = add(&fixture.admin, "grace@example.com");
    let spec = json!({
        "name": "shop", "repository": "registry.example/shop", "port": 80, "environment": "production",
        "build_pack": "image",
    });
    let shop = fixture.admin.post("/api/v1/deploy/application", &spec).success();
    fixture.server.kill();
    let down = match fixture.server.data_dir().join("launchway.db").exists() {
        true => include_str!("../../../migrations/sqlite/2026-11-15-000008_notifications/down.sql"),
        false => include_str!("../../../migrations/postgres/2026-11-15-000008_notifications/down.sql"),
    };
    fixture
        .server
        .execute(&format!("{down};\nDELETE FROM __diesel_schema_migrations WHERE version = '{VERSION}';"));
    fixture.restart();
    let applied =
        format!("SELECT version AS value FROM __diesel_schema_migrations WHERE version = '{VERSION}'");
    assert_eq!(fixture.server.query(&applied), [VERSION]);
    let shown = fixture.admin.get(&format!("/api/v1/deploy/application?id={}", shop["id"].as_str().unwrap()));
    assert_eq!(shown.success()["name"], "shop");
    fixture.add_channel("generic");
    super::remove(&fixture.admin, &person);
    settled(&fixture.admin, "delivered", 1);
    let deployment = &shop["deployments"][0]["id"];
    fixture.admin.post("/api/v1/deploy/application/cancel-deployment", &json!({"id": deployment})).success();
    settled(&fixture.admin, "delivered", 2);
    let message = super::only(&fixture.receiver.messages(), "deployment.cancelled");
    // The user who requested an earlier deployment was not recorded.
    assert!(message["data"].get("requested_by").is_none(), "{message}");
    assert_eq!(message["data"]["application"], "shop");
}
