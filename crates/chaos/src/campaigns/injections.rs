//! Hostile texts in every field of every request.

mod bystander;
mod corpus;
mod places;

use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::{Client, Connection},
    docker::FakeDocker,
    hostile::INERT_ENGINE,
};
use serde_json::{Value, json};

use self::{
    bystander::Bystander,
    places::{Request, World, places},
};
use crate::{
    cluster::Cluster,
    document::{Ids, Operation, operations},
    harness::{DEPLOY, Harness, Plan},
    options::Options,
    repository,
    section::Section,
};

const METHOD: &str = "\
The campaign builds requests from the OpenAPI document of the server, with real ids. Each request would be valid \
except for one text: in each field of each body, in lists, as a value and as a name in objects, and in each parameter \
of path, query and header. The texts are SQL, shell commands, options of git and docker, paths, zero bytes, line \
breaks, escape sequences, templates, HTML, characters that change the direction of text, numbers, and long texts. \
Each operation with a body also receives bodies that are not UTF-8, repeat a name, have numbers that no type holds, \
or are 100,000 levels deep.\n\n\
What the server accepts is deployed, by real git and an engine that only records its calls. A text that reached a \
shell would create a file. There is a second organization, which the table calls `next door`: every row of the \
database that names it, or its application, is compared before and after.\n\n\
The long form runs on both databases. The short form tests one text of twelve in each place, on SQLite, and lets \
every build fail.";

/// The time within which everything that was accepted must finish.
const REST: Duration = Duration::from_secs(1800);

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Hostile texts", METHOD);
    inject(&mut section, options, None);
    if options.is_long {
        let cluster = Cluster::start();
        inject(&mut section, options, Some(cluster.url()));
    }
    section
}

fn inject(section: &mut Section, options: &Options, postgres: Option<String>) {
    let database = if postgres.is_some() { "PostgreSQL" } else { "SQLite" };
    // A failed build is not retried.
    let short = INERT_ENGINE.replace("echo built", "echo 'returned a non-zero code: 1' >&2; exit 1");
    let engine = FakeDocker::running(if options.is_long { INERT_ENGINE } else { &short });
    let folder = engine.program().parent().unwrap().display().to_string();
    let settings = vec![
        ("PATH".to_owned(), format!("{folder}:{}", env::var("PATH").unwrap_or_default())),
        ("LAUNCHWAY_NOTIFICATION_TIMEOUT".to_owned(), "1s".to_owned()),
        ("LAUNCHWAY_MAX_BUILDS".to_owned(), "8".to_owned()),
    ];
    let harness = Harness::set(options, &Plan { postgres, settings, sites: 1, ..Plan::default() });
    let marks = harness.folder().join("marks");
    fs::create_dir(&marks).unwrap();
    let repository = harness.folder().join("repositories/hostile");
    repository::make(&repository, &[("Dockerfile", "FROM scratch\n")]);
    let ids = ids(&harness);
    let bystander = Bystander::of(&harness);
    wait_until_idle(&bystander.client);
    let before = bystander.rows_at_rest(REST);

    let mut responses = Outcome::default();
    let document = harness.admin.get("/api/v1/openapi.json").json();
    let texts = corpus::texts(marks.to_str().unwrap());
    let step = options.count(12, 1);
    let mut number = 0;
    for operation in operations(&document) {
        for place in places(&document, &operation) {
            responses.places += 1;
            for text in texts.iter().skip(responses.places % step).step_by(step) {
                number += 1;
                let world = World { ids: &ids, repository: repository.to_str().unwrap(), number };
                for request in Request::with(&document, &operation, &place, text, &world) {
                    responses.note(request.send(&harness.admin), || {
                        format!("{} {place:?} {text:?}", operation.name())
                    });
                }
            }
        }
        send_bodies(&harness, &operation, &ids, &mut responses);
    }
    wait_until_idle(&harness.admin);
    add_figures(section, database, &responses);
    section.never(&format!("{database}: files that a shell left"), left_in(&marks));
    let builds = engine
        .calls()
        .iter()
        .filter(|call| call.arguments.first().is_some_and(|word| word == "build"))
        .count();
    let what = format!("{database}: builds of what was accepted");
    section.goal(&what, builds, "at least 1", builds > 0);
    let after = bystander.rows();
    for row in before.symmetric_difference(&after) {
        eprintln!("  CHANGED {row}");
    }
    section.note(&format!("{database}: rows of the organization next door"), before.len());
    section.never(
        &format!("{database}: of them changed, removed or added"),
        before.symmetric_difference(&after).count(),
    );
    let figures = harness.question().ask().expect("the verifier can read everything");
    section.never(&format!("{database}: integrity errors of the database"), figures.damage.len());
    controls(section, database, &bystander, &marks, &texts);
}

