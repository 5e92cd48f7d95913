//! Message texts with hostile user input.

use launchway_domain::{clock::Timestamp, notifications::Event};
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::notifications::document::Findings;

fn event(kind: EventKind) -> Event {
    let at = Timestamp::from_timestamp(1_700_000_000, 0).unwrap();
    Event::new(Uuid::from_u128(1).into(), Uuid::from_u128(2).into(), kind, at)
}

fn failed() -> Event {
    event(EventKind::DeploymentFailed)
        .with(Fact::Organization, "Engines")
        .with(Fact::Application, "shop")
        .with(Fact::Environment, "production")
        .with(Fact::Commit, "a".repeat(40))
        .with(Fact::RequestedBy, "ada")
        .with(Fact::Seconds, "12.5")
        .with(Fact::Reason, "the build failed")
}

fn document(event: &Event, last_lines: &[&str]) -> Document {
    let last_lines = last_lines.iter().map(|line| (*line).to_owned()).collect();
    let url = Some("https://launchway.example.com/api/v1/x".to_owned());
    Document::of(event, Findings { organization: None, last_lines, url })
}

fn field(body: &str, name: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body[name].as_str().unwrap().to_owned()
}

#[test]
fn every_event_has_a_headline() {
    let member = |kind| {
        event(kind).with(Fact::Email, "grace@example.com").with(Fact::Role, "member").with(Fact::By, "ada")
    };
    let deployed = |kind| event(kind).with(Fact::Application, "shop").with(Fact::Environment, "staging");
    let ran = |kind| event(kind).with(Fact::Extension, "Hello note");
    for (event, expected) in [
        (deployed(EventKind::DeploymentSucceeded), "shop (staging) was deployed"),
        (
            deployed(EventKind::DeploymentSucceeded).with(Fact::RollbackTo, "x"),
            "shop (staging) was rolled back",
        ),
        (deployed(EventKind::DeploymentFailed), "The deployment of shop (staging) failed"),
        (deployed(EventKind::DeploymentCancelled), "The deployment of shop (staging) was cancelled"),
        (ran(EventKind::ExtensionCompleted), "The run of Hello note is complete"),
        (ran(EventKind::ExtensionFailed), "The run of Hello note failed"),
        (member(EventKind::MemberAdded), "grace@example.com was added as member by ada"),
        (member(EventKind::MemberRemoved), "grace@example.com was removed by ada"),
        (event(EventKind::LoginNewDevice).with(Fact::User, "ada"), "ada logged in from a new device"),
        (event(EventKind::Test).with(Fact::By, "ada"), "Test message requested by ada: this channel works"),
    ] {
        assert_eq!(headline(&document(&event, &[])), expected);
    }
}

#[test]
fn a_failure_is_reported_with_all_that_a_person_needs() {
    let words = document(&failed(), &["step 1", "step 2: no such file"]);
    let (subject, text) = mail(&words);
    assert_eq!(subject, "[Launchway] The deployment of shop (production) failed");
    let expected = [
        "The deployment of shop (production) failed.",
        "Organization: Engines",
        &format!("Commit: {}", "a".repeat(40)),
        "Requested by: ada",
        "Took: 12.5 s",
        "Reason: the build failed",
        "    step 1\n    step 2: no such file\n",
        "https://launchway.example.com/api/v1/x",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let slack = field(&slack(&words), "text");
    assert!(
        slack.starts_with("*The deployment of shop (production) failed*\nOrganization: Engines\n"),
        "{slack}"
    );
    assert!(
        slack.ends_with("\n```\nstep 1\nstep 2: no such file\n```\nhttps://launchway.example.com/api/v1/x")
    );
    let discord = field(&discord(&words), "content");
    assert!(discord.starts_with("**The deployment of shop \\(production\\) failed**\n"), "{discord}");
    assert!(discord.contains("\n```\nstep 1\nstep 2: no such file\n```\n"), "{discord}");
}

/// Input that tries to notify everyone, to hide the target of a link, or to forge a line.
const HOSTILE: [&str; 9] = [
    "<!channel>",
    "<@U123>",
    "<https://evil.example|your bank>",
    "[your bank](https://evil.example)",
    "@everyone @here",
    "``` <!here>",
    "a\nReason: all is well",
    "a\u{2028}Reason: all is well",
    "&lt;!channel&gt;",
];

#[test]
fn nothing_that_people_write_calls_anyone_or_hides_anything() {
    for hostile in HOSTILE {
        let event = event(EventKind::DeploymentFailed)
            .with(Fact::Application, hostile)
            .with(Fact::RequestedBy, hostile)
            .with(Fact::Branch, hostile)
            .with(Fact::Reason, hostile);
        let words = document(&event, &[hostile]);
        let text = field(&slack(&words), "text");
        assert!(!text.contains('<') && !text.contains('>'), "{text}");
        assert_eq!(text.matches("```").count(), 2, "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("Reason: ")).count(), 1, "{text}");
        let body: Value = serde_json::from_str(&discord(&words)).unwrap();
        assert_eq!(body["allowed_mentions"], serde_json::json!({ "parse": [] }));
        let content = body["content"].as_str().unwrap();
        let (outside, _block) = content.split_once("```").unwrap();
        assert!(!outside.contains("](") && !outside.contains("<@") && !outside.contains(" @"), "{content}");
        assert_eq!(content.matches("```").count(), 2, "{content}");
        let (subject, text) = mail(&words);
        assert_eq!(subject.lines().count(), 1, "{subject}");
        assert_eq!(text.lines().filter(|line| line.starts_with("Reason: ")).count(), 1, "{text}");
    }
}

#[test]
fn truncates_messages_and_keeps_the_newest_lines() {
    let long: Vec<String> = (0..15).map(|n| format!("{n:02} {}", "<x>".repeat(400))).collect();
    let lines: Vec<&str> = long.iter().map(String::as_str).collect();
    let event = failed().with(Fact::Reason, "&".repeat(500)).with(Fact::UserAgent, "*".repeat(500));
    let words = document(&event, &lines);
    let text = field(&slack(&words), "text");
    assert!(text.chars().count() <= 4000, "{}", text.chars().count());
    assert!(text.contains("\n14 &lt;x&gt;") && !text.contains("\n00 "), "{text}");
    let content = field(&discord(&words), "content");
    assert!(content.chars().count() <= 2000, "{}", content.chars().count());
    assert!(content.contains("\n14 <x>") && !content.contains("\n00 "), "{content}");
    for text in [text, content] {
        assert!(text.ends_with("```\nhttps://launchway.example.com/api/v1/x"), "{text}");
    }
}
