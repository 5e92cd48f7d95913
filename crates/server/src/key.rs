//! The encryption key of the installation, and the check that it matches the secrets of the database.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use launchway_domain::secret::{Sealed, SecretBox as _};
use launchway_infrastructure::{
    backup::replace_private_file,
    clock::SystemEntropy,
    data_dir::DataDir,
    database::{
        Database, SchemaStatus,
        tables::{SEALED, Tables, TablesError},
    },
    secrets::{SecretKey, SecretKeys, XChaChaBox},
};

use crate::{
    assembly,
    backup::no_data,
    config::Config,
    installation::{self, Checked},
    print_line,
};

/// The key file in the data directory.
pub(crate) const NAME: &str = "secret.key";
/// The plaintext that is encrypted to recognise the key, and its associated data.
const CHECK: &[u8] = b"this is the key";
const PLACE: &str = "key_check.sealed";

/// Returns the secret box of `database`, with the matching key. A fresh database accepts any key, and gets
/// a new one if there is none.
pub(crate) async fn fitting(
    config: &Config,
    data: &DataDir,
    database: &Database,
) -> Result<XChaChaBox, Box<dyn Error>> {
    let check = database.key_check().await?;
    let path = path(config);
    if config.secret_key_file.is_none() {
        if check.is_some() && !path.exists() {
            return Err(missing(&path));
        }
        data.private_file(NAME, || SecretKey::generate(&SystemEntropy))?;
    }
    let keys = parsed(&path, &read(&path)?)?;
    if keys.has_older() {
        tracing::warn!("key rotation is incomplete: `launchway key rotate` completes it");
    }
    let secrets = XChaChaBox::new(&keys, Arc::new(SystemEntropy));
    if check.is_none() {
        // If several replicas start on a fresh database, the key of the first one counts.
        database.remember_key_check(secrets.seal(PLACE, CHECK)?.0).await?;
    }
    let sealed = database.key_check().await?.ok_or("the database has no record of its key")?;
    if opens(&secrets, &sealed) { Ok(secrets) } else { Err(another(&path)) }
}

/// Fails if the key is missing, or does not decrypt the check text of the database.
pub(crate) fn check(config: &Config, sealed: &str) -> Result<(), Box<dyn Error>> {
    let path = path(config);
    if fits(&path, &text(config)?, sealed)? { Ok(()) } else { Err(another(&path)) }
}

/// Returns the path of the key file.
fn path(config: &Config) -> PathBuf {
    config.secret_key_file.clone().unwrap_or_else(|| config.data_dir.join(NAME))
}

/// Returns the text of the installation's key file.
pub(crate) fn text(config: &Config) -> Result<String, Box<dyn Error>> {
    let path = path(config);
    if config.secret_key_file.is_none() && !path.exists() {
        return Err(missing(&path));
    }
    read(&path)
}

/// Reads the text of a key file.
pub(crate) fn read(path: &Path) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(path);
    text.map_err(|error| format!("cannot read the key file `{}`: {error}", path.display()).into())
}

/// Returns whether the keys in a file decrypt the check text.
pub(crate) fn fits(path: &Path, text: &str, check: &str) -> Result<bool, Box<dyn Error>> {
    Ok(opens(&XChaChaBox::new(&parsed(path, text)?, Arc::new(SystemEntropy)), check))
}

fn opens(secrets: &XChaChaBox, check: &str) -> bool {
    secrets.open(PLACE, &Sealed(check.to_owned())).is_ok()
}

fn parsed(path: &Path, text: &str) -> Result<SecretKeys, Box<dyn Error>> {
    text.parse().map_err(|error| format!("the key file `{}` {error}", path.display()).into())
}

fn missing(path: &Path) -> Box<dyn Error> {
    format!(
        "the key file `{}` is missing: restore it from a backup, or set LAUNCHWAY_SECRET_KEY_FILE to its path",
        path.display()
    )
    .into()
}

