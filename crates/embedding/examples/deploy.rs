//! Deploys a program as a child process of this one, and follows its log.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "here is the clock, and the screen")]

use std::{error::Error, time::Duration};

use chrono::{SubsecRound as _, Utc};
use launchway_embedding::{
    Actor, Blueprint, Embedded, MemoryStore, Organization, ProcessHost, ProcessSpec, Role, User,
};
use uuid::Uuid;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("deploy-{}", Uuid::now_v7()));
    let serve = |_version: &_| {
        Ok(ProcessSpec::new("busybox").arguments(["sh", "-c", "exec busybox httpd -f -p $PORT"]))
    };
    let host = ProcessHost::builder(&folder, serve).grace(Duration::from_millis(500)).open()?;
    let launchway = Embedded::builder(MemoryStore::new(), host).build();

    // The service has authenticated this user by itself.
    let now = Utc::now().trunc_subsecs(6);
    let engines = Organization::new(Uuid::now_v7().into(), "Engines".parse()?, "".parse()?, now);
    let ada = User::invited(Uuid::now_v7().into(), "ada".parse()?, "ada@example.com".parse()?, now);
    let ada = Actor::vouched_for(ada, engines, Role::Member);

    let web = Blueprint::of_image("web".parse()?, "production".parse()?, "web:1".parse()?, 80.try_into()?);
    let created = launchway.applications().create(&ada, web).await?;
    launchway.run_due().await?;
    for line in launchway.logs().of_deployment(&ada, created.deployment.id, None, 100).await? {
        println!("{}", line.text);
    }
    let deployment = launchway.deployments().get(&ada, created.deployment.id).await?;
    println!("The deployment is {}", deployment.status.state.as_str());
    launchway.applications().delete(&ada, created.application.id).await?;
    launchway.run_due().await?;
    Ok(std::fs::remove_dir_all(folder)?)
}
