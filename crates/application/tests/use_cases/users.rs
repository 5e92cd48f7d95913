//! The name and the settings of the caller.

use std::sync::Arc;

use launchway_application::{Error, users::SettingsDetail};
use launchway_domain::{
    audit::Chain,
    auth::Actor,
    clock::Timestamp,
    organizations::Role,
    store::{self, StoreError},
    users::{Profile, Settings, SettingsChange, Username, Write},
};
use launchway_testkit::{
    CountingIds,
    builders::{
        EntryBuilder, ProfileBuilder, a_profile, a_user, an_actor, an_api_token, an_entry, an_organization,
        parsed,
    },
    clock::moment,
    ids::id_of,
};
use mockall::predicate::eq;

use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn stored_settings() -> Settings {
    let made_at = moment("2025-06-01T08:00:00Z");
    Settings::defaults(id_of("ada's settings").into(), a_user().build().id, made_at)
}

fn ada() -> ProfileBuilder {
    a_profile().member_of(&an_organization().build(), Role::Viewer)
}

fn rename_writes(username: &Username, at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry()
        .with_message(&format!("changed their username to `{username}`"))
        .with("username", username)
        .at(at);
    let rename = Write::Rename { id: a_user().build().id, username: username.clone(), at };
    vec![rename.into(), audited(1, entry)]
}

fn change_settings(actor: &Actor, changes: Vec<SettingsChange>, at: Timestamp) -> Write {
    Write::ChangeSettings { user_id: actor.user_id(), new_id: CountingIds::nth(1).into(), changes, at }
}

fn dark() -> SettingsChange {
    SettingsChange::Theme(parsed("dark"))
}

/// Returns the audit entry of a change to the dark theme.
fn darkened() -> EntryBuilder {
    an_entry().with_message("changed theme to `dark`").with("theme", "dark")
}

/// Expects that the profile is read again.
fn expect_profile(ports: &mut MockedPorts, profile: Option<Profile>) {
    let id = a_user().build().id;
    ports.users.expect_profile().with(eq(id)).once().return_once(|_| Ok(profile));
}

#[tokio::test]
async fn a_caller_gets_another_name_and_sees_it() {
    let actor = an_actor().of(ada().build()).build();
    let username: Username = parsed("countess");
    let mut renamed = ada().build();
    renamed.user.username = username.clone();
    let mut ports = MockedPorts::default();
    ports.expect_commit(rename_writes(&username, ports.now()));
    expect_profile(&mut ports, Some(renamed.clone()));

    let outcome = ports.services().users.rename(&actor, username).await;

    assert_eq!(outcome.unwrap(), renamed);
}

