//! The caller's settings: `/api/v1/user/settings`.

use launchway_testkit::{
    client::{Answer, Client},
    server::TestServer,
};
use serde_json::{Value, json};

use crate::{
    shapes::{SETTINGS, expect_record, expect_user_with_memberships},
    wait::at_once,
};

super::on_both_databases!(
    a_changed_theme_is_kept_and_the_rest_of_the_settings_too,
    settings_begin_with_the_defaults,
    every_change_answers_with_all_settings_and_whose_they_are,
    first_changes_at_the_same_moment_are_all_kept_in_one_row,
);

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

fn settings_begin_with_the_defaults(server: TestServer) {
    let admin = server.admin();
    let settings = admin.get("/api/v1/user/settings").success();
    let user = admin.get("/api/v1/user").success();
    let expected = json!({
        "id": settings["id"], "user_id": user["id"], "user": user, "auto_update": true, "theme": "light",
        "font_family": "outfit", "font_size": 16, "language": "en", "created_at": settings["created_at"],
        "updated_at": settings["created_at"], "deleted_at": null,
    });
    assert_eq!(settings, expected);
    assert_eq!(admin.get("/api/v1/user/settings").success(), settings);
}

fn every_change_answers_with_all_settings_and_whose_they_are(server: TestServer) {
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    for (what, change, message) in [
        ("auto-update", json!({"auto_update": false}), "Auto update setting updated successfully"),
        ("theme", json!({"theme": "Solarized_dark-2"}), "Theme updated successfully"),
        ("font", json!({"font_family": "IBM Plex Sans", "font_size": 20}), "Font updated successfully"),
        ("language", json!({"language": "pt-BR"}), "Language updated successfully"),
    ] {
        let before = admin.get("/api/v1/user/settings").success();
        let answer = admin.patch(&format!("/api/v1/user/settings/{what}"), &change);
        assert_eq!(answer.message(), message);
        let after = answer.success();
        expect_record(&after, SETTINGS);
        expect_user_with_memberships(&after["user"]);
        assert_eq!(after["user"], user);
        // Only the requested field has changed, and the time of the change.
        let mut expected = before.clone();
        let changed = change.as_object().unwrap().clone();
        expected.as_object_mut().unwrap().extend(changed);
        expected["updated_at"] = after["updated_at"].clone();
        assert_eq!(after, expected);
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str(), "{what}");
    }
}

fn first_changes_at_the_same_moment_are_all_kept_in_one_row(server: TestServer) {
    let admin = server.admin();
    let changes = [
        ("theme", json!({"theme": "dark"})),
        ("auto-update", json!({"auto_update": false})),
        ("font", json!({"font_size": 9})),
        ("font", json!({"font_family": "Inter"})),
        ("language", json!({"language": "de"})),
    ];
    let answers = at_once(changes.len(), |number| {
        let (what, change) = &changes[number];
        admin.patch(&format!("/api/v1/user/settings/{what}"), change).success()
    });
    let settings = admin.get("/api/v1/user/settings").success();
    for answer in &answers {
        assert_eq!(answer["id"], settings["id"]);
    }
    for (_, change) in &changes {
        for (field, value) in change.as_object().unwrap() {
            assert_eq!(&settings[field], value, "{field}");
        }
    }
}

#[test]
fn the_same_change_again_is_as_good_as_the_first() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for _ in 0..2 {
        let settings =
            admin.patch("/api/v1/user/settings/auto-update", &json!({"auto_update": false})).success();
        assert_eq!(settings["auto_update"], false);
    }
}

/// One setting, and the administrator who changes it.
struct Change {
    admin: Client,
    path: String,
    field: &'static str,
}

impl Change {
    fn of(server: &TestServer, what: &str, field: &'static str) -> Self {
        Self { admin: server.admin(), path: format!("/api/v1/user/settings/{what}"), field }
    }

    fn to(&self, value: &Value) -> Answer {
        let mut body = json!({});
        body[self.field] = value.clone();
        self.admin.patch(&self.path, &body)
    }

