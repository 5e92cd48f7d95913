//! The front proxy of the packages has a user of its own, and reaches published sites and nothing else of the server.
//!
//! Needs root, and `setpriv` of util-linux, which takes the place of systemd.

mod installation;

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{PermissionsExt as _, chown, symlink},
        net::UnixListener,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use launchway_testkit::wait::until;

use self::installation::{Account, Installation, PROXY, SERVER, mode_of, signal, user_of};
use crate::units::value_of;

/// The error of a program without the permission to use a path.
const DENIED: &str = "Permission denied";

/// Returns the error of an account that uses a path by a program, or nothing if it may.
fn refusal(account: &Account, program: &str, path: &Path) -> String {
    let output = account.run(program, path);
    if output.status.success() { String::new() } else { String::from_utf8_lossy(&output.stderr).into_owned() }
}

#[test]
fn the_front_proxy_reaches_sites_and_nothing_else() {
    let mut installation = Installation::new();
    let (server, proxy) = (Account::of(SERVER), Account::of(PROXY));
    assert_ne!(server.user, proxy.user);

    // The server waits for the proxy, and starts none itself.
    installation.start_server(|_| {});
    assert_eq!(installation.proxy_process(), None);
    let log = installation.log();
    assert!(
        log.contains("front proxy does not answer") && log.contains("systemctl start launchway-proxy"),
        "{log}"
    );
    let report = installation.output(SERVER, &["doctor"]);
    assert!(
        report.contains("FAIL  front proxy: does not run\n      hint: `systemctl start launchway-proxy`"),
        "{report}"
    );

    installation.start_proxy();
    until("the front proxy", || installation.proxy_process());
    installation.publish("hello");
    installation.shows("hello");
    assert_eq!(user_of(installation.proxy_process().unwrap()), proxy.user);
    // Until the server has sent it all routes, there is a warning.
    let report = until("a report without a warning", || {
        let report = installation.output(SERVER, &["doctor"]);
        report.contains("ok    front proxy: serves 1 routes").then_some(report)
    });
    assert!(report.contains(&format!("ok    front proxy user: runs as user {}", proxy.user)), "{report}");

    let data = installation.data();
    assert_eq!(mode_of(&data), (0o710, server.user, server.group));
    assert_eq!(mode_of(&data.join("sites")), (0o750, server.user, server.group));
    for (program, path) in [
        ("cat", data.join("secret.key")),
        ("cat", data.join("launchway.db")),
        ("cat", data.join("instance-id")),
        ("ls", data.clone()),
        ("ls", data.join("repositories")),
        ("ls", data.join("work")),
    ] {
        assert_eq!(refusal(&server, program, &path), "", "the server: {}", path.display());
        let message = refusal(&proxy, program, &path);
        assert!(message.contains(DENIED), "the proxy: {}: {message:?}", path.display());
    }
    // A socket cannot be opened as a file: who may use it gets that error, and everybody else an earlier one.
    let message = refusal(&server, "cat", &installation.engine());
    assert!(message.contains("No such device or address"), "{message:?}");
    let message = refusal(&proxy, "cat", &installation.engine());
    assert!(message.contains(DENIED), "{message:?}");
    assert_eq!(refusal(&proxy, "ls", &data.join("sites")), "");
    let message = refusal(&proxy, "touch", &data.join("sites/new"));
    assert!(message.contains(DENIED), "{message:?}");

    let main = installation.main_process();
    let environment = fs::read_to_string(format!("/proc/{main}/environ")).unwrap();
    assert!(environment.contains("LAUNCHWAY_PROXY_BIND="), "{environment}");
    assert!(!environment.contains("LAUNCHWAY_DATABASE_URL"), "{environment}");

    // Each comes back without the other.
    signal(main, "KILL");
    until("another process", || (installation.main_process() != main).then_some(()));
    installation.shows("hello");
    // Who stops the server at a terminal does not stop a proxy of another user.
    installation.stop_server("INT");
    installation.shows("hello");
    installation.start_server(|_| {});
    installation.shows("hello");
}

