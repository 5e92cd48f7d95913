//! Backups: one file with everything but the key.

use std::{error::Error, fs, path::Path};

use launchway_domain::{
    clock::Clock as _,
    deployments::{DeploymentKind, DeploymentRepository as _, SiteStore as _},
    ids::ApplicationId,
    organizations::Scope,
    replicas::ReplicaRegistry as _,
};
use launchway_infrastructure::{
    backup::{self, BackupError, Installation, Manifest, Origin, Rebuilt},
    clock::SystemClock,
    data_dir::DataDir,
    database::{Database, DatabaseOptions, DatabaseUrl, SchemaStatus, migrations},
    sites::ReleaseFolders,
};

use crate::{
    assembly,
    cli::{self, CreateBackup, RestoreBackup, VerifyBackup},
    config::Config,
    installation, key, print_line,
};

/// The migration that made the archives of sites.
const ARCHIVES: &str = "20261117000040";

/// Writes a backup; a server may be running.
pub(crate) fn create(config: &Config, arguments: &CreateBackup) -> Result<(), Box<dyn Error>> {
    if !config.data_dir.is_dir() {
        return Err(no_data(&config.data_dir));
    }
    let data = DataDir::open(&config.data_dir)?;
    installation::check_for_backup(config, &data)?;
    // Problems of the key are reported before the work begins.
    let key = match &arguments.key {
        Some(path) if *path == arguments.file => {
            return Err("the key must be written to a separate file".into());
        }
        Some(path) if path.exists() && !arguments.force => {
            return Err(
                format!("`{}` already exists: choose another file, or use --force", path.display()).into()
            );
        }
        Some(path) => Some((path, key::text(config)?)),
        None => None,
    };
    let origin = Origin {
        launchway: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: SystemClock.now().to_rfc3339(),
    };
    let fetch = || fetch_sites(config, &data).map_err(|error| BackupError::Refused(error.to_string()));
    let manifest = backup::create(installation(config), &arguments.file, origin, arguments.force, fetch)?;
    print_line(&format!("backed up {} to {}", contents(&manifest), arguments.file.display()));
    match key {
        Some((path, text)) => {
            backup::replace_private_file(path, &text, arguments.force)?;
            print_line(&format!("the key is in {}: store it separately from the backup", path.display()));
        }
        None => print_line(
            "the backup does not contain the key, which is required to restore it: keep a copy of the key elsewhere",
        ),
    }
    Ok(())
}

/// Fetches the sites that only other servers on the same PostgreSQL database have: their archives are not copied.
pub(crate) fn fetch_sites(config: &Config, data: &DataDir) -> Result<(), Box<dyn Error>> {
    if let DatabaseUrl::Sqlite(_) = config.database {
        return Ok(());
    }
    if let SchemaStatus::Behind(steps) = installation::schema_status(config)?
        && steps.iter().any(|step| step == ARCHIVES)
    {
        return Ok(());
    }
    assembly::runtime()?.block_on(async {
        let database = Database::open(DatabaseOptions::new(config.database.clone()))?;
        let folders = assembly::release_folders(config, data, &database)?;
        let fetched = folders.fetch_missing().await;
        let missing = missing_sites(&database, &folders).await;
        let servers = database.replicas().await;
        database.close().await;
        fetched.map_err(|error| format!("not every site is on this server: {error}"))?;
        let (missing, servers) = (missing?, servers?.iter().filter(|server| server.is_alive).count());
        match missing.join(", ") {
            none if none.is_empty() => Ok(()),
            // Another server may have them, and archives what it has once a minute.
            sites if servers > 1 => Err(format!(
                "the files of these sites are not on this server, and no other one has archived them yet: {sites}. Try \
                 again in a minute, or on the server that published them"
            )
            .into()),
            sites => {
                print_line(&format!("warning: the files of these sites are lost: {sites}"));
                Ok(())
            }
        }
    })
}

/// Returns the names of the live sites whose files are neither here nor in the database.
async fn missing_sites(database: &Database, folders: &ReleaseFolders) -> Result<Vec<String>, Box<dyn Error>> {
    let mut missing = Vec::new();
    for version in database.live().await?.iter().filter(|version| version.deployment.container.is_none()) {
        let (application, mut deployment) = (&version.application, version.deployment.clone());
        let scope = Scope::of_record(application.organization_id);
        let is_there = loop {
            if folders.release(application.id, deployment.id).await?.is_some() {
                break true;
            }
            let DeploymentKind::Rollback { to } = deployment.kind else { break false };
            match database.get(scope, to).await? {
                Some(earlier) => deployment = earlier,
                None => break false,
            }
        };
        if !is_there {
            missing.push(application.blueprint.name.to_string());
        }
    }
    Ok(missing)
}

