//! Plans builds of source without a Dockerfile, through the program `nixpacks`.
//!
//! The program detects the language, and writes a Dockerfile and the files that it needs into the checkout.
//! It builds nothing: that works as with any other Dockerfile.
//!
//! It reads the checkout with the permissions of this process, so no link may point out of there, and
//! neither may the one path that a variable can name. It also writes with these permissions, wherever the
//! plan of a repository says, so a plan is checked before it is executed. It gets variables in its
//! environment; it writes them into a script of its own, which is removed. Of variables that affect the
//! dynamic linker or the C library it gets only the names.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use launchway_domain::{
    applications::Variables,
    deployments::{BuildPlan, BuildPlanner, Output, StepError},
};
use launchway_system::{
    files,
    process::{Finished, Invocation, ProcessError},
};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{
    environment::is_obeyed,
    links::{self, beneath},
};

/// The output folder of the program.
const MADE: &str = ".nixpacks";
/// The program's build script, which contains every variable.
const SCRIPT: &str = ".nixpacks/build.sh";
/// The generated Dockerfile.
const DOCKERFILE: &str = ".nixpacks/Dockerfile";
/// The variable that names a configuration file.
const CONFIG_FILE: &str = "NIXPACKS_CONFIG_FILE";
/// The placeholder for the value of a variable that the program must not get.
const WITHHELD: &str = "withheld";
/// The number of lines of an error message that are shown.
const LINES_OF_COMPLAINT: usize = 3;
/// The limits of its address space and of the files that it writes.
const LIMITS: [&str; 5] = ["prlimit", "--as=4294967296", "--fsize=67108864", "--core=0", "--"];

/// The options of nixpacks.
#[derive(Debug, Clone)]
pub struct NixpacksOptions {
    /// The program, by its name on the `PATH` or by its path.
    pub program: PathBuf,
    /// Its timeout.
    pub time: Duration,
}

impl Default for NixpacksOptions {
    fn default() -> Self {
        Self { program: "nixpacks".into(), time: Duration::from_secs(60) }
    }
}

/// Plans builds with the program `nixpacks`.
#[derive(Debug, Default)]
pub struct Nixpacks {
    options: NixpacksOptions,
}

impl Nixpacks {
    /// Returns a planner with these options.
    #[must_use]
    pub fn new(options: NixpacksOptions) -> Self {
        Self { options }
    }

    fn call(&self, command: &str, variables: &Variables) -> Invocation {
        let mut call = Invocation::new(&self.options.program, self.options.time)
            .under(LIMITS)
            .at_low_priority()
            .arg(command);
        for (name, value) in variables.iter() {
            call = match is_obeyed(name) {
                true => call.arg("--env").arg(format!("{name}={WITHHELD}")),
                false => call.arg("--env").arg(name).env(name, value),
            };
        }
        call
    }

    /// Returns the variables of the build: ours, and those of the plan.
    async fn variables(&self, folder: &Path, plan: &BuildPlan) -> Result<Variables, StepError> {
        let call = self.call("plan", &plan.variables).args(["--format", "json"]).arg(folder);
        let finished = succeeded(call.run().await)?;
        let unreadable = || StepError::Rejected("nixpacks returned unreadable output".to_owned());
        let planned: Value = serde_json::from_slice(&finished.answer).map_err(|_not_json| unreadable())?;
        if planned.get("phases").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) {
            return Err(StepError::Rejected(format!(
                "nixpacks does not recognise what is in `{}`: see https://nixpacks.com for what it supports",
                plan.base_path.as_str()
            )));
        }
        check_what_is_written(&planned).map_err(StepError::Rejected)?;
        let planned = planned.get("variables").and_then(Value::as_object).into_iter().flatten();
        let planned = planned.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let mut variables: BTreeMap<String, String> = planned.collect();
        variables.extend(plan.variables.iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        Variables::try_from(variables)
            .map_err(|invalid| StepError::Rejected(format!("the variables of the plan {invalid}")))
    }

