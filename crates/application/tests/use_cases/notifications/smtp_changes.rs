//! Updating the mail server.

use chrono::TimeDelta;
use launchway_application::{Error, notifications::SmtpChange};
use launchway_domain::{
    audit::{Action, Resource},
    notifications::{MailSecurity, Recipients, SmtpConfig, Write},
    secret::Secret,
    store::StoreError,
};
use launchway_testkit::builders::{EntryBuilder, an_actor, an_entry, parsed};
use mockall::predicate::eq;

use super::{
    NO_SMTP, a_mail_server, a_program_with, actors_without, expect_check, expect_smtp, forbidden, host,
    was_rung,
};
use crate::{
    actors::lacks,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    sealed_values::sealed,
};

/// Returns ports with `kept`, for an update an hour after its creation.
fn ports_that_find(kept: SmtpConfig) -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    ports.clock.advance(TimeDelta::hours(1));
    expect_smtp(&mut ports, Some(kept));
    ports
}

fn entry(ports: &MockedPorts, config: &SmtpConfig) -> EntryBuilder {
    an_entry()
        .of(Action::Update, Resource::SmtpConfig, config.id)
        .with_message("changed the mail server")
        .with("host", &config.host)
        .with("is_active", config.is_active)
        .at(ports.now())
}

async fn update(ports: MockedPorts, change: SmtpChange) -> Result<SmtpConfig, Error> {
    ports.services().notifications.update_smtp(&an_actor().build(), change).await
}

#[tokio::test(start_paused = true)]
async fn update_changes_all_settings_and_sends_pending_mail_at_once() {
    let mut ports = ports_that_find(a_mail_server());
    let to = Recipients::try_from(vec![parsed("ops@example.com")]).unwrap();
    let kept = a_mail_server();
    let changed = SmtpConfig {
        host: host("mail.example.com"),
        port: 2525,
        security: MailSecurity::Tls,
        username: Some(parsed("other")),
        password: Some(sealed(&format!("smtp_configs.password:{}", kept.id), "hunter3")),
        from_email: parsed("ci@example.com"),
        from_name: parsed("CI"),
        to: to.clone(),
        is_active: false,
        updated_at: ports.now(),
        ..kept
    };
    expect_check(&mut ports, "mail.example.com", 2525);
    let entry = entry(&ports, &changed).with("password", "[changed]");
    ports.expect_commit(vec![Write::UpdateSmtp(Box::new(changed.clone())).into(), audited(1, entry)]);
    let listener = ports.wake.listen();
    let change = SmtpChange {
        host: Some(changed.host.clone()),
        port: Some(2525),
        security: Some(MailSecurity::Tls),
        username: changed.username.clone(),
        password: Some(Secret::new("hunter3".to_owned())),
        from_email: Some(changed.from_email.clone()),
        from_name: Some(changed.from_name.clone()),
        to: Some(to),
        is_active: Some(false),
    };

    assert_eq!(update(ports, change).await.unwrap(), changed);
    assert!(was_rung(listener).await, "nobody is woken");
}

#[tokio::test]
async fn what_is_not_mentioned_stays_as_it_was() {
    let mut ports = ports_that_find(a_mail_server());
    let same = SmtpConfig { updated_at: ports.now(), ..a_mail_server() };
    expect_check(&mut ports, "smtp.example.com", 587);
    let entry = entry(&ports, &same);
    ports.expect_commit(vec![Write::UpdateSmtp(Box::new(same.clone())).into(), audited(1, entry)]);

    assert_eq!(update(ports, SmtpChange::default()).await.unwrap(), same);
}

fn with_password() -> SmtpChange {
    SmtpChange { password: Some(Secret::new("hunter3".to_owned())), ..SmtpChange::default() }
}

#[tokio::test]
async fn whoever_changes_where_a_password_goes_has_to_know_it() {
    for change in [
        SmtpChange { host: Some(host("mail.example.com")), ..SmtpChange::default() },
        SmtpChange { port: Some(2525), ..SmtpChange::default() },
        SmtpChange { security: Some(MailSecurity::Tls), ..SmtpChange::default() },
    ] {
        let reason = "password: is needed again when `host`, `port` or `security` changes";
        assert_refused(
            update(ports_that_find(a_mail_server()), change).await,
            Error::Invalid(reason.to_owned()),
        );
    }
    let open = SmtpConfig { username: None, password: None, ..a_mail_server() };
    let mut ports = ports_that_find(open);
    expect_check(&mut ports, "mail.example.com", 587);
    ports.expect_any_commit();
    let change = SmtpChange { host: Some(host("mail.example.com")), ..SmtpChange::default() };
    assert_eq!(update(ports, change).await.unwrap().host, host("mail.example.com"));
}