#[test]
fn the_control_socket_refuses_other_users_on_both_sides() {
    let mut installation = Installation::new();
    installation.start_proxy();
    until("the front proxy", || installation.proxy_process());
    let printed = |unit: &str, account: &Account, arguments: &[&str]| {
        let output = installation.command(unit, account, Some(arguments)).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (server, proxy) = (Account::of(SERVER), Account::of(PROXY));
    assert!(printed(SERVER, &server, &["proxy", "status"]).0);
    assert!(printed(PROXY, &proxy, &["proxy", "status"]).0);
    let (is_answered, text) = printed(SERVER, &server.stranger(), &["proxy", "status"]);
    assert!(!is_answered && text.contains("LAUNCHWAY_PROXY_CONTROL_USER"), "{text}");
    // The server may send routes, and does not get the listening socket.
    let (is_run, text) = printed(SERVER, &server, &["proxy", "run"]);
    assert!(!is_run && text.contains("cannot use"), "{text}");
    assert_eq!(user_of(installation.proxy_process().unwrap()), proxy.user);

    // A compromised proxy redirects the server to another socket.
    let (folder, other) = (installation.place("/var/lib/other"), installation.place("/other.sock"));
    fs::create_dir(&folder).unwrap();
    symlink(&other, folder.join("control.sock")).unwrap();
    let _listener = UnixListener::bind(&other).unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o666)).unwrap();
    chown(&folder, Some(proxy.user), Some(proxy.group)).unwrap();
    let mut command = installation.command(SERVER, &server, Some(&["proxy", "status"]));
    let output = command.env("LAUNCHWAY_PROXY_DIR", &folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("user 0 listens there"), "{text}");
}

#[test]
fn a_front_proxy_that_is_off_is_not_started_again() {
    let installation = Installation::new();
    installation.make_state(PROXY, None);
    let mut off = installation.command(PROXY, &Account::of(PROXY), None);
    let output = off.env("LAUNCHWAY_PROXY_BIND", "off").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("LAUNCHWAY_PROXY_BIND is `off`"), "{text}");
    let code = output.status.code().unwrap();
    assert_eq!(value_of(PROXY, "RestartPreventExitStatus"), code.to_string());
}

/// A visitor who asks for the page again and again, each time by another connection.
struct Load {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Load {
    fn begin(installation: &Installation, page: &'static str) -> Self {
        let (visitor, is_over) = (installation.visitor().with_header("connection", "close"), Arc::default());
        let ended: Arc<AtomicBool> = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut asked = 0;
            while !ended.load(Ordering::SeqCst) {
                let answer = visitor.try_send("GET", "/", None);
                let answer = answer.unwrap_or_else(|error| panic!("after {asked} requests: {error}"));
                assert_eq!((answer.status, answer.text.as_str()), (200, page), "after {asked} requests");
                asked += 1;
            }
            asked
        });
        Self { is_over, thread }
    }

    /// Ends it, and gives the number of requests that were answered. Fails if one was not.
    fn end(self) -> u32 {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

#[test]
fn an_upgrade_replaces_the_front_proxy_and_fails_no_request() {
    let mut installation = Installation::new();
    installation.start_proxy();
    installation.start_server(|_| {});
    installation.publish("hello");
    installation.shows("hello");
    let before = installation.main_process();
    let load = Load::begin(&installation, "hello");

    installation.stop_server("TERM");
    installation.upgrade();
    installation.start_server(|_| {});
    let log = installation.log();
    assert!(log.contains("front proxy replaced itself"), "{log}");
    // The successor serves until the unit's own process is there again.
    until("the process of the unit", || {
        let process = installation.proxy_process()?;
        (process != before && process == installation.main_process()).then_some(())
    });
    assert_eq!(user_of(installation.main_process()), Account::of(PROXY).user);
    let program = fs::read_link(format!("/proc/{}/exe", installation.main_process())).unwrap();
    assert_eq!(program, installation.place("/usr/bin/launchway"));
    let asked = load.end();
    assert!(asked > 50, "{asked}");

    // The next start finds the right one.
    installation.stop_server("TERM");
    installation.start_server(|_| {});
    assert_eq!(installation.log().matches("front proxy replaced itself").count(), 1);
}

#[test]
fn an_installation_with_one_user_is_migrated_by_a_restart() {
    let mut installation = Installation::new();
    let (server, proxy) = (Account::of(SERVER), Account::of(PROXY));
    // As before: a private folder, and a front proxy that the server starts.
    installation.make_state(SERVER, Some(0o700));
    installation.start_server(|command| {
        command.env_remove("LAUNCHWAY_PROXY_DIR");
    });
    installation.publish("hello");
    installation.shows("hello");
    let data = installation.data();
    assert_eq!((mode_of(&data).0, mode_of(&data.join("sites")).0), (0o700, 0o700));
    installation.stop_server("TERM");
    installation.shows("hello");

    installation.start_proxy();
    installation.start_server(|_| {});
    let process = until("the front proxy", || installation.proxy_process());
    assert_eq!(user_of(process), proxy.user);
    installation.shows("hello");
    assert_eq!(mode_of(&data), (0o710, server.user, server.group));
    assert_eq!(mode_of(&data.join("secret.key")), (0o600, server.user, server.group));
    let log = installation.log();
    assert!(log.contains("front proxy of the server's user ends"), "{log}");
}
