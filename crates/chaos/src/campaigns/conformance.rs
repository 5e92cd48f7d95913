//! The API is compared with the OpenAPI document that it serves.

mod clients;
mod lint;
mod real;
mod tool;

use std::process::Command;

use launchway_testkit::{client::Client, external::Receiver};
use serde_json::Value;

use self::{
    real::Installation,
    tool::{Report, RunOptions, Tool},
};
use crate::{
    cluster::Cluster,
    document::{Operation, operations},
    harness::Harness,
    options::Options,
    section::Section,
};

const METHOD: &str = "\
Schemathesis reads the OpenAPI document of the server and calls every operation with valid values and with invalid \
ones, with a real token, in all of its phases and with all of its checks. Hooks replace most of the valid values with \
real ids and values: applications with deployments and log lines, members, tokens, extensions and runs, channels, and \
failed messages. Each resource that an operation ends exists a dozen times. The session, the organization and the \
account that Schemathesis uses are never ended. Every answer must be below 500, with a documented status, media type, \
headers and schema. What the document allows must be accepted, and what it does not allow must be refused, except by \
the rules that docs/api.md names. For the control, a proxy in front of the server renames one field in the answers of \
one operation, and answers another operation with 500.\n\n\
Redocly and Spectral lint the document with their recommended rules; the control is the document without its \
summaries. openapi-typescript, openapi-python-client and, in the long form, ploidy generate clients in TypeScript, \
Python and Rust, without a warning. A program with each client creates an application of a static site, and follows \
the log of its deployment to the end.\n\n\
The long form runs on both databases, the short form on SQLite. Both need `schemathesis` or `pip`, and `npm`, so no \
test runs them.";

/// The operations that the proxy of the control falsifies.
const RENAMED: &str = "/api/v1/user/settings";
const BROKEN: &str = "/api/v1/user/organizations";

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Conformance of the API", METHOD);
    let folder = tempfile::tempdir().unwrap();
    let tool = Tool::find(folder.path());
    compare(&mut section, options, &tool, None);
    let document = printed_document(options);
    section.never("problems of the document that Redocly finds", lint::redocly(&document, folder.path()));
    section.never("problems of the document that Spectral finds", lint::spectral(&document, folder.path()));
    let spoiled = without_summaries(document);
    section.control("operations without a summary, found by Redocly", lint::redocly(&spoiled, folder.path()));
    section.control(
        "operations without a description, found by Spectral",
        lint::spectral(&spoiled, folder.path()),
    );
    clients::compare(&mut section, options, folder.path());
    if options.is_long {
        let cluster = Cluster::start();
        compare(&mut section, options, &tool, Some(cluster.url()));
    }
    section
}

/// Returns the output of `launchway openapi`.
fn printed_document(options: &Options) -> Value {
    let output = Command::new(&options.server).arg("openapi").env_clear().output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the document without the texts of its operations.
fn without_summaries(mut document: Value) -> Value {
    for item in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            for key in ["summary", "description"] {
                operation.as_object_mut().map(|operation| operation.remove(key));
            }
        }
    }
    document
}

fn compare(section: &mut Section, options: &Options, tool: &Tool, postgres: Option<String>) {
    let database = if postgres.is_some() { "PostgreSQL" } else { "SQLite" };
    let mut installation = Installation::populated(options, postgres);
    let harness = &installation.harness;
    let document = format!("{}/api/v1/openapi.json", harness.launch.url);
    let (seconds, examples) = (options.count(180, 480), options.count(5, 60));
    let options = RunOptions { document: &document, base: &harness.launch.url, seconds, examples, only: &[] };
    let report = tool.run(&options, &installation.real);
    let documented = operations(&harness.admin.get("/api/v1/openapi.json").json());
    // The tool reads the document itself, and does not test its endpoint.
    let documented = documented.iter().filter(|operation| !operation.path.ends_with("/openapi.json"));
    let documented: Vec<_> = documented.map(Operation::name).collect();
    add_figures(section, database, &report, &documented);

    let proxy = spoiling(harness);
    let base = format!("http://127.0.0.1:{}", proxy.port);
    let only = [RENAMED, BROKEN];
    let options = RunOptions { document: &document, base: &base, seconds: 10, examples: 5, only: &only };
    let report = tool.run(&options, &installation.real);
    let noticed = |words: &str| usize::try_from(report.wrong(words)).unwrap_or(usize::MAX);
    section.control(&format!("{database}: answers with a renamed field, reported"), noticed(RENAMED));
    section.control(&format!("{database}: answers of 500, reported"), noticed(BROKEN));
    let has_ended = installation.harness.server.exit().is_some();
    section.never(&format!("{database}: ends of the server"), usize::from(has_ended));
}

fn add_figures(section: &mut Section, database: &str, report: &Report, documented: &[String]) {
    section.note(&format!("{database}: requests, by Schemathesis {}", report.version), report.cases);
    let classes = [200..300, 400..500, 500..600].map(|class| report.answered(class).to_string());
    section.note(&format!("{database}: answers of 2xx / 4xx / 5xx"), classes.join(" / "));
    let without: Vec<_> = documented.iter().filter(|name| !report.has_succeeded(name)).cloned().collect();
    let shown = if without.is_empty() { "none".to_owned() } else { without.join(", ") };
    section.note(&format!("{database}: operations that never succeeded"), shown);
    for (what, count) in &report.failures {
        eprintln!("  {count} times: {what}");
    }
    section.never(
        &format!("{database}: answers of 500 and above"),
        usize::try_from(report.answered(500..600)).unwrap_or(usize::MAX),
    );
    section.never(
        &format!("{database}: answers that the document does not allow, and errors"),
        report.failures.len(),
    );
    let asked = documented.iter().filter(|name| report.answers.contains_key(*name)).count();
    section.goal(
        &format!("{database}: operations of the document that were called"),
        asked,
        &format!("all {}", documented.len()),
        asked == documented.len(),
    );
}

/// A proxy that falsifies two operations.
fn spoiling(harness: &Harness) -> Receiver {
    let server = Client::new(&harness.launch.url);
    Receiver::talking(move |conversation| {
        let Some(request) = conversation.read_request() else { return };
        let mut words = request.line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let client = match request.header("authorization") {
            Some(token) => server.with_header("authorization", token),
            None => server.clone(),
        };
        let body = (!request.body.is_empty()).then_some(request.body.as_str());
        let Ok(answer) = client.try_send(method, path, body) else { return };
        let (status, text) = match path.split('?').next() {
            Some(RENAMED) => (answer.status, answer.text.replace("\"theme\"", "\"thema\"")),
            Some(BROKEN) => (500, answer.text),
            _ => (answer.status, answer.text),
        };
        conversation.say(format!(
            "HTTP/1.1 {status} So\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        ));
    })
}
