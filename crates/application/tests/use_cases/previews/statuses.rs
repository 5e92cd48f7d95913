//! Commit statuses at code hosts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use launchway_application::Error;
use launchway_domain::{
    applications::{Application, GitUrl, Repository},
    audit::{Action, Resource},
    notifications::{Answer, Post, SendError},
    previews::{CodeHostToken, CommitStatus, Preview, StatusState, UnreportedStatus, Write},
    secret::Secret,
    webhooks::CodeHost,
};
use launchway_testkit::builders::{an_actor, an_entry, parsed};
use tokio::{sync::watch, time::sleep};

use super::{HEAD, active};
use crate::{
    actors::{a_member, lacks},
    applications::{scope, web},
    audit_log::audited,
    ports::MockedPorts,
    refusals::assert_refused,
    sealed_values::sealed,
};

const TOKEN: &str = "a-token-of-the-host";

fn token(host: &str, problem: Option<&str>, ports: &MockedPorts) -> CodeHostToken {
    let (organization, host) = (scope().id(), parsed(host));
    CodeHostToken {
        organization,
        token: sealed(&CodeHostToken::associated_data(organization, &host), TOKEN),
        host,
        api: None,
        updated_at: ports.now(),
        problem: problem.map(str::to_owned),
    }
}

fn status(state: StatusState) -> CommitStatus {
    CommitStatus { commit: parsed(HEAD), state }
}

/// The status of the preview of [`web`], whose repository is at `address`.
fn unreported(kind: CodeHost, address: &str, state: StatusState, ports: &MockedPorts) -> UnreportedStatus {
    let running = web().named("pr-7-web").build();
    let Ok((url, _)) = GitUrl::parse(address) else { panic!("{address}") };
    let mut parent: Application = web().build();
    parent.blueprint.repository = Repository::Git(url);
    let preview = Preview { code_host: kind, ..active(&running, ports.now()) };
    UnreportedStatus {
        organization: scope().id(),
        preview,
        parent,
        application: running,
        status: status(state),
    }
}

fn answered(status: u16, excerpt: &str) -> Result<Answer, SendError> {
    Ok(Answer { status, retry_after: None, excerpt: excerpt.to_owned() })
}