#[tokio::test]
async fn another_way_means_its_usual_port_unless_the_port_was_chosen() {
    for (kept, given, port) in [(587, None, 465), (2525, None, 2525), (587, Some(588), 588)] {
        let mut ports = ports_that_find(SmtpConfig { port: kept, ..a_mail_server() });
        expect_check(&mut ports, "smtp.example.com", port);
        ports.expect_any_commit();

        let change = SmtpChange { security: Some(MailSecurity::Tls), port: given, ..with_password() };
        let changed = update(ports, change).await.unwrap();

        assert_eq!((changed.security, changed.port), (MailSecurity::Tls, port));
    }
}

#[tokio::test]
async fn update_without_encryption_needs_an_allowed_address() {
    let mut ports = ports_that_find(a_mail_server());
    let check = ports.guard.expect_check_unencrypted().with(eq("smtp.example.com"), eq(25));
    check.once().returning(|_, _| Err(forbidden()));

    let change = SmtpChange { security: Some(MailSecurity::None), ..with_password() };
    let reason = "security: leads to 10.0.0.1, which the operator does not permit";
    assert_refused(update(ports, change).await, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn who_logs_in_needs_a_user_and_a_password_kept_or_new() {
    let nobody = SmtpConfig { username: None, password: None, ..a_mail_server() };
    let username = || SmtpChange { username: Some(parsed("other")), ..SmtpChange::default() };
    for half in [username(), with_password()] {
        let reason = "`username` and `password` go together: give both, or neither";
        assert_refused(
            update(ports_that_find(nobody.clone()), half).await,
            Error::Invalid(reason.to_owned()),
        );
    }
    for half in [username(), with_password()] {
        let mut ports = ports_that_find(a_mail_server());
        expect_check(&mut ports, "smtp.example.com", 587);
        ports.expect_any_commit();
        update(ports, half).await.unwrap();
    }
}

#[tokio::test]
async fn a_program_that_may_only_change_it_learns_that_it_did() {
    let mut ports = ports_that_find(a_mail_server());
    expect_check(&mut ports, "smtp.example.com", 587);
    ports.expect_any_commit();

    let program = a_program_with("notification:update");
    let outcome = ports.services().notifications.update_smtp(&program, SmtpChange::default()).await;

    assert_eq!(outcome.unwrap().id, a_mail_server().id);
}

#[tokio::test]
async fn whom_the_operator_does_not_permit_is_not_written_down() {
    let mut ports = ports_that_find(a_mail_server());
    ports.guard.expect_check().with(eq("10.0.0.1"), eq(587)).once().returning(|_, _| Err(forbidden()));

    let change = SmtpChange { host: Some(host("10.0.0.1")), ..with_password() };
    let reason = "host: leads to 10.0.0.1, which the operator does not permit";
    assert_refused(update(ports, change).await, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn what_is_gone_cannot_be_changed() {
    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, None);
    assert_refused(update(ports, SmtpChange::default()).await, NO_SMTP);

    let mut ports = ports_that_find(a_mail_server());
    expect_check(&mut ports, "smtp.example.com", 587);
    ports.expect_failing_commit(StoreError::Stale);
    assert_refused(update(ports, SmtpChange::default()).await, NO_SMTP);
}

#[tokio::test]
async fn nobody_changes_it_without_the_permission() {
    for actor in actors_without("notification:update") {
        let notifications = MockedPorts::default().services().notifications;
        let outcome = notifications.update_smtp(&actor, SmtpChange::default()).await;
        assert_refused(outcome, lacks("notification:update"));
    }
}

#[tokio::test]
async fn nothing_changes_without_a_database() {
    let mut ports = ports_that_find(a_mail_server());
    expect_check(&mut ports, "smtp.example.com", 587);
    ports.expect_failing_commit(unavailable());
    assert_refused(update(ports, SmtpChange::default()).await, unavailable());
}
