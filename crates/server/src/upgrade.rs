//! Checks that this binary is compatible with the database.

use std::error::Error;

use launchway_domain::{
    applications::{ImageRef, Reference, RegistryPolicy},
    replicas::ReleaseVersion,
};
use launchway_infrastructure::database::{ImageInUse, SchemaStatus, images_in_use, living_replicas};

use crate::{assembly, cli, config::Config, installation};

/// Prints the effects of a start of this binary on the database; fails if it would not start.
pub(crate) fn check(config: &Config) -> Result<(), Box<dyn Error>> {
    match installation::schema_status(config)? {
        SchemaStatus::UpToDate => cli::print("the database is up to date\n")?,
        SchemaStatus::Behind(steps) => cli::print(&format!(
            "{} migrations will run at the next start, or with `launchway migrate`: {}\n",
            steps.len(),
            steps.join(", ")
        ))?,
        SchemaStatus::Ahead(unknown) => return Err(assembly::newer(&unknown)),
    }
    check_replicas(config)?;
    check_registries(config)
}

/// Lists the servers that run on the database, and fails if one of them is newer than this binary.
fn check_replicas(config: &Config) -> Result<(), Box<dyn Error>> {
    let own: ReleaseVersion = env!("CARGO_PKG_VERSION").parse()?;
    let replicas = living_replicas(&config.database)?;
    // An only server is the one that is upgraded.
    let beside = if replicas.len() > 1 { replicas.as_slice() } else { &[] };
    for replica in beside {
        let is_near = replica.version.parse().is_ok_and(|version| own.can_follow(version));
        let consequence = match is_near {
            true => "it keeps working while others are upgraded",
            false => {
                "it does not run beside this version: upgrade it by one version at a time, or stop all servers"
            }
        };
        cli::print(&format!(
            "the server {} ({}) runs version {}: {consequence}\n",
            replica.hostname, replica.address, replica.version
        ))?;
    }
    let newer = replicas.iter().find(|replica| replica.version.parse().is_ok_and(|version| own < version));
    match newer {
        Some(newer) => Err(format!(
            "the server {} runs version {}, which is newer than this binary ({own}): an older one neither migrates the \
             database back nor changes the catalog; use that version",
            newer.hostname, newer.version
        )
        .into()),
        None => Ok(()),
    }
}

/// Lists the applications whose images this version would reject. Images in Dockerfiles, compose files and
/// extensions are known only when they are deployed.
fn check_registries(config: &Config) -> Result<(), Box<dyn Error>> {
    let refused = refused_images(images_in_use(&config.database)?, &config.deployments.registries);
    if refused.is_empty() {
        return Ok(());
    }
    for (used, registry) in &refused {
        cli::print(&format!(
            "the application `{}` ({}) uses the image `{}`: images from `{registry}` are not allowed\n",
            used.application, used.id, used.image
        ))?;
    }
    let mut registries: Vec<&str> = refused.iter().map(|(_, registry)| registry.as_str()).collect();
    registries.sort_unstable();
    registries.dedup();
    Err(format!(
        "the next deployment of {} applications would be rejected: add {} to LAUNCHWAY_IMAGE_REGISTRIES",
        refused.len(),
        registries.join(",")
    )
    .into())
}

fn refused_images(used: Vec<ImageInUse>, policy: &RegistryPolicy) -> Vec<(ImageInUse, String)> {
    let refused = used.into_iter().filter_map(|used| {
        let reference = Reference::parse(&used.image.parse::<ImageRef>().ok()?)?;
        let registry = reference.registry();
        policy.access(registry).is_none().then(|| (used, registry.to_string()))
    });
    refused.collect()
}