    /// Writes the Dockerfile.
    async fn write(&self, folder: &Path, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<(), StepError> {
        // Without mounts for a cache, which only one of the builders knows.
        let call = self.call("build", &plan.variables).arg("--no-cache").arg("--out").arg(folder).arg(folder);
        let written = call.run_into(output).await;
        let script = folder.join(SCRIPT);
        files::off_thread("tidy a plan", move || files::remove(&script)).await?;
        succeeded(written).map(drop)
    }
}

#[async_trait]
impl BuildPlanner for Nixpacks {
    async fn complete(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<BuildPlan, StepError> {
        let wished = plan.clone();
        let folder = spawn_blocking(move || prepared(&wished))
            .await
            .map_err(|error| StepError::failed("the checkout cannot be read", error))??;
        let variables = self.variables(&folder, plan).await?;
        self.write(&folder, plan, output).await?;
        let dockerfile = DOCKERFILE.to_owned().try_into();
        let dockerfile = dockerfile.map_err(|_never| StepError::Retryable("no Dockerfile".to_owned()))?;
        Ok(BuildPlan { dockerfile, variables, ..plan.clone() })
    }
}

/// Returns the folder to plan, after checking that nothing points out of the checkout. Blocks.
fn prepared(plan: &BuildPlan) -> Result<PathBuf, StepError> {
    let broken = |error| StepError::failed("the checkout cannot be read", error);
    let root = fs::canonicalize(&plan.checkout.root).map_err(broken)?;
    links::check_all(&root)?;
    let base = plan.base_path.as_str();
    let folder = beneath(&root, &root, plan.base_path.relative()).map_err(|lost| {
        lost.into_step_error(&format!("there is no folder `{base}`"), &format!("the folder `{base}`"))
    })?;
    if !folder.is_dir() {
        return Err(StepError::Rejected(format!("`{base}` is not a folder")));
    }
    if let Some((_, path)) = plan.variables.iter().find(|(name, _)| *name == CONFIG_FILE) {
        // The program removes line breaks.
        let path = path.replace('\n', "");
        beneath(&root, &folder, &path).map_err(|lost| {
            lost.into_step_error(
                &format!("there is no file `{path}`"),
                &format!("`{path}` of `{CONFIG_FILE}`"),
            )
        })?;
    }
    files::remove(&folder.join(MADE)).map_err(broken)?;
    Ok(folder)
}

/// Rejects a plan by which the program would write outside of its own folder: it appends each of these
/// names to that folder unchecked.
fn check_what_is_written(planned: &Value) -> Result<(), String> {
    let assets = planned.get("staticAssets").and_then(Value::as_object).into_iter().flatten();
    let phases = planned.get("phases").and_then(Value::as_object).into_iter().flatten();
    let archives = phases.filter_map(|(_, phase)| phase.get("nixpkgsArchive")?.as_str());
    let leads_down =
        |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let assets = assets.map(|(name, _)| name.as_str()).filter(|name| !leads_down(name));
    match assets.chain(archives.filter(|name| name.contains('/'))).next() {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
            Err(format!("the plan may not have a file written at `{shown}`: it is outside the build"))
        }
    }
}

fn succeeded(finished: Result<Finished, ProcessError>) -> Result<Finished, StepError> {
    match finished {
        Ok(finished) if finished.succeeded() => Ok(finished),
        Ok(finished) => {
            let error_text = finished.last_error_lines(LINES_OF_COMPLAINT);
            Err(StepError::Rejected(format!("nixpacks cannot plan this build: {error_text}")))
        }
        Err(ProcessError::NotInstalled(name)) if name == "nixpacks" => Err(StepError::Rejected(
            "the build pack `nixpacks` needs the program `nixpacks`, which is not on the server's PATH: \
             install it by `cargo install nixpacks` or as https://nixpacks.com/docs/install says, and deploy \
             again"
                .to_owned(),
        )),
        Err(ProcessError::TookTooLong(_, limit)) => {
            Err(StepError::Rejected(format!("nixpacks took longer than {limit:?} to plan this build")))
        }
        Err(error) => Err(StepError::Retryable(error.to_string())),
    }
}