/// The responses.
#[derive(Default)]
struct Outcome {
    places: usize,
    statuses: BTreeMap<u16, usize>,
    unanswered: usize,
}

impl Outcome {
    fn note(&mut self, status: Option<u16>, what: impl Fn() -> String) {
        match status {
            Some(status) => {
                *self.statuses.entry(status).or_default() += 1;
                if status >= 500 {
                    eprintln!("  {status}: {}", what());
                }
            }
            None => {
                eprintln!("  no answer: {}", what());
                self.unanswered += 1;
            }
        }
    }
}

fn add_figures(section: &mut Section, database: &str, responses: &Outcome) {
    let shown: Vec<_> =
        responses.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    section.note(&format!("{database}: places of the document in which a text may be"), responses.places);
    section.note(&format!("{database}: requests, by answer"), shown.join(", "));
    let of =
        |range: std::ops::Range<u16>| responses.statuses.range(range).map(|(_, count)| count).sum::<usize>();
    section.never(&format!("{database}: answers of 500 and above"), of(500..600));
    section.never(&format!("{database}: requests without an answer"), responses.unanswered);
    // If one of them were always the case, nothing would be proven.
    let (accepted, refused) = (of(200..300), of(400..500));
    section.goal(
        &format!("{database}: accepted / refused"),
        format_args!("{accepted} / {refused}"),
        "some of both",
        accepted > 0 && refused > 0,
    );
}

/// Creates one resource of each kind, before anything hostile is sent.
fn ids(harness: &Harness) -> Ids {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let admin = &harness.admin;
    let member = json!({"email": "grace@example.com", "role": "viewer"});
    let member = admin.post("/api/v1/organizations/users", &member).success();
    let fork = admin.post("/api/v1/extensions/hello-note/fork", &json!({})).success();
    let run = admin.post("/api/v1/extensions/hello-note/run", &json!({"variables": {}})).success();
    let application = harness.applications[0].clone();
    let deployments = admin.get(&format!("{DEPLOY}/deployments?id={application}")).success();
    Ids {
        organization: text(&member["organization_id"]),
        user: text(&member["user_id"]),
        token: text(&admin.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success()["id"]),
        deployment: text(&deployments["deployments"][0]["id"]),
        // A deployment whose stream ends is not needed: with a hostile text it is never found.
        ended: "01980000-0000-7000-8000-0000000000ff".to_owned(),
        application,
        extension: text(&fork["extension_id"]),
        execution: text(&run["id"]),
        delivery: "01980000-0000-7000-8000-0000000000ff".to_owned(),
        domain: "shop.example.com".to_owned(),
    }
}

/// Sends bodies that no client library sends.
fn send_bodies(harness: &Harness, operation: &Operation, ids: &Ids, responses: &mut Outcome) {
    if !operation.about["requestBody"].is_object() {
        return;
    }
    let token = harness.session();
    for body in corpus::bodies() {
        let mut connection = Connection::open(harness.launch.url.trim_start_matches("http://"));
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
            operation.method,
            operation.filled(ids),
            body.len()
        );
        connection.send(head).send(&body);
        let status = connection.try_answer().map(|answer| answer.status);
        responses.note(status, || {
            format!("{} {}", operation.name(), String::from_utf8_lossy(&body[..body.len().min(80)]))
        });
    }
}

fn controls(section: &mut Section, database: &str, bystander: &Bystander, marks: &Path, texts: &[String]) {
    let text = texts.iter().find(|text| text.starts_with("; touch ")).expect("one for a shell");
    let ran = Command::new("sh").args(["-c", &format!("echo {text}")]).output();
    assert!(ran.is_ok_and(|output| output.status.success()));
    section.control(
        &format!("{database}: a text that a shell reads on purpose, files that it left"),
        left_in(marks),
    );
    let before = bystander.rows_at_rest(REST);
    bystander.client.put("/api/v1/organizations", &json!({"description": "changed"})).success();
    let changed = before.symmetric_difference(&bystander.rows()).count();
    section.control(&format!("{database}: a change next door on purpose, rows that are noticed"), changed);
}

fn left_in(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn wait_until_idle(client: &Client) {
    let started = Instant::now();
    for state in ["queued", "cloning", "building", "deploying"] {
        let path = format!("/api/v1/deploy/applications?page_size=1&status={state}");
        while client.get(&path).success()["pagination"]["total_count"] != 0 {
            assert!(started.elapsed() < REST, "applications are still {state}");
            sleep(Duration::from_millis(200));
        }
    }
}
