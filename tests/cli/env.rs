//! Variables of applications.

use std::fs;

use launchway_testkit::{client::Client, people, server::TestServer, wait::at_once};
use serde_json::{Value, json};

use crate::person::Person;

const DEPLOY: &str = "/api/v1/deploy/application";

/// A server with the application `web`, and its user.
struct Fixture {
    server: TestServer,
    admin: Client,
    ada: Person,
    id: String,
}

impl Fixture {
    fn new() -> Self {
        let server = TestServer::on_sqlite();
        let admin = server.admin();
        let id = an_application(&admin, "web", "production");
        Self { ada: Person::ada(&server), server, admin, id }
    }

    fn application(&self) -> Value {
        self.admin.get(&format!("{DEPLOY}?id={}", self.id)).success()
    }

    fn variables(&self, field: &str) -> Value {
        serde_json::from_str(self.application()[field].as_str().unwrap()).unwrap()
    }

    fn deployments(&self) -> usize {
        self.application()["deployments"].as_array().unwrap().len()
    }
}

/// Creates an application, whose deployments fail here, and returns its id.
pub(crate) fn an_application(admin: &Client, name: &str, environment: &str) -> String {
    let spec = json!({"name": name, "repository": "https://git.example.com/web.git", "branch": "main",
        "port": 8080, "environment": environment, "build_pack": "static"});
    admin.post(DEPLOY, &spec).success()["id"].as_str().unwrap().to_owned()
}

#[test]
fn variables_are_set_listed_and_removed() {
    let fixture = Fixture::new();
    let nothing = fixture.ada.runs(&["env", "list", "web"]);
    assert_eq!(nothing.succeeded(), "");
    assert!(nothing.stderr.contains("has no environment variables"), "{nothing}");

    let set = fixture.ada.runs(&["env", "set", "web", "GREETING=hello world", "URL=a=b", "EMPTY="]);
    set.succeeded();
    assert!(set.stderr.contains("deployed with them"), "{set}");
    let expected = json!({"EMPTY": "", "GREETING": "hello world", "URL": "a=b"});
    assert_eq!(fixture.variables("environment_variables"), expected);
    assert_eq!(fixture.deployments(), 2);

    let listed = fixture.ada.runs(&["env", "list", "web"]);
    assert_eq!(listed.succeeded(), "EMPTY\nGREETING\nURL\n");
    assert!(!listed.stderr.contains("hello"), "{listed}");
    let shown = fixture.ada.runs(&["env", "list", "web", "--show"]);
    assert_eq!(shown.succeeded(), "EMPTY=\nGREETING=\"hello world\"\nURL=a=b\n");
    assert_eq!(fixture.ada.runs(&["env", "list", "web", "--output", "json"]).json(), expected);

    let unset = fixture.ada.runs(&["env", "unset", "web", "URL", "NOPE"]);
    unset.succeeded();
    assert!(unset.stderr.contains("NOPE was not set"), "{unset}");
    assert_eq!(fixture.variables("environment_variables"), json!({"EMPTY": "", "GREETING": "hello world"}));
    // The last one can go, too.
    fixture.ada.runs(&["env", "unset", "web", "EMPTY", "GREETING"]).succeeded();
    assert_eq!(fixture.variables("environment_variables"), json!({}));
}

#[test]
fn what_changes_nothing_deploys_nothing() {
    let fixture = Fixture::new();
    fixture.ada.runs(&["env", "set", "web", "A=1", "--no-deploy"]).succeeded();
    assert_eq!((fixture.variables("environment_variables"), fixture.deployments()), (json!({"A": "1"}), 1));
    for same in [["env", "set", "web", "A=1"], ["env", "unset", "web", "B"]] {
        let output = fixture.ada.runs(&same);
        output.succeeded();
        assert!(output.stderr.contains("Nothing changed"), "{output}");
    }
    assert_eq!(fixture.deployments(), 1);
    let set = fixture.ada.runs(&["env", "set", "web", "A=2", "--output", "json"]).json();
    assert_eq!((&set["id"], set["deployments"].as_array().unwrap().len()), (&json!(fixture.id), 2));
}

#[test]
fn variables_of_the_build_are_others() {
    let fixture = Fixture::new();
    fixture.ada.runs(&["env", "set", "web", "--build", "A=1", "--no-deploy"]).succeeded();
    fixture.ada.runs(&["env", "set", "web", "A=2", "--no-deploy"]).succeeded();
    assert_eq!(fixture.variables("build_variables"), json!({"A": "1"}));
    assert_eq!(fixture.variables("environment_variables"), json!({"A": "2"}));
    assert_eq!(fixture.ada.runs(&["env", "list", "web", "--build", "--show"]).succeeded(), "A=1\n");
}

