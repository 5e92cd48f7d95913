//! The messages that receivers get: signed documents, chat messages, and mail.

use std::{sync::Arc, time::Duration};

use data_encoding::BASE64;
use hmac::{Hmac, Mac as _};
use launchway_domain::{
    extensions::ExecutionLine,
    logs::{Level, LogFilter},
    notifications::{
        Channel, Event, EventKind, Fact, Mail, MailLogin, MailSecurity, Post, SigningSecret, WebhookKind,
    },
    page::Page,
    secret::Secret,
};
use launchway_testkit::{
    builders::{a_deployment, a_log_line, an_execution, parsed},
    clock::{NEW_YEAR, moment},
    ids::id_of,
};
use mockall::predicate::eq;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::watch;

use super::{
    a_mail_server,
    fakes::{Archive, SenderFakes, a_delivery, a_receiver, an_event, answered, timings},
    host, kept_secret, signing_secret,
};
use crate::applications::scope;

/// Sends `event` to `channel`, for some seconds.
async fn notified(event: Event, channel: Channel, archive: Archive) -> Arc<SenderFakes> {
    let fakes = SenderFakes::with(|state| state.waiting = vec![a_delivery(event, channel)]);
    send(&fakes, archive).await;
    fakes
}

async fn send(fakes: &Arc<SenderFakes>, archive: Archive) {
    let (stop, stopped) = watch::channel(false);
    tokio::join!(fakes.send(timings(), archive, stopped), async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        stop.send_replace(true);
    });
}

/// Returns the only message that was posted about `event`.
async fn posted(event: Event, channel: Channel, archive: Archive) -> Post {
    let fakes = notified(event, channel, archive).await;
    let mut posts = fakes.state().posts.clone();
    assert_eq!(posts.len(), 1, "{posts:?}");
    posts.remove(0).1
}

/// Returns the document of `event` that the generic webhook channel gets.
async fn data(event: Event, archive: Archive) -> Value {
    let post = posted(event, a_receiver(WebhookKind::Generic, "hooks"), archive).await;
    let document: Value = serde_json::from_str(&post.body).unwrap_or_else(|error| panic!("{error}"));
    document["data"].clone()
}

/// Returns the generic webhook channel with these secrets.
fn own_receiver(secrets: &[u64]) -> Channel {
    let Channel::Webhook { config, .. } = a_receiver(WebhookKind::Generic, "hooks") else { panic!() };
    let kept = |n: &u64| kept_secret(id_of(&format!("secret {n}")), *n);
    Channel::Webhook { config, secrets: secrets.iter().map(kept).collect() }
}

fn header<'a>(post: &'a Post, name: &str) -> &'a str {
    let found = post.headers.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no {name}"))
}

