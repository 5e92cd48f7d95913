//! The fields of applications in forms.

use launchway_application::{Error, applications::NewApplication};
use launchway_domain::{
    applications::{
        Application, Blueprint, BuildPack, CopyCount, Labels, Port, ProxyServer, Repository, WatchPaths,
    },
    value::InvalidValue,
};

use crate::{fields::Fields, form::Form};

/// Reads a port.
pub(crate) fn port(text: &str) -> Result<Port, InvalidValue> {
    let number: i64 =
        text.trim().parse().map_err(|_invalid| InvalidValue::text("a number between 1 and 65535", text))?;
    number.try_into()
}

/// Reads a number of copies.
pub(super) fn copies(text: &str) -> Result<CopyCount, InvalidValue> {
    let number: i64 =
        text.trim().parse().map_err(|_invalid| InvalidValue::text("a number between 1 and 100", text))?;
    number.try_into()
}

/// Reads a build pack.
pub(super) fn build_pack(text: &str) -> Result<BuildPack, InvalidValue> {
    text.to_owned().try_into()
}

/// Reads the proxy in front of an application.
pub(super) fn proxy_server(text: &str) -> Result<ProxyServer, InvalidValue> {
    text.to_owned().try_into()
}

/// Reads labels, separated by commas.
pub(super) fn labels(text: &str) -> Result<Labels, InvalidValue> {
    let labels = text.split(',').map(str::trim).filter(|label| !label.is_empty());
    labels.map(str::to_owned).collect::<Vec<_>>().try_into()
}

/// Reads the patterns of watched paths, one in each line.
pub(super) fn watch_paths(text: &str) -> Result<WatchPaths, InvalidValue> {
    let patterns = text.lines().filter(|line| !line.trim().is_empty());
    patterns.map(str::to_owned).collect::<Vec<_>>().try_into()
}

/// Reads a new application.
pub(super) fn new_application(form: &Form) -> Result<NewApplication, Error> {
    let mut fields = Fields::of(form);
    let (name, environment) = (fields.required("name"), fields.required("environment"));
    let (branch, port) = (fields.optional("branch"), fields.required_by("port", port));
    let (base_path, dockerfile_path) = (fields.optional("base_path"), fields.optional("dockerfile_path"));
    let (domain, health) = (fields.optional("domain"), fields.optional("health_check_path"));
    let build_pack = fields.required_by("build_pack", build_pack);
    let repository = match &build_pack {
        Ok(pack) => fields.required_by("repository", |text| Repository::parse(text.trim(), *pack)),
        Err(_) => Err(crate::fields::Refused),
    };
    let environment_variables = fields.optional_by("environment_variables", super::variables::read);
    if matches!((&branch, &build_pack), (Ok(None), Ok(pack)) if *pack != BuildPack::Image) {
        let _noted = fields.refuse::<()>("branch is required".to_owned());
        return Err(fields.error());
    }
    let (
        Ok(name),
        Ok(environment),
        Ok(branch),
        Ok(port),
        Ok(base_path),
        Ok(dockerfile_path),
        Ok(domain),
        Ok(health_check_path),
        Ok(build_pack),
        Ok((repository, credentials)),
        Ok(environment_variables),
    ) = (
        name,
        environment,
        branch,
        port,
        base_path,
        dockerfile_path,
        domain,
        health,
        build_pack,
        repository,
        environment_variables,
    )
    else {
        return Err(fields.error());
    };
    let blueprint = Blueprint {
        base_path: base_path.unwrap_or_default(),
        dockerfile_path: dockerfile_path.unwrap_or_default(),
        domain,
        health_check_path,
        auto_deploy: form.is_checked("auto_deploy"),
        ..Blueprint::new(name, environment, build_pack, repository, branch, port)
    };
    let environment_variables = environment_variables.unwrap_or_default();
    Ok(NewApplication { credentials, environment_variables, ..blueprint.into() })
}

/// Returns the form that shows an application as it is.
pub(super) fn shown(application: &Application) -> Form {
    let blueprint = &application.blueprint;
    let labels: Vec<_> = blueprint.labels.as_slice().iter().map(ToString::to_string).collect();
    let watched: Vec<_> = blueprint.watch_paths.as_slice().iter().map(ToString::to_string).collect();
    Form::default()
        .with("name", blueprint.name.as_str())
        .with("repository", blueprint.repository.as_str())
        .with("branch", text(blueprint.branch.as_ref()))
        .with("base_path", blueprint.base_path.as_str())
        .with("dockerfile_path", blueprint.dockerfile_path.as_str())
        .with("build_pack", blueprint.build_pack.as_str())
        .with("environment", blueprint.environment.as_str())
        .with("domain", text(blueprint.domain.as_ref()))
        .with("port", blueprint.port.get().to_string())
        .with("replicas", blueprint.copies.get().to_string())
        .with("pre_run_command", text(blueprint.pre_run_command.as_ref()))
        .with("post_run_command", text(blueprint.post_run_command.as_ref()))
        .with("proxy_server", blueprint.proxy_server.as_str())
        .with("labels", labels.join(", "))
        .with("watch_paths", watched.join("\n"))
        .with("health_check_path", text(blueprint.health_check_path.as_ref()))
        .with("auto_deploy", if blueprint.auto_deploy { "on" } else { "" })
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}