fn another(path: &Path) -> Box<dyn Error> {
    format!(
        "the key in `{}` is not the one that encrypted the secrets of this database: restore the right one",
        path.display()
    )
    .into()
}

/// Encrypts every secret with a new key.
///
/// The key file decrypts everything, whenever this is interrupted: it has both keys from before the first
/// secret is encrypted again until after the last one is. Running it again completes it.
pub(crate) fn rotate(config: &Config) -> Result<(), Box<dyn Error>> {
    if !config.data_dir.is_dir() {
        return Err(no_data(&config.data_dir));
    }
    let data = DataDir::open(&config.data_dir)?;
    let _lock = data.lock()?;
    let _checked = Checked::existing(config, &data)?;
    refuse_other_tables(config)?;
    // Not the symlink, but its target.
    let place = path(config);
    let place = place.canonicalize().unwrap_or(place);
    let before = parsed(&place, &text(config)?)?;
    let check = Tables::snapshot(&config.database)?.key_check()?;
    if !check.is_some_and(|check| opens(&XChaChaBox::new(&before, Arc::new(SystemEntropy)), &check)) {
        return Err(another(&place));
    }
    let both = if before.has_older() { before } else { before.with_new_key(&SystemEntropy) };
    replace_private_file(&place, &both.to_text(), true)?;
    let new = both.only_current();
    let values = seal_anew(config, &both, &new)?;
    count_sealed_by(config, &new)?;
    replace_private_file(&place, &new.to_text(), true)?;
    print_line(&format!(
        "encrypted {values} secrets with a new key, which is in `{}`: keep a copy of it elsewhere. Older backups need \
         the old key",
        place.display()
    ));
    Ok(())
}

/// Fails for another schema: columns that this binary does not know could not be encrypted again.
fn refuse_other_tables(config: &Config) -> Result<(), Box<dyn Error>> {
    match installation::schema_status(config)? {
        SchemaStatus::UpToDate => Ok(()),
        SchemaStatus::Behind(_) => {
            Err("the database is not up to date: run `launchway migrate` first".into())
        }
        SchemaStatus::Ahead(unknown) => Err(assembly::newer(&unknown)),
    }
}

/// Decrypts everything with `both` and encrypts it with `new`, in one transaction.
fn seal_anew(config: &Config, both: &SecretKeys, new: &SecretKeys) -> Result<usize, Box<dyn Error>> {
    let [both, new] = [both, new].map(|keys| XChaChaBox::new(keys, Arc::new(SystemEntropy)));
    let mut tables = Tables::to_change(&config.database)?;
    let mut values = 0;
    for column in &SEALED {
        let (found, _) = tables.change_sealed(column, |place, sealed| {
            let sealed = Sealed(sealed.to_owned());
            if new.open(place, &sealed).is_ok() {
                return Ok(None);
            }
            let plain = both.open(place, &sealed).map_err(|error| TablesError::Taker(error.into()))?;
            let sealed = new.seal(place, plain.expose()).map_err(|error| TablesError::Taker(error.into()))?;
            Ok(Some(sealed.0))
        })?;
        values += found;
    }
    tables.keep()?;
    Ok(values)
}

/// Fails if a secret cannot be decrypted with `new` alone: then the old key must be kept.
fn count_sealed_by(config: &Config, new: &SecretKeys) -> Result<(), Box<dyn Error>> {
    let new = XChaChaBox::new(new, Arc::new(SystemEntropy));
    let mut tables = Tables::snapshot(&config.database)?;
    for column in &SEALED {
        tables.change_sealed(column, |place, sealed| match new.open(place, &Sealed(sealed.to_owned())) {
            Ok(_) => Ok(None),
            Err(_) => Err(TablesError::Refused(format!(
                "a secret in `{}.{}` was encrypted with the old key meanwhile: stop every server, and run the command again",
                column.table, column.column
            ))),
        })?;
    }
    Ok(())
}
