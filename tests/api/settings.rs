//! The caller's settings: endpoints 5 and 6 and their neighbours.

use launchway_testkit::server::TestServer;
use serde_json::json;

super::on_both_databases!(a_changed_theme_is_kept_and_the_rest_of_the_settings_too);

fn a_changed_theme_is_kept_and_the_rest_of_the_settings_too(server: TestServer) {
    let admin = server.admin();
    let before = admin.get("/api/v1/user/settings").success();
    let answer = admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"}));
    assert_eq!(answer.message(), "Theme updated successfully");
    let after = answer.success();
    assert_eq!(after["theme"], "dark");
    for field in
        ["id", "user_id", "user", "auto_update", "font_family", "font_size", "language", "created_at"]
    {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(admin.get("/api/v1/user/settings").success(), after);
}
