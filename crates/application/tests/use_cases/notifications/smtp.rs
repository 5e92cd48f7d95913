//! Creating and deleting a mail server.

use launchway_application::{Error, notifications::NewSmtp};
use launchway_domain::{
    audit::{Action, Resource},
    ids::SmtpConfigId,
    notifications::{MailSecurity, Recipients, SmtpConfig, Write},
    secret::Secret,
    store::{StoreError, Unique},
};
use launchway_testkit::{
    CountingIds,
    builders::{an_actor, an_entry, parsed},
    ids::id_of,
};
use mockall::predicate::eq;

use super::{
    NO_ORGANIZATION, NO_SMTP, a_mail_server, actors_without, expect_check, expect_smtp, forbidden, host,
};
use crate::{
    actors::{a_program_without, a_viewer, lacks},
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    sealed_values::sealed,
};

/// Returns a request for [`a_mail_server`].
fn new() -> NewSmtp {
    NewSmtp {
        host: host("smtp.example.com"),
        port: None,
        security: MailSecurity::StartTls,
        username: Some(parsed("mailer")),
        password: Some(Secret::new("hunter2".to_owned())),
        from_email: parsed("launchway@example.com"),
        from_name: parsed("Launchway"),
        to: Recipients::default(),
    }
}

/// Returns the configuration that is created from the [`new`].
fn made() -> SmtpConfig {
    let id: SmtpConfigId = CountingIds::nth(1).into();
    let password = Some(sealed(&format!("smtp_configs.password:{id}"), "hunter2"));
    SmtpConfig { id, password, ..a_mail_server() }
}

/// Returns ports that allow connections to the server of the [`new`].
fn permitting() -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    expect_check(&mut ports, "smtp.example.com", 587);
    ports
}

async fn create(ports: MockedPorts, new: NewSmtp) -> Result<SmtpConfig, Error> {
    ports.services().notifications.create_smtp(&an_actor().build(), new, None).await
}

async fn delete(ports: MockedPorts, id: Option<SmtpConfigId>) -> Result<(), Error> {
    ports.services().notifications.delete_smtp(&an_actor().build(), id).await
}

#[tokio::test]
async fn password_is_sealed_and_absent_from_the_audit_log() {
    let mut ports = permitting();
    let entry = an_entry()
        .of(Action::Create, Resource::SmtpConfig, made().id)
        .with_message("configured the mail server smtp.example.com")
        .at(ports.now());
    ports.expect_commit(vec![Write::InsertSmtp(Box::new(made())).into(), audited(2, entry)]);

    assert_eq!(create(ports, new()).await.unwrap(), made());
}

#[tokio::test]
async fn a_server_may_want_nobody_to_log_in() {
    let mut ports = permitting();
    ports.expect_any_commit();

    let made = create(ports, NewSmtp { username: None, password: None, ..new() }).await.unwrap();

    assert_eq!((made.username, made.password), (None, None));
}

#[tokio::test]
async fn username_and_password_are_required_together() {
    for new in [NewSmtp { username: None, ..new() }, NewSmtp { password: None, ..new() }] {
        let reason = "`username` and `password` go together: give both, or neither";
        assert_refused(create(MockedPorts::with_a_box(), new).await, Error::Invalid(reason.to_owned()));
    }
}

#[tokio::test]
async fn without_a_port_it_is_the_usual_one_of_the_way() {
    for (security, given, port) in [
        (MailSecurity::StartTls, None, 587),
        (MailSecurity::Tls, None, 465),
        (MailSecurity::Tls, Some(2465), 2465),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_check(&mut ports, "smtp.example.com", port);
        ports.expect_any_commit();

        let made = create(ports, NewSmtp { security, port: given, ..new() }).await.unwrap();

        assert_eq!((made.security, made.port), (security, port));
    }
}

