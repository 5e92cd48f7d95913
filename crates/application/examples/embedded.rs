//! Deploys an application inside this program, with the records in memory and a simulated host.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "here is the clock, and the screen")]

use std::{collections::BTreeSet, error::Error, net::IpAddr};

use async_trait::async_trait;
use chrono::{SubsecRound as _, Utc};
use launchway_application::embedded::{Embedded, Host, NoSecrets, RecordKeeper, Version, Visit};
use launchway_domain::{
    applications::Blueprint, auth::Actor, deployments::StepError, ids::DeploymentId,
    organizations::Organization, organizations::Role, records::Records, store::StoreError, users::User,
};
use tokio::sync::Mutex;
use uuid::Uuid;

/// Stores the records in memory.
struct Notebook(Mutex<Records>);

#[async_trait]
impl RecordKeeper for Notebook {
    async fn visit(&self, visit: Visit<'_>) -> Result<(), StoreError> {
        visit(&mut *self.0.lock().await)
    }
}

/// A host that only records the ids of the versions it would run.
struct Machine(Mutex<BTreeSet<DeploymentId>>);

#[async_trait]
impl Host for Machine {
    async fn start(&self, version: &Version) -> Result<IpAddr, StepError> {
        self.0.lock().await.insert(version.deployment);
        Ok([127, 0, 0, 1].into())
    }
    async fn find(&self, deployment: DeploymentId) -> Result<Option<IpAddr>, StepError> {
        Ok(self.0.lock().await.get(&deployment).map(|_runs| [127, 0, 0, 1].into()))
    }
    async fn end(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.0.lock().await.remove(&deployment);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (now, id) = (|| Utc::now().trunc_subsecs(6), Uuid::now_v7);
    let engines = Organization::new(id().into(), "Engines".parse()?, "".parse()?, now());
    let ada = User::invited(id().into(), "ada".parse()?, "ada@example.com".parse()?, now());
    let ada = Actor::vouched_for(ada, engines, Role::Member);
    let notebook = Notebook(Mutex::new(Records::of(&[&ada])));
    let launchway = Embedded::new(notebook, Machine(Mutex::default()), NoSecrets, now, id);
    let web = Blueprint::of_image("web".parse()?, "production".parse()?, "nginx:1".parse()?, 80.try_into()?);
    let (web, _) = launchway.applications.create(&ada, web.into(), None).await?;
    launchway.worker.drain().await;
    let ended = launchway.deployments.detail(&ada, web.deployments[0].id).await?;
    ended.logs.iter().for_each(|line| println!("{}", line.text));
    println!("The deployment is {}", ended.deployment.status.state.as_str());
    Ok(())
}
