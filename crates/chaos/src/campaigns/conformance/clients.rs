//! Clients that generators make of the document. Each deploys a site, and follows its log to the end.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, Harness, Plan},
    options::Options,
    section::Section,
};

/// The packages of npm, PyPI and crates.io.
const TYPESCRIPT: [&str; 4] =
    ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.0"];
const PYTHON: &str = "openapi-python-client==0.29.1";
const RUST: &str = "ploidy@0.15.0";

/// A generated client, and a program with it.
struct Generated {
    /// The warnings and errors of the generator and, if there is one, of the compiler.
    warnings: usize,
    /// The program and its first arguments.
    program: Vec<PathBuf>,
    /// The Python path of the program.
    library: PathBuf,
}

/// Generates the clients and runs their programs; the one in Rust only in the long form, because its generator is
/// compiled first.
pub(crate) fn compare(section: &mut Section, options: &Options, folder: &Path) {
    let harness = Harness::set(options, &Plan { sites: 1, ..Plan::default() });
    let document = harness.admin.get("/api/v1/openapi.json").json();
    let made = typescript(&document, &folder.join("typescript"));
    add(section, &harness, "TypeScript", "by-typescript", &made);
    let made = python(&document, &folder.join("python"));
    add(section, &harness, "Python", "by-python", &made);
    if options.is_long {
        let made = rust(&document, &folder.join("rust"));
        add(section, &harness, "Rust", "by-rust", &made);
    }
    let spoiled = typescript(&without_deployments(document.clone()), &folder.join("typescript"));
    section.control("TypeScript client: a response without `deployments`, found by tsc", spoiled.warnings);
    let spoiled = python(&with_unknown_type(document), &folder.join("python"));
    section.control("Python client: an unknown media type, found by the generator", spoiled.warnings);
}

/// Runs a program, and compares the log that it printed with the log of the application.
fn add(section: &mut Section, harness: &Harness, language: &str, name: &str, made: &Generated) {
    section.never(&format!("{language} client: warnings of its generator and compiler"), made.warnings);
    let repository = harness.site(name)["repository"].as_str().unwrap().to_owned();
    let mut command = Command::new(&made.program[0]);
    command
        .args(&made.program[1..])
        .args([&harness.launch.url, harness.session(), &repository])
        .env("PYTHONPATH", &made.library);
    let output = finish(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| line.starts_with("line ")).count();
    let found = harness.admin.get(&format!("{DEPLOY}s?search={name}")).success();
    let id = found["applications"][0]["id"].as_str().unwrap_or_default();
    let log = harness.admin.get(&format!("{DEPLOY}/logs/{id}?page_size=1")).json();
    let expected = log["data"]["pagination"]["total_count"].as_u64().unwrap_or_default();
    let is_deployed = text.ends_with("end deployed\n") && lines > 0;
    if !is_deployed {
        eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    section.goal(
        &format!("{language} client: lines of the log, to the end of the deployment"),
        lines,
        &format!("all {expected}, `deployed`"),
        is_deployed && u64::try_from(lines).is_ok_and(|lines| lines == expected),
    );
}

fn typescript(document: &Value, folder: &Path) -> Generated {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("package.json"), json!({"type": "module", "private": true}).to_string()).unwrap();
    fs::write(folder.join("openapi.json"), document.to_string()).unwrap();
    fs::write(folder.join("deploy.ts"), include_str!("clients/deploy.ts")).unwrap();
    fs::write(folder.join("tsconfig.json"), include_str!("clients/tsconfig.json")).unwrap();
    let tools = folder.join("node_modules/.bin");
    if !tools.exists() {
        let mut install = Command::new("npm");
        succeed(
            install
                .args(["install", "--silent", "--no-audit", "--no-fund"])
                .args(TYPESCRIPT)
                .current_dir(folder),
        );
    }
    let mut generator = Command::new(tools.join("openapi-typescript"));
    let generated = finish(generator.args(["openapi.json", "-o", "schema.d.ts"]).current_dir(folder));
    let compiled = finish(Command::new(tools.join("tsc")).args(["-p", "tsconfig.json"]).current_dir(folder));
    Generated {
        warnings: warnings(&generated) + warnings(&compiled),
        program: vec!["node".into(), folder.join("deploy.js")],
        library: PathBuf::new(),
    }
}

fn python(document: &Value, folder: &Path) -> Generated {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("openapi.json"), document.to_string()).unwrap();
    fs::write(folder.join("deploy.py"), include_str!("clients/deploy.py")).unwrap();
    let tools = folder.join("environment/bin");
    if !tools.exists() {
        succeed(Command::new("python3").args(["-m", "venv", "environment"]).current_dir(folder));
        succeed(Command::new(tools.join("pip")).args(["install", "--quiet", PYTHON]));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.clone()].into_iter().chain(env::split_paths(&path))).unwrap();
    let mut generator = Command::new(tools.join("openapi-python-client"));
    generator
        .args(["generate", "--path", "openapi.json", "--output-path", "client", "--overwrite"])
        .env("PATH", path)
        .current_dir(folder);
    Generated {
        warnings: warnings(&finish(&mut generator)),
        program: vec![tools.join("python"), folder.join("deploy.py")],
        library: folder.join("client"),
    }
}

fn rust(document: &Value, folder: &Path) -> Generated {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("openapi.json"), document.to_string()).unwrap();
    fs::write(folder.join("src/main.rs"), include_str!("clients/deploy.rs.txt")).unwrap();
    fs::write(folder.join("Cargo.toml"), include_str!("clients/Cargo.toml.txt")).unwrap();
    let installed = Command::new("ploidy").arg("--version").output();
    let program = match installed.is_ok_and(|output| output.status.success()) {
        true => PathBuf::from("ploidy"),
        false => {
            let mut install = Command::new("cargo");
            succeed(install.args(["install", "--quiet", "--locked", RUST, "--root"]).arg(folder));
            folder.join("bin/ploidy")
        }
    };
    let mut generator = Command::new(program);
    generator
        .args(["generate", "rust", "openapi.json", "--output", "launchway-api-client"])
        .current_dir(folder);
    let generated = finish(&mut generator);
    let mut compiler = Command::new("cargo");
    let compiled =
        finish(compiler.args(["build", "--quiet"]).current_dir(folder).env_remove("CARGO_TARGET_DIR"));
    Generated {
        warnings: warnings(&generated) + warnings(&compiled),
        program: vec![folder.join("target/debug/deploy")],
        library: PathBuf::new(),
    }
}

/// Returns the number of warnings and errors in the output, at least 1 if the program failed.
fn warnings(output: &Output) -> usize {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).to_lowercase();
    // Names of generated files are no messages.
    let lines = text.lines().filter(|line| !line.starts_with("generating `"));
    let count = lines.filter(|line| line.contains("warning") || line.contains("error")).count();
    if count > 0 {
        eprintln!("{text}");
    }
    count.max(usize::from(!output.status.success()))
}

fn finish(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn succeed(command: &mut Command) {
    let output = finish(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the document with another name for a field that the programs read.
fn without_deployments(mut document: Value) -> Value {
    let fields = document["components"]["schemas"]["Application"]["properties"].as_object_mut().unwrap();
    let deployments = fields.remove("deployments").unwrap();
    fields.insert("versions".to_owned(), deployments);
    document
}

/// Returns the document with a media type that no client knows.
fn with_unknown_type(mut document: Value) -> Value {
    let content = &mut document["paths"]["/metrics"]["get"]["responses"]["200"]["content"];
    *content = json!({"application/x-unknown": {"schema": {"type": "string"}}});
    document
}
