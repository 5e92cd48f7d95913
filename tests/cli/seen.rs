//! A scripted session on a real terminal.

use launchway_testkit::repository::running;
use vt100::Color;

use crate::{harness::Harness, person::Person, terminal::Terminal};

const GREEN: Color = Color::Idx(2);
const RED: Color = Color::Idx(1);

/// Returns whether the output has colours or other text styles.
fn has_faces(raw: &str) -> bool {
    raw.split("\u{1b}[").skip(1).any(|rest| {
        rest.find(|c: char| c.is_ascii_alphabetic()).is_some_and(|end| rest[end..].starts_with('m'))
    })
}

#[test]
fn somebody_new_is_asked_and_sees_how_it_goes_live() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    repository.write("index.html", "a page\n").commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    let mut terminal = Terminal::of(&ada, &["deploy"]);
    terminal.shows("There is no launchway.toml here. Create one? [y/N]");
    terminal.types("y\r").shows("Name [shop]:");
    terminal.types("my.shop\r").shows("a name has 1 to 63 letters");
    terminal.types("My Shop\r").shows("Build pack [static]:");
    terminal.types("\r").shows("Repository [/");
    terminal.types("\r").shows("Branch [main]:");
    terminal.types("\r").shows("Environment [production]:");
    terminal.types("staging\r");
    let left = terminal.ends();
    assert!(left.status.success(), "{}", left.text());
    assert_eq!(left.cell("✓ Deployed in ").fgcolor(), GREEN);
    assert!(left.cell("http://my-shop-staging.ada-s-team.localhost:").bold());
    assert!(left.text().contains("Created application My Shop (staging)"), "{}", left.text());
    // The live line was removed.
    assert!(!left.text().contains("Waiting in the queue"), "{}", left.text());
    assert!(!left.text().contains('⠋'));
}

#[test]
fn shows_a_live_line_during_a_step_and_failures_in_red() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    let breaking =
        running("true").replace("CMD", "RUN echo it begins && sleep 3 && echo it breaks && exit 7\nCMD");
    repository.write("Dockerfile", breaking).commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    ada.runs(&["init", "--yes"]).succeeded();
    let terminal = Terminal::of(&ada, &["deploy"]);
    terminal.shows("Building, 1 s").shows("Building, 2 s");
    let left = terminal.ends();
    assert_eq!(left.status.code(), Some(1), "{}", left.text());
    assert!(left.line("it begins").dim() && left.line("it breaks").dim());
    assert_eq!(left.cell("✗ Failed after ").fgcolor(), RED);
    assert_eq!(left.cell("error: the deployment of shop failed: ").fgcolor(), RED);
    assert!(left.text().contains("hint: the build failed on the server"), "{}", left.text());
    assert!(!left.text().contains("Building, "), "{}", left.text());
}

#[test]
fn without_colours_everything_is_said_all_the_same() {
    let harness = Harness::new();
    let (ada, _) = harness.site("shop");
    let ada = ada.with("NO_COLOR", "1");
    let left = Terminal::of(&ada, &["deploy"]).ends();
    assert!(left.status.success());
    assert!(left.text().contains("✓ Deployed in ") && left.text().contains("Live at "), "{}", left.text());
    assert!(!has_faces(&left.raw), "{:?}", left.raw);
    let left = Terminal::of(&ada, &["app", "show", "nothing"]).ends();
    assert!(left.text().contains("error: ") && !has_faces(&left.raw), "{:?}", left.raw);
}

#[test]
fn a_log_is_followed_until_it_is_interrupted() {
    let harness = Harness::new();
    let (ada, _) = harness.site("shop");
    let mut terminal = Terminal::of(&ada, &["logs", "-f"]);
    terminal.shows("info    Live at http://shop.ada-s-team.localhost:");
    let second = ada.runs(&["deploy", "--output", "json"]).json();
    let commit = second["commit_hash"].as_str().unwrap()[..7].to_owned();
    let fetched = format!("Fetching commit {commit}");
    launchway_testkit::wait::until("the second deployment", || {
        (terminal.contents().matches(&fetched).count() == 2).then_some(())
    });
    terminal.types("\u{3}");
    let left = terminal.ends();
    assert!(!left.status.success());
    assert!(left.cell("Live at http").fgcolor() == Color::Default && has_faces(&left.raw));
}

#[test]
fn who_deletes_has_to_write_the_name() {
    let harness = Harness::new();
    let (ada, _) = harness.site("shop");
    let mut terminal = Terminal::of(&ada, &["app", "delete", "shop"]);
    terminal.shows("Type the name to confirm:");
    terminal.types("shpo\r");
    let left = terminal.ends();
    assert_eq!(left.status.code(), Some(1));
    assert!(left.text().contains("nothing was deleted"), "{}", left.text());
    let mut terminal = Terminal::of(&ada, &["app", "delete", "shop"]);
    terminal.shows("Type the name to confirm:");
    terminal.types("shop\r");
    assert!(terminal.ends().status.success());
    ada.runs(&["app", "show", "shop"]).failed(4);
}

#[test]
fn a_password_is_not_shown() {
    use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::new();
    let mut terminal = Terminal::of(&ada, &["login", server.url()]);
    terminal.shows("E-mail address:");
    terminal.types(&format!("{ADMIN_EMAIL}\r")).shows("Password:");
    terminal.types_unseen(&format!("{ADMIN_PASSWORD}\r"));
    let left = terminal.ends();
    assert!(left.status.success() && !left.raw.contains(ADMIN_PASSWORD), "{}", left.raw);
    ada.runs(&["whoami"]).succeeded();
}