/// Lets the server compare for a time that is long in the clock of the test.
async fn compare(ports: MockedPorts, time: Duration) {
    let (stop, stopped) = watch::channel(false);
    let previews = Arc::clone(&ports.services().previews);
    let comparing = tokio::spawn(previews.report_statuses(stopped));
    sleep(time).await;
    stop.send_replace(true);
    assert!(comparing.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_status_is_sent_and_recorded_once() {
    for (kind, address, url, state) in [
        (
            CodeHost::GitHub,
            "git@github.com:Ada/Shop.git",
            "https://api.github.com/repos/ada/shop/statuses/",
            "success",
        ),
        (
            CodeHost::GitLab,
            "https://gitlab.example.com/a/b/shop.git",
            "https://gitlab.example.com/api/v4/projects/a%2Fb%2Fshop/statuses/",
            "success",
        ),
        (
            CodeHost::Forgejo,
            "ssh://git@git.example.com:2222/ada/shop",
            "https://git.example.com/api/v1/repos/ada/shop/statuses/",
            "success",
        ),
    ] {
        let mut ports = MockedPorts::with_a_box();
        let one = unreported(kind, address, StatusState::Success, &ports);
        let (host, _) = one.repository().unwrap();
        let token = token(host.as_str(), None, &ports);
        let (parent, number) = (one.preview.parent, one.preview.number);
        let mut found = vec![one];
        ports.previews.expect_unreported().returning(move || Ok(std::mem::take(&mut found)));
        ports.previews.expect_tokens().once().return_once(|_| Ok(vec![token]));
        let posts: Arc<Mutex<Vec<Post>>> = Arc::default();
        let kept = Arc::clone(&posts);
        ports.sender.expect_post().once().returning(move |post| {
            kept.lock().unwrap().push(post);
            answered(201, "")
        });
        let recorded = Write::RecordStatus { parent, number, status: status(StatusState::Success) };
        ports.expect_commit(vec![recorded.into()]);
        compare(ports, Duration::from_secs(300)).await;

        let posts = posts.lock().unwrap();
        assert_eq!(posts[0].url.expose(), format!("{url}{HEAD}"));
        assert!(posts[0].body.contains(&format!(r#""state":"{state}""#)), "{}", posts[0].body);
        assert!(posts[0].body.contains("The preview is live"), "{}", posts[0].body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_report_is_repeated_later_and_later() {
    let mut ports = MockedPorts::with_a_box();
    let one = unreported(CodeHost::Gitea, "https://git.example.com/ada/shop", StatusState::Failure, &ports);
    let token = token("git.example.com", None, &ports);
    let refused = Some("the code host answered 401: the token [secret] is unknown".to_owned());
    let problem =
        Write::RecordProblem { organization: token.organization, host: token.host.clone(), problem: refused };
    ports.previews.expect_unreported().returning(move || Ok(vec![one.clone()]));
    ports.previews.expect_tokens().returning(move |_| Ok(vec![token.clone()]));
    // At once, and after 30, 60, 120 and 240 s.
    let said = format!("the token {TOKEN} is unknown");
    ports.sender.expect_post().times(5).returning(move |_| answered(401, &said));
    for _ in 0..5 {
        ports.expect_commit(vec![problem.clone().into()]);
    }
    compare(ports, Duration::from_secs(600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_report_that_succeeds_clears_the_problem() {
    let mut ports = MockedPorts::with_a_box();
    let one = unreported(CodeHost::GitHub, "https://github.com/ada/shop", StatusState::Pending, &ports);
    let token = token("github.com", Some("the code host answered 401"), &ports);
    let cleared =
        Write::RecordProblem { organization: token.organization, host: token.host.clone(), problem: None };
    let recorded = Write::RecordStatus {
        parent: one.preview.parent,
        number: one.preview.number,
        status: one.status.clone(),
    };
    let mut found = vec![one];
    ports.previews.expect_unreported().returning(move || Ok(std::mem::take(&mut found)));
    ports.previews.expect_tokens().once().return_once(|_| Ok(vec![token]));
    ports.sender.expect_post().once().returning(|_| answered(200, ""));
    ports.expect_commit(vec![cleared.into(), recorded.into()]);
    compare(ports, Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_to_another_host_than_that_of_the_token() {
    for address in ["https://github.com/ada/shop", "/srv/git/shop"] {
        let mut ports = MockedPorts::with_a_box();
        let one = unreported(CodeHost::GitHub, address, StatusState::Pending, &ports);
        let token = token("git.example.com", None, &ports);
        ports.previews.expect_unreported().returning(move || Ok(vec![one.clone()]));
        ports.previews.expect_tokens().returning(move |_| Ok(vec![token.clone()]));
        compare(ports, Duration::from_secs(60)).await;
    }
}

#[tokio::test]
async fn a_token_is_sealed_for_its_host_and_audited() {
    let mut ports = MockedPorts::with_a_box();
    let expected = token("github.com", None, &ports);
    ports.previews.expect_tokens().once().return_once(|_| Ok(Vec::new()));
    let entry = an_entry()
        .of(Action::Update, Resource::Organization, scope().id())
        .with_message("changed the token for commit statuses at `github.com`")
        .with("code_host", "github.com")
        .with("token", "[changed]");
    ports.expect_commit(vec![Write::SetToken(expected.clone()).into(), audited(1, entry.at(ports.now()))]);
    let secret = Secret::new(TOKEN.to_owned());
    let host = "github.com".parse().unwrap();
    let stored = ports.services().previews.set_token(&an_actor().build(), host, None, &secret).await;
    assert_eq!(stored.unwrap(), expected);
}

#[tokio::test]
async fn tokens_are_changed_by_admins_only() {
    let secret = Secret::new(TOKEN.to_owned());
    let previews = Arc::clone(&MockedPorts::default().services().previews);
    let set = previews.set_token(&a_member(), "github.com".parse().unwrap(), None, &secret).await;
    assert_refused(set, Error::Forbidden(lacks("organization:update")));
    let removed = previews.remove_token(&a_member(), "github.com".parse().unwrap()).await;
    assert_refused(removed, Error::Forbidden(lacks("organization:update")));
}