    #[track_caller]
    fn is_kept(&self, value: &Value) {
        assert_eq!(&self.to(value).success()[self.field], value);
    }

    #[track_caller]
    fn is_refused(&self, value: &Value) {
        let before = self.admin.get("/api/v1/user/settings").success();
        let message = self.to(value).failure(400, "validation_failed");
        assert!(message.starts_with(self.field), "{value}: {message}");
        assert_eq!(self.admin.get("/api/v1/user/settings").success(), before);
    }
}

#[test]
fn a_theme_has_1_to_20_letters_digits_underscores_and_hyphens() {
    let server = TestServer::on_sqlite();
    let theme = Change::of(&server, "theme", "theme");
    for kept in ["a", "A-b_9", &"t".repeat(20)] {
        theme.is_kept(&json!(kept));
    }
    for refused in ["", " ", "dark mode", "dark.mode", "dunkél", "<b>", "a\nb", &"t".repeat(21)] {
        theme.is_refused(&json!(refused));
    }
    for refused in [json!(null), json!(1), json!(true), json!(["dark"]), json!({"name": "dark"})] {
        theme.is_refused(&refused);
    }
    assert_eq!(theme.to(&json!("  dark ")).success()["theme"], "dark");
}

#[test]
fn a_font_size_is_a_whole_number_from_8_to_32() {
    let server = TestServer::on_sqlite();
    let size = Change::of(&server, "font", "font_size");
    for kept in [8, 9, 31, 32] {
        size.is_kept(&json!(kept));
    }
    for refused in [json!(7), json!(33), json!(0), json!(-16), json!(264), json!(16.5), json!(1e300)] {
        size.is_refused(&refused);
    }
    for refused in [json!("16"), json!(true), json!([16]), json!(u64::MAX), json!(i64::MIN)] {
        size.is_refused(&refused);
    }
}

#[test]
fn a_font_family_has_1_to_50_characters() {
    let server = TestServer::on_sqlite();
    let family = Change::of(&server, "font", "font_family");
    family.is_kept(&json!("f"));
    family.is_kept(&json!("f".repeat(50)));
    family.is_refused(&json!("f".repeat(51)));
    family.is_refused(&json!("serif; color: red"));
}

#[test]
fn a_change_of_the_font_names_the_family_the_size_or_both() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for nothing in [json!({}), json!({"font_family": "", "font_size": null})] {
        let message = admin.patch("/api/v1/user/settings/font", &nothing).failure(400, "validation_failed");
        assert_eq!(message, "font_family or font_size is required");
    }
    let settings = admin.patch("/api/v1/user/settings/font", &json!({"font_size": 12})).success();
    assert_eq!((&settings["font_size"], &settings["font_family"]), (&json!(12), &json!("outfit")));
}

#[test]
fn automatic_updates_are_on_or_off_and_nothing_else() {
    let server = TestServer::on_sqlite();
    let auto_update = Change::of(&server, "auto-update", "auto_update");
    for kept in [false, true] {
        auto_update.is_kept(&json!(kept));
    }
    for refused in [json!("true"), json!(""), json!(1), json!(0), json!(null), json!([]), json!({})] {
        auto_update.is_refused(&refused);
    }
}

#[test]
fn a_language_is_a_tag() {
    let server = TestServer::on_sqlite();
    let language = Change::of(&server, "language", "language");
    for kept in ["de", "pt-BR", "zh-Hant-TW"] {
        language.is_kept(&json!(kept));
    }
    for refused in ["", "x", "english", "en_US", "en-"] {
        language.is_refused(&json!(refused));
    }
}

#[test]
fn what_is_required_must_be_there() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for (what, field) in [("auto-update", "auto_update"), ("theme", "theme"), ("language", "language")] {
        let answer = admin.patch(&format!("/api/v1/user/settings/{what}"), &json!({}));
        assert_eq!(answer.failure(400, "validation_failed"), format!("{field} is required"));
    }
}