#[test]
fn a_secret_comes_by_a_pipe_and_may_have_several_lines() {
    let fixture = Fixture::new();
    let key = "-----BEGIN KEY-----\nabc\n-----END KEY-----";
    let set = ["env", "set", "web", "KEY", "A=1", "--no-deploy"];
    fixture.ada.runs_with(&set, &format!("{key}\n")).succeeded();
    assert_eq!(fixture.variables("environment_variables"), json!({"A": "1", "KEY": key}));

    let several = ["env", "set", "web", "ONE", "TWO", "--no-deploy"];
    fixture.ada.runs_with(&several, "first\nsecond\n").succeeded();
    assert_eq!(fixture.variables("environment_variables")["TWO"], "second");
    let too_many = fixture.ada.runs_with(&several, "x\ny\nz\n");
    assert!(too_many.failed(2).contains("more lines"), "{too_many}");
    fixture.ada.runs_with(&several, "x\n").failed(2);
    assert_eq!(fixture.variables("environment_variables")["ONE"], "first");
}

#[test]
fn a_file_is_imported_and_what_was_exported_comes_back_the_same() {
    let fixture = Fixture::new();
    let file = fixture.ada.home().join(".env");
    let text = "# words\nexport A='one two'\nKEY=\"x\ny\" # more\nB=3\n";
    fs::write(&file, text).unwrap();
    fixture.ada.runs(&["env", "set", "web", "B=1", "C=2", "--no-deploy"]).succeeded();
    fixture.ada.runs(&["env", "import", "web", ".env", "--no-deploy"]).succeeded();
    let expected = json!({"A": "one two", "B": "3", "C": "2", "KEY": "x\ny"});
    assert_eq!(fixture.variables("environment_variables"), expected);

    let exported = fixture.ada.runs(&["env", "list", "web", "--show"]).succeeded().to_owned();
    an_application(&fixture.admin, "web", "staging");
    let ambiguous = fixture.ada.runs_with(&["env", "import", "web", "-"], &exported);
    assert!(ambiguous.failed(2).contains("web@staging"), "{ambiguous}");
    fixture.ada.runs_with(&["env", "import", "web@staging", "-", "--no-deploy"], &exported).succeeded();
    assert_eq!(fixture.ada.runs(&["env", "list", "web@staging", "--output", "json"]).json(), expected);

    fs::write(&file, "A=1\nsecret words\n").unwrap();
    let wrong = fixture.ada.runs(&["env", "import", "web", ".env"]);
    assert!(wrong.failed(2).contains(".env, line 2"), "{wrong}");
    assert!(!wrong.stderr.contains("secret words"), "{wrong}");
    fixture.ada.runs(&["env", "import", "web", "missing.env"]).failed(1);
}

#[test]
fn what_many_set_at_once_is_all_there() {
    let fixture = Fixture::new();
    let reported =
        at_once(6, |number| fixture.ada.runs(&["env", "set", "web", &format!("V{number}=x"), "--no-deploy"]));
    for one in &reported {
        one.succeeded();
    }
    let variables = fixture.variables("environment_variables");
    assert_eq!(variables.as_object().unwrap().len(), 6, "{variables}");
}

#[test]
fn what_the_server_refuses_is_reported() {
    let fixture = Fixture::new();
    fixture.ada.runs(&["env", "set", "web", "1A=x"]).failed(2);
    let large = "x".repeat(65 * 1024);
    let output = fixture.ada.runs_with(&["env", "set", "web", "A"], &large);
    assert!(output.failed(2).contains("65536 bytes"), "{output}");
    let missing = fixture.ada.runs(&["env", "list", "nope"]);
    assert!(missing.failed(4).contains("launchway apps"), "{missing}");
}

#[test]
fn a_viewer_sees_no_values_and_changes_none() {
    let fixture = Fixture::new();
    fixture.ada.runs(&["env", "set", "web", "A=secret", "--no-deploy"]).succeeded();
    let viewer = people::join(&fixture.server, &fixture.admin, "grace@example.com", "viewer");
    let grace = Person::new();
    let login = ["login", fixture.server.url(), "--email", &viewer.email];
    grace.runs_with(&login, &format!("{}\n", viewer.password)).succeeded();
    assert_eq!(grace.runs(&["env", "list", "web", "--show"]).succeeded(), "");
    grace.runs(&["env", "set", "web", "B=1"]).failed(3);
    assert_eq!(fixture.variables("environment_variables"), json!({"A": "secret"}));
}
