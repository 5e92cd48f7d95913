//! Compositions of extensions.

use std::{
    collections::{BTreeMap, HashSet},
    net::Ipv4Addr,
    sync::Arc,
};

use launchway_domain::{
    applications::Variables,
    deployments::{Output, ServiceName, StepError},
    extensions::{ObjectName, Run},
};

use super::{ExtensionObjects, Made, containers::is_in_project, names::ExtensionOwner};
use crate::{
    addresses::Assignment,
    command::ImageId,
    compose::{ExtensionFile, ExtensionRendering, compose_file_error, is_about_the_address},
    containers::{ContainerGuard, MOST_ADDRESSES},
    forwarded_ports::ForwardedPort,
    labels::{Label, Origin},
    published::MOST_PORTS,
};

impl ExtensionObjects {
    /// Runs the services of a compose file, replacing the earlier ones of the composition.
    pub async fn up(
        &self,
        run: &Run,
        order: i32,
        project: &ObjectName,
        text: &str,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let values = variables(run)?;
        let file = ExtensionFile::read(text, &values).map_err(compose_file_error)?;
        let names: Vec<&str> = file.services().map(ServiceName::as_str).collect();
        let whose = self.whose_run(run);
        let wanted = file.ports().map(|(service, port)| (whose.service(project, service), *port)).collect();
        let held = self.hold_ports(run, wanted, &output).await?;
        let mut ports: BTreeMap<ServiceName, Vec<ForwardedPort>> = BTreeMap::new();
        for ((service, _), port) in file.ports().zip(&held) {
            ports.entry(service.clone()).or_default().push(ForwardedPort::on_loopback(port));
        }
        // Another extension may have a composition of that name, too.
        let ours = whose.named(project);
        let is_replaced = |made: &Made| is_in_project(made, project) && made.name.starts_with(&ours);
        self.require_free_names(run.organization, &names, is_replaced).await?;
        let mut images = BTreeMap::new();
        for (service, image) in file.images() {
            let id = self.engine.obtain_unmarked(image, &output).await;
            images.insert(service.clone(), id.map_err(|error| in_service(service, error))?);
        }
        let volumes: Vec<String> = file.volumes().map(|volume| whose.volume(project, volume)).collect();
        self.make_volumes(&whose, &volumes).await?;
        self.set_aside(run, order, |made| is_in_project(made, project)).await?;
        let unfinished = ContainerGuard::new(&self.engine.docker);
        let up = Up {
            run,
            order,
            project,
            file: &file,
            images: &images,
            values: &values,
            whose: &whose,
            ports: &ports,
        };
        let done = self.bring_up(&up, unfinished.label(), &output).await;
        unfinished.end(done.is_ok()).await;
        done
    }

    /// Sets all containers of a composition aside, without a replacement.
    pub async fn down(&self, run: &Run, order: i32, project: &ObjectName) -> Result<(), StepError> {
        self.set_aside(run, order, |made| is_in_project(made, project)).await
    }

    async fn bring_up(&self, up: &Up<'_>, call: Label, output: &Arc<dyn Output>) -> Result<(), StepError> {
        let organization = up.run.organization;
        // Compose looks it up by name, and does not create it.
        let network = self.engine.network_name(organization);
        let marks = [Label::of_instance(self.engine.options.instance), Label::of_organization(organization)];
        let made_in = self.engine.network_called(&network, &marks, &up.run.reserved).await?;
        let (mut assignments, mut refused) = (Vec::new(), HashSet::new());
        for tries in 0.. {
            let mut ports = up.ports.clone();
            let mut published = Vec::new();
            for service in up.file.services() {
                let called = format!("{}-{service}", up.project);
                let chosen = self.publish(up.run, &called, &refused).await?;
                refused.extend(chosen.iter().map(|port| port.endpoint.port()));
                ports.entry(service.clone()).or_default().extend(&chosen);
                published.extend(chosen);
            }
            let first = assignments.len();
            for _service in up.file.services() {
                assignments.extend(self.engine.assign(&made_in, organization, &up.run.reserved).await?);
            }
            let services = up.file.services().cloned();
            let addresses = assignments.iter().skip(first).map(|assignment: &Assignment| assignment.address);
            let addresses = services.zip(addresses).collect();
            let at = At { network: &network, addresses: &addresses, ports: &ports };
            let done = self.bring_up_at(up, &at, call.clone(), output).await;
            let is_refused =
                |error: &StepError| published.iter().any(|port: &ForwardedPort| port.is_refused_by(error));
            match done {
                Err(error) if is_about_the_address(&error) && tries < MOST_ADDRESSES => {}
                Err(error) if is_refused(&error) && tries < MOST_PORTS => {}
                done => return done,
            }
        }
        Ok(())
    }

    async fn bring_up_at(
        &self,
        up: &Up<'_>,
        at: &At<'_>,
        call: Label,
        output: &Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let rendering = ExtensionRendering {
            file: up.file,
            images: up.images,
            values: up.values,
            network: at.network,
            addresses: at.addresses,
            ports: at.ports,
            limits: &self.engine.options.limits,
            container: &|service| up.whose.service(up.project, service),
            volume: &|volume| up.whose.volume(up.project, volume),
            labels: &|service| {
                let origin = Origin {
                    execution: up.run.execution.to_string(),
                    step: up.order.to_string(),
                    project: up.project.to_string(),
                    alias: service.to_string(),
                };
                let ours = up.whose.marks().into_iter().chain(origin.labels());
                ours.chain([call.clone()]).collect()
            },
        };
        let file = rendering.render().map_err(compose_file_error)?;
        let name = up.whose.project(up.project, up.run, up.order);
        let done = self.compositions.bring_project_up(&name, file, &[]).await;
        if done.is_err() {
            self.compositions.print_log_tail(std::slice::from_ref(&call), output).await;
        }
        done
    }
}

/// The parameters of starting services.
struct Up<'a> {
    run: &'a Run,
    order: i32,
    project: &'a ObjectName,
    file: &'a ExtensionFile,
    images: &'a BTreeMap<ServiceName, ImageId>,
    values: &'a Variables,
    whose: &'a ExtensionOwner,
    /// The ports of the loopback that are forwarded to services.
    ports: &'a BTreeMap<ServiceName, Vec<ForwardedPort>>,
}

/// The network of services, and their addresses and ports.
struct At<'a> {
    network: &'a str,
    addresses: &'a BTreeMap<ServiceName, Ipv4Addr>,
    ports: &'a BTreeMap<ServiceName, Vec<ForwardedPort>>,
}

/// Returns the variables for the file: the values of the run, and nothing of this machine.
fn variables(run: &Run) -> Result<Variables, StepError> {
    let values = run.values.expose().clone();
    values.try_into().map_err(|error| StepError::Rejected(format!("the values: {error}")))
}

fn in_service(service: &ServiceName, error: StepError) -> StepError {
    match error {
        StepError::Rejected(why) => StepError::Rejected(format!("the service `{service}`: {why}")),
        fault => fault,
    }
}