/// Reads a whole backup, and prints its contents.
pub(crate) fn verify(arguments: &VerifyBackup) -> Result<(), Box<dyn Error>> {
    let manifest = backup::verify(&arguments.file)?;
    for table in &manifest.tables {
        cli::print(&format!("{}  {} rows  {}\n", table.sha256, table.rows, table.name))?;
    }
    print_line(&format!(
        "the backup of {} by Launchway {}, from {}, is complete: {}",
        manifest.created_at,
        manifest.launchway,
        manifest.database,
        contents(&manifest)
    ));
    refuse_newer(&manifest)
}

/// Restores a backup into an empty data directory and an empty database.
pub(crate) fn restore(config: &Config, arguments: &RestoreBackup) -> Result<(), Box<dyn Error>> {
    let manifest = backup::verify(&arguments.file)?;
    refuse_newer(&manifest)?;
    let text = key_for(config, arguments, &manifest)?;
    let data = DataDir::open(&config.data_dir)?;
    let _lock = data.lock()?;
    let key = text.as_deref().map(|text| (key::NAME, text));
    let Rebuilt { containers } = backup::restore(&arguments.file, &manifest, installation(config), key)?;
    print_line(&format!("restored {}, as of {}", contents(&manifest), manifest.created_at));
    report_containers(&containers)
}

fn installation(config: &Config) -> Installation<'_> {
    Installation { data_dir: &config.data_dir, database: &config.database }
}

/// Returns the key to write into the data directory. `None` if the settings specify another path for it, or
/// if nothing was ever encrypted.
fn key_for(
    config: &Config,
    arguments: &RestoreBackup,
    manifest: &Manifest,
) -> Result<Option<String>, Box<dyn Error>> {
    let (path, is_elsewhere) = match (&arguments.key, &config.secret_key_file) {
        (Some(_), Some(_)) => {
            return Err(
                "LAUNCHWAY_SECRET_KEY_FILE is the path of the key: put the key there, and omit --key".into(),
            );
        }
        (Some(path), None) => (path, false),
        (None, Some(path)) => (path, true),
        (None, None) if manifest.key_check.is_none() => return Ok(None),
        (None, None) => {
            return Err("the key is required to restore a backup: specify its file with --key".into());
        }
    };
    let text = key::read(path)?;
    if let Some(check) = &manifest.key_check
        && !key::fits(path, &text, check)?
    {
        return Err(format!(
            "the key in `{}` is not the one that encrypted the secrets in this backup",
            path.display()
        )
        .into());
    }
    Ok((!is_elsewhere).then_some(text))
}

/// Fails for a backup with a newer schema than that of this binary.
fn refuse_newer(manifest: &Manifest) -> Result<(), Box<dyn Error>> {
    if migrations::known().contains(&manifest.schema) {
        return Ok(());
    }
    Err(format!(
        "the backup is of Launchway {} with schema version {}, which this version does not support: restore it with that version, or a newer one",
        manifest.launchway, manifest.schema
    )
    .into())
}

/// Reports the containers to redeploy: containers and images belong to the engine, and are not part of a
/// backup.
fn report_containers(containers: &[(ApplicationId, String)]) -> Result<(), Box<dyn Error>> {
    if containers.is_empty() {
        return Ok(());
    }
    print_line(
        "containers and images are not part of a backup. On the machine where they ran, these applications keep running; on \
         another machine, redeploy each of them with POST /api/v1/deploy/application/redeploy:",
    );
    containers.iter().try_for_each(|(id, name)| cli::print(&format!("{id}  {name}\n")))
}

fn contents(manifest: &Manifest) -> String {
    format!(
        "{} rows in {} tables and {} files of {} bytes",
        manifest.rows(),
        manifest.tables.len(),
        manifest.files.len(),
        manifest.file_bytes()
    )
}

pub(crate) fn no_data(path: &Path) -> Box<dyn Error> {
    let why = fs::metadata(path).map_or("it does not exist", |_| "it is not a directory");
    format!("cannot use the data directory `{}`: {why}; check LAUNCHWAY_DATA_DIR", path.display()).into()
}