/// Returns whether a receiver with `secret` accepts the message by the rule of Standard Webhooks: one of
/// the signatures matches id, time and body.
fn verifies(post: &Post, secret: &SigningSecret) -> bool {
    let text = secret.expose();
    let key = text.strip_prefix("whsec_").and_then(|key| BASE64.decode(key.as_bytes()).ok());
    let key = key.unwrap_or_else(|| panic!("no secret of the standard"));
    let signed =
        format!("{}.{}.{}", header(post, "webhook-id"), header(post, "webhook-timestamp"), post.body);
    header(post, "webhook-signature").split(' ').any(|signature| {
        let Some(("v1", signature)) = signature.split_once(',') else { panic!("{signature}") };
        let signature = BASE64.decode(signature.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap_or_else(|error| panic!("{error}"));
        mac.chain_update(&signed).verify_slice(&signature).is_ok()
    })
}

fn removed() -> Event {
    an_event(EventKind::MemberRemoved).with(Fact::Email, "grace@example.com").with(Fact::By, "ada")
}

fn failed_deployment() -> Event {
    let deployment = a_deployment().build();
    an_event(EventKind::DeploymentFailed)
        .with(Fact::Application, "web")
        .with(Fact::ApplicationId, deployment.application_id)
        .with(Fact::DeploymentId, deployment.id)
}

/// Returns an archive with these last lines of [`failed_deployment`].
fn with_log(lines: &[&str]) -> Archive {
    let mut archive = Archive::default();
    // The newest line is the first of its page.
    let line = |(number, text): (i64, &&str)| a_log_line().numbered(number).saying(text).build();
    let mut items: Vec<_> = (1..).zip(lines).map(line).collect();
    items.reverse();
    let deployment = a_deployment().build();
    let filter = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
    archive.logs.expect_page().once().return_once(move |whose, application, asked, request| {
        assert_eq!((whose, application, asked), (scope(), deployment.application_id, &filter));
        assert_eq!((request.number(), request.size()), (1, 15));
        Ok(Some(Page { total: 100, items, request }))
    });
    archive
}

#[tokio::test(start_paused = true)]
async fn generic_receiver_gets_a_signed_document() {
    let post = posted(removed(), own_receiver(&[1]), Archive::default()).await;

    let document: Value = serde_json::from_str(&post.body).unwrap();
    let expected = json!({
        "type": "member.removed",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "data": {
            "organization_id": scope().id().to_string(),
            "organization": "Analytics",
            "email": "grace@example.com",
            "by": "ada",
        },
    });
    assert_eq!(document, expected);
    assert_eq!(header(&post, "webhook-id"), removed().message_id());
    assert_eq!(header(&post, "webhook-timestamp"), moment(NEW_YEAR).timestamp().to_string());
    assert_eq!(post.headers.len(), 3);
    assert!(verifies(&post, &signing_secret(1)) && !verifies(&post, &signing_secret(2)));
}

#[tokio::test(start_paused = true)]
async fn message_verifies_with_either_of_two_secrets() {
    let post = posted(removed(), own_receiver(&[2, 1]), Archive::default()).await;

    assert_eq!(header(&post, "webhook-signature").split(' ').count(), 2);
    assert!(verifies(&post, &signing_secret(1)) && verifies(&post, &signing_secret(2)));
    assert!(!verifies(&post, &signing_secret(3)));
    for tampered in [
        Post { body: post.body.replace("grace", "george"), ..post.clone() },
        Post {
            headers: vec![
                ("webhook-id", "msg_1".to_owned()),
                post.headers[1].clone(),
                post.headers[2].clone(),
            ],
            ..post.clone()
        },
        Post {
            headers: vec![
                post.headers[0].clone(),
                ("webhook-timestamp", "1".to_owned()),
                post.headers[2].clone(),
            ],
            ..post.clone()
        },
    ] {
        assert!(!verifies(&tampered, &signing_secret(1)), "{tampered:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_share_id_and_body_but_not_the_signature() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = vec![a_delivery(removed(), own_receiver(&[1]))];
        state.answers.insert("hooks.example.com", [answered(500)].into());
    });
    send(&fakes, Archive::default()).await;

    let posts = fakes.state().posts.clone();
    let [(_, first), (later, second)] = &posts[..] else { panic!("{posts:?}") };
    assert_eq!((&first.body, header(first, "webhook-id")), (&second.body, header(second, "webhook-id")));
    let time = |post| header(post, "webhook-timestamp").parse::<u64>().unwrap();
    assert_eq!(time(second) - time(first), later.as_secs());
    assert!(verifies(first, &signing_secret(1)) && verifies(second, &signing_secret(1)));
}

#[tokio::test(start_paused = true)]
async fn chats_get_words_and_nothing_that_signs() {
    let headline = "grace@example.com was removed by ada";
    let slack = posted(removed(), a_receiver(WebhookKind::Slack, "hooks"), Archive::default()).await;
    let body: Value = serde_json::from_str(&slack.body).unwrap();
    assert_eq!(body, json!({ "text": format!("*{headline}*\nOrganization: Analytics") }));

    let discord = posted(removed(), a_receiver(WebhookKind::Discord, "hooks"), Archive::default()).await;
    let body: Value = serde_json::from_str(&discord.body).unwrap();
    let content = "**grace\\@example.com was removed by ada**\nOrganization: Analytics";
    assert_eq!(body, json!({ "content": content, "allowed_mentions": { "parse": [] } }));

    assert!(slack.headers.is_empty() && discord.headers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_mail_says_all_that_a_person_needs() {
    let channel = Channel::Mail(Box::new(a_mail_server()));
    let fakes = notified(failed_deployment(), channel, with_log(&["one", "two"])).await;

    let text = format!(
        "The deployment of web failed.\n\nOrganization: Analytics\nTime: 2026-01-01T00:00:00.000Z\n\nThe end of \
         the log:\n\n    one\n    two\n\nhttps://launchway.example.com/api/v1/deploy/application/deployments/{}\n",
        a_deployment().build().id
    );
    let password = Secret::new("hunter2".to_owned());
    let mail = Mail {
        host: host("smtp.example.com"),
        port: 587,
        security: MailSecurity::StartTls,
        login: Some(MailLogin { username: parsed("mailer"), password }),
        from: (parsed("Launchway"), parsed("launchway@example.com")),
        to: vec![parsed("ada@example.com")],
        message_id: failed_deployment().message_id(),
        subject: "[Launchway] The deployment of web failed".to_owned(),
        text,
    };
    assert_eq!(fakes.state().mails, [mail]);
}

#[tokio::test(start_paused = true)]
async fn failed_deployment_includes_its_log_tail_oldest_first() {
    let sent = data(failed_deployment(), with_log(&["one", "two", "three"])).await;
    assert_eq!(sent["last_lines"], json!(["one", "two", "three"]));
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_reported_with_the_last_15_lines_of_its_log() {
    for (length, after) in [(40, 25), (15, 0), (3, 0)] {
        let (mut run, steps) = an_execution().with_steps();
        run.log_seq = length;
        let id = run.id;
        let mut archive = Archive::default();
        let get = archive.executions.expect_get().with(eq(scope()), eq(id));
        get.once().return_once(|_, _| Ok(Some((run, steps))));
        let line = |seq| ExecutionLine {
            seq,
            step_id: None,
            level: Level::Info,
            text: format!("line {seq}"),
            at: moment(NEW_YEAR),
        };
        let lines = archive.executions.expect_lines().with(eq(scope()), eq(id), eq(after), eq(15));
        lines.once().return_once(move |_, _, after, _| Ok(Some((after + 1..=length).map(line).collect())));

        let sent = data(an_event(EventKind::ExtensionFailed).with(Fact::ExecutionId, id), archive).await;

        let expected: Vec<_> = (after + 1..=length).map(|seq| format!("line {seq}")).collect();
        assert_eq!(sent["last_lines"], json!(expected), "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_or_unknown_is_announced_without_its_log() {
    let mut archive = Archive::default();
    archive.executions.expect_get().once().returning(|_, _| Ok(None));
    let id = an_execution().build().id;
    let run = an_event(EventKind::ExtensionFailed).with(Fact::ExecutionId, id);
    assert_eq!(data(run, archive).await.get("last_lines"), None);

    let mut archive = Archive::default();
    archive.logs.expect_page().once().returning(|_, _, _, _| Ok(None));
    assert_eq!(data(failed_deployment(), archive).await.get("last_lines"), None);

    for kind in [EventKind::DeploymentFailed, EventKind::ExtensionFailed] {
        assert_eq!(data(an_event(kind), Archive::default()).await.get("last_lines"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_looks_into_the_log_of_what_did_not_fail() {
    let execution = an_execution().build().id;
    for kind in [
        EventKind::DeploymentSucceeded,
        EventKind::DeploymentCancelled,
        EventKind::ExtensionCompleted,
        EventKind::MemberAdded,
    ] {
        let event = Event { kind, ..failed_deployment().with(Fact::ExecutionId, execution) };
        assert_eq!(data(event, Archive::default()).await.get("last_lines"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn message_links_to_its_resource_if_the_url_is_known() {
    let (deployment, execution) = (a_deployment().build().id, an_execution().build().id);
    let deployed = an_event(EventKind::DeploymentSucceeded).with(Fact::DeploymentId, deployment);
    let ran = an_event(EventKind::ExtensionCompleted).with(Fact::ExecutionId, execution);
    let base = "https://launchway.example.com/api/v1";
    for (event, url) in [
        (deployed.clone(), json!(format!("{base}/deploy/application/deployments/{deployment}"))),
        (ran, json!(format!("{base}/extensions/execution/{execution}"))),
        (removed(), Value::Null),
    ] {
        assert_eq!(data(event, Archive::default()).await["url"], url);
    }
    let nowhere = Archive { public_url: None, ..Archive::default() };
    assert_eq!(data(deployed, nowhere).await["url"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_organization_is_called_as_it_was_when_it_happened() {
    let event = removed().with(Fact::Organization, "Engines");
    assert_eq!(data(event, Archive::default()).await["organization"], "Engines");
}