#[tokio::test]
async fn rename_is_audited_in_every_organization_of_the_user() {
    let engines = an_organization().named("Engines").build();
    let profile = ada().member_of(&engines, Role::Viewer).build();
    let actor = an_actor().of(profile.clone()).build();
    let username: Username = parsed("countess");
    let mut ports = MockedPorts::default();
    let entry = || {
        an_entry()
            .with_message("changed their username to `countess`")
            .with("username", &username)
            .at(ports.now())
    };
    let writes =
        [rename_writes(&username, ports.now()), vec![audited(2, entry().in_audit_log_of(&engines))]].concat();
    ports.expect_commit(writes);
    expect_profile(&mut ports, Some(profile));

    let outcome = ports.services().users.rename(&actor, username).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_program_renames_its_owner_whatever_its_permissions() {
    let actor = an_actor().of(ada().build()).with_api_token(an_api_token().permitting(&[]).build()).build();
    let mut ports = MockedPorts::default();
    ports.expect_commit(rename_writes(&parsed("ada"), ports.now()));
    expect_profile(&mut ports, Some(ada().build()));

    let outcome = ports.services().users.rename(&actor, parsed("ada")).await;

    assert_eq!(outcome.unwrap(), ada().build());
}

#[tokio::test]
async fn a_caller_deleted_meanwhile_gets_no_name() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().users.rename(&an_actor().build(), parsed("countess")).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn a_caller_deleted_right_after_the_renaming_is_unauthenticated() {
    let actor = an_actor().build();
    let mut ports = MockedPorts::default();
    ports.expect_commit(rename_writes(&parsed("countess"), ports.now()));
    expect_profile(&mut ports, None);

    let outcome = ports.services().users.rename(&actor, parsed("countess")).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn nobody_is_renamed_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().users.rename(&an_actor().build(), parsed("countess")).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn settings_that_came_with_the_caller_are_not_read_again() {
    let profile = ada().with_settings(stored_settings()).build();
    let actor = an_actor().of(profile.clone()).build();

    let outcome = MockedPorts::default().services().users.settings(&actor).await;

    assert_eq!(outcome.unwrap(), SettingsDetail { settings: stored_settings(), profile: Arc::new(profile) });
}

#[tokio::test]
async fn settings_are_made_on_first_use_by_a_change_of_nothing() {
    let actor = an_actor().of(ada().build()).build();
    let profile = ada().with_settings(stored_settings()).build();
    let mut ports = MockedPorts::default();
    ports.expect_commit(vec![change_settings(&actor, vec![], ports.now()).into()]);
    expect_profile(&mut ports, Some(profile.clone()));

    let outcome = ports.services().users.settings(&actor).await;

    assert_eq!(outcome.unwrap(), SettingsDetail { settings: stored_settings(), profile: Arc::new(profile) });
}

#[tokio::test]
async fn settings_change_in_what_is_named_and_are_read_back() {
    let actor = an_actor().of(ada().with_settings(stored_settings()).build()).build();
    let changes = vec![dark(), SettingsChange::AutoUpdate(false)];
    let entry = an_entry()
        .with_message("changed theme to `dark` and auto_update to `false`")
        .with("theme", "dark")
        .with("auto_update", "false");
    let changed = stored_settings().with(dark()).with(SettingsChange::AutoUpdate(false));
    let profile = ada().with_settings(changed.clone()).build();
    let mut ports = MockedPorts::default();
    ports
        .expect_commit(vec![change_settings(&actor, changes.clone(), ports.now()).into(), audited(2, entry)]);
    expect_profile(&mut ports, Some(profile.clone()));

    let outcome = ports.services().users.change_settings(&actor, changes).await;

    assert_eq!(outcome.unwrap(), SettingsDetail { settings: changed, profile: Arc::new(profile) });
}

#[tokio::test]
async fn the_audit_log_names_the_changed_setting_and_its_value() {
    for (change, name, value) in [
        (SettingsChange::AutoUpdate(true), "auto_update", "true"),
        (dark(), "theme", "dark"),
        (SettingsChange::FontFamily(parsed("serif")), "font_family", "serif"),
        (SettingsChange::FontSize(18.try_into().unwrap()), "font_size", "18"),
        (SettingsChange::Language(parsed("de")), "language", "de"),
    ] {
        let actor = an_actor().of(ada().with_settings(stored_settings()).build()).build();
        let entry = an_entry().with_message(&format!("changed {name} to `{value}`")).with(name, value);
        let mut ports = MockedPorts::default();
        ports.expect_commit(vec![
            change_settings(&actor, vec![change.clone()], ports.now()).into(),
            audited(2, entry),
        ]);
        expect_profile(&mut ports, Some(ada().with_settings(stored_settings()).build()));

        let outcome = ports.services().users.change_settings(&actor, vec![change]).await;

        assert_eq!(outcome.unwrap().settings, stored_settings());
    }
}

#[tokio::test]
async fn change_without_organization_is_audited_by_installation() {
    let actor = an_actor().of(a_profile().with_settings(stored_settings()).build()).build();
    let mut ports = MockedPorts::default();
    ports.expect_commit(vec![
        change_settings(&actor, vec![dark()], ports.now()).into(),
        audited(2, darkened().in_chain(Chain::Installation)),
    ]);
    expect_profile(&mut ports, Some(a_profile().with_settings(stored_settings()).build()));

    let outcome = ports.services().users.change_settings(&actor, vec![dark()]).await;

    assert_eq!(outcome.unwrap().settings, stored_settings());
}

#[tokio::test]
async fn a_caller_deleted_meanwhile_has_no_settings() {
    let actor = an_actor().build();
    let mut ports = MockedPorts::default();
    ports.expect_commit(vec![
        change_settings(&actor, vec![dark()], ports.now()).into(),
        audited(2, darkened()),
    ]);
    expect_profile(&mut ports, None);

    let outcome = ports.services().users.change_settings(&actor, vec![dark()]).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn settings_missing_after_their_write_are_a_fault() {
    let mut ports = MockedPorts::default();
    ports.expect_any_commit();
    expect_profile(&mut ports, Some(ada().build()));

    let outcome = ports.services().users.change_settings(&an_actor().build(), vec![dark()]).await;

    assert_refused(outcome, Error::Internal("settings are gone right after they were written".into()));
}

#[tokio::test]
async fn no_settings_change_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().users.change_settings(&an_actor().build(), vec![dark()]).await;

    assert_refused(outcome, unavailable());
}