#[tokio::test]
async fn create_without_encryption_needs_an_allowed_address() {
    let without = || NewSmtp { security: MailSecurity::None, ..new() };
    let mut ports = MockedPorts::with_a_box();
    let check = ports.guard.expect_check_unencrypted().with(eq("smtp.example.com"), eq(25));
    check.once().returning(|_, _| Ok(()));
    ports.expect_any_commit();
    let made = create(ports, without()).await.unwrap();
    assert_eq!((made.security, made.port), (MailSecurity::None, 25));

    let mut ports = MockedPorts::with_a_box();
    ports.guard.expect_check_unencrypted().once().returning(|_, _| Err(forbidden()));
    let reason = "security: leads to 10.0.0.1, which the operator does not permit";
    assert_refused(create(ports, without()).await, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn whom_the_operator_does_not_permit_is_not_written_down() {
    let mut ports = MockedPorts::with_a_box();
    ports.guard.expect_check().once().returning(|_, _| Err(forbidden()));

    let reason = "host: leads to 10.0.0.1, which the operator does not permit";
    assert_refused(create(ports, new()).await, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn there_is_one_server() {
    let mut ports = permitting();
    ports.expect_failing_commit(StoreError::Taken(Unique::SmtpConfig));

    assert_refused(create(ports, new()).await, Error::MailServerConfigured);
}

#[tokio::test]
async fn an_organization_that_is_gone_sends_no_mail() {
    let mut ports = permitting();
    ports.expect_failing_commit(StoreError::Stale);

    assert_refused(create(ports, new()).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn the_server_is_shown_to_whoever_may_look() {
    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, Some(a_mail_server()));
    assert_eq!(ports.services().notifications.smtp(&a_viewer()).await.unwrap(), a_mail_server());

    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, None);
    assert_refused(ports.services().notifications.smtp(&a_viewer()).await, NO_SMTP);
}

#[tokio::test]
async fn the_only_server_is_deleted_with_its_id_or_without() {
    for id in [None, Some(a_mail_server().id)] {
        let mut ports = MockedPorts::default();
        expect_smtp(&mut ports, Some(a_mail_server()));
        let at = ports.now();
        let entry = an_entry()
            .of(Action::Delete, Resource::SmtpConfig, a_mail_server().id)
            .with_message("deleted the mail server smtp.example.com")
            .at(at);
        let write = Write::DeleteSmtp { scope: scope(), id: a_mail_server().id, at };
        ports.expect_commit(vec![write.into(), audited(1, entry)]);

        delete(ports, id).await.unwrap();
    }
}

#[tokio::test]
async fn the_id_of_another_organizations_server_deletes_nothing() {
    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, Some(a_mail_server()));
    assert_refused(delete(ports, Some(id_of("another server").into())).await, NO_SMTP);
}

#[tokio::test]
async fn what_is_gone_cannot_be_deleted() {
    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, None);
    assert_refused(delete(ports, None).await, NO_SMTP);

    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, Some(a_mail_server()));
    ports.expect_failing_commit(StoreError::Stale);
    assert_refused(delete(ports, None).await, NO_SMTP);
}

#[tokio::test]
async fn nobody_has_to_do_with_mail_without_the_permission() {
    for actor in actors_without("notification:create") {
        let outcome = MockedPorts::default().services().notifications.create_smtp(&actor, new(), None).await;
        assert_refused(outcome, lacks("notification:create"));
    }
    for actor in actors_without("notification:delete") {
        let outcome = MockedPorts::default().services().notifications.delete_smtp(&actor, None).await;
        assert_refused(outcome, lacks("notification:delete"));
    }
    let outcome =
        MockedPorts::default().services().notifications.smtp(&a_program_without("notification:read")).await;
    assert_refused(outcome, lacks("notification:read"));
}

#[tokio::test]
async fn nothing_happens_without_a_database() {
    let mut ports = permitting();
    ports.expect_failing_commit(unavailable());
    assert_refused(create(ports, new()).await, unavailable());

    let mut ports = MockedPorts::default();
    ports.notifications.expect_smtp().once().returning(|_| Err(unavailable()));
    assert_refused(ports.services().notifications.smtp(&a_viewer()).await, unavailable());

    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, Some(a_mail_server()));
    ports.expect_failing_commit(unavailable());
    assert_refused(delete(ports, None).await, unavailable());
}
