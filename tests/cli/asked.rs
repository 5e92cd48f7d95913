//! Prompts on a terminal, and input that is never echoed.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use launchway_testkit::{
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
    wait::until,
};

use crate::{accounts::code, env::an_application, extensions, person::Person, terminal::Terminal};

const NEW_PASSWORD: &str = "another horse battery";

#[test]
fn a_run_asks_for_what_is_missing_and_again_for_what_is_refused() {
    let (_server, ada) = extensions::server_and_ada();
    let fork = extensions::forked(&ada, "echo {{ count }} times hello {{ who }} by {{ key }}");
    let mut terminal = Terminal::of(&ada, &["run", &fork]);
    terminal.shows("count [3]:");
    terminal.types("4\r");
    terminal.shows("key:");
    terminal.types_unseen("very secret\r");
    terminal.shows("matches [a-z]+").shows("who:");
    terminal.types("ADA\r");
    terminal.shows("error: variables.who must be");
    terminal.types("ada\r");
    let left = terminal.ends();
    assert!(left.status.success(), "{}", left.text());
    assert!(left.text().contains("4 times hello ada by [secret]"), "{}", left.text());
    assert!(!left.raw.contains("very secret"), "{}", left.raw);
    assert_eq!(left.cell("completed").fgcolor(), vt100::Color::Idx(2));
}

#[test]
fn a_second_factor_is_set_up_in_one_go() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let mut terminal = Terminal::of(&ada, &["two-factor", "setup"]);
    terminal.shows("Authenticator code:");
    let shown = terminal.contents();
    assert!(shown.contains("█▀▀▀▀▀█") || shown.contains("▄▄▄▄▄"), "{shown}");
    let secret =
        shown.lines().find_map(|line| line.strip_prefix("Or enter this key: ")).unwrap().trim().to_owned();
    let wrong = if code(&secret, 0) == "000000" { "000001" } else { "000000" };
    terminal.types(&format!("{wrong}\r")).shows("error: ");
    // A code of the present step, which does not end on the way.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    terminal.types(&format!("{}\r", code(&secret, i64::from(now % 30 > 27))));
    let left = terminal.ends();
    assert!(left.status.success(), "{}", left.text());
    assert!(left.text().contains("They are not shown again"), "{}", left.text());
    assert_eq!(ada.runs(&["whoami", "--output", "json"]).json()["two_factor_enabled"], true);
}

#[test]
fn a_new_password_is_asked_for_until_it_is_typed_twice_the_same() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let mut terminal = Terminal::of(&ada, &["password"]);
    terminal.shows("Current password:");
    terminal.types_unseen(&format!("{ADMIN_PASSWORD}\r"));
    terminal.shows("New password:");
    terminal.types_unseen(&format!("{NEW_PASSWORD}\r"));
    terminal.shows("New password (again):");
    terminal.types_unseen("something else\r");
    terminal.shows("the entries do not match");
    terminal.types_unseen(&format!("{NEW_PASSWORD}\r"));
    until("the second question", || {
        (terminal.contents().matches("New password (again):").count() == 2).then_some(())
    });
    terminal.types_unseen(&format!("{NEW_PASSWORD}\r"));
    let left = terminal.ends();
    assert!(left.status.success(), "{}", left.text());
    assert!(!left.raw.contains(NEW_PASSWORD) && !left.raw.contains(ADMIN_PASSWORD), "{}", left.raw);
    server.log_in(ADMIN_EMAIL, NEW_PASSWORD);
}

#[test]
fn the_value_of_a_variable_is_asked_for_unseen() {
    let server = TestServer::on_sqlite();
    an_application(&server.admin(), "web", "production");
    let ada = Person::ada(&server);
    let mut terminal = Terminal::of(&ada, &["env", "set", "web", "KEY", "--no-deploy"]);
    terminal.shows("KEY:");
    terminal.types_unseen("very secret\r");
    let left = terminal.ends();
    assert!(left.status.success() && !left.raw.contains("very secret"), "{}", left.raw);
    assert_eq!(ada.runs(&["env", "list", "web", "--output", "json"]).json()["KEY"], "very secret");
}

#[test]
fn who_registers_from_elsewhere_is_asked_for_the_setup_token() {
    let server = TestServer::on_sqlite();
    let token = fs::read_to_string(server.data_dir().join("setup-token")).unwrap();
    let ada = Person::new();
    let mut terminal = Terminal::of(&ada, &["register", &server.url().replace("127.0.0.1", "0.0.0.0")]);
    terminal.shows("E-mail address:");
    terminal.types(&format!("{ADMIN_EMAIL}\r"));
    terminal.shows("Name:");
    terminal.types("ada\r");
    terminal.shows("Password:");
    terminal.types_unseen(&format!("{ADMIN_PASSWORD}\r"));
    terminal.shows("Password (again):");
    terminal.types_unseen(&format!("{ADMIN_PASSWORD}\r"));
    terminal.shows("Setup token:");
    terminal.types_unseen(&format!("{}\r", token.trim()));
    let left = terminal.ends();
    assert!(left.status.success(), "{}", left.text());
    assert!(!left.raw.contains(token.trim()) && !left.raw.contains(ADMIN_PASSWORD), "{}", left.raw);
    ada.runs(&["whoami"]).succeeded();
}
