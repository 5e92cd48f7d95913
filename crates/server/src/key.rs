//! The installation's key, and that it is the one that the database's secrets were sealed with.

use std::{error::Error, fs, sync::Arc};

use launchway_domain::secret::{Sealed, SecretBox as _};
use launchway_infrastructure::{
    clock::SystemEntropy,
    data_dir::DataDir,
    database::Database,
    secrets::{SecretKey, XChaChaBox},
};

use crate::config::Config;

const NAME: &str = "secret.key";
/// What is sealed to know the key again, and where it belongs.
const CHECK: &[u8] = b"this is the key";
const PLACE: &str = "key_check.sealed";

/// The secrets of `database`, with the key that fits them. A fresh database takes any key, and
/// gets a new one if there is none.
pub(crate) async fn fitting(
    config: &Config,
    data: &DataDir,
    database: &Database,
) -> Result<XChaChaBox, Box<dyn Error>> {
    let check = database.key_check().await?;
    let (name, text) = match &config.secret_key_file {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|error| format!("cannot read the key file `{}`: {error}", path.display()))?;
            (path.display().to_string(), text)
        }
        None => {
            let path = config.data_dir.join(NAME);
            if check.is_some() && !path.exists() {
                return Err(format!(
                    "the key file `{}` is missing: restore it from a backup, or name it by LAUNCHWAY_SECRET_KEY_FILE",
                    path.display()
                )
                .into());
            }
            (path.display().to_string(), data.private_file(NAME, || SecretKey::generate(&SystemEntropy))?)
        }
    };
    let key: SecretKey = text.parse().map_err(|error| format!("the key file `{name}` {error}"))?;
    let secrets = XChaChaBox::new(&key, Arc::new(SystemEntropy));
    if check.is_none() {
        // Of replicas that start together on a fresh database, the first one's key counts.
        database.remember_key_check(secrets.seal(PLACE, CHECK)?.0).await?;
    }
    let sealed = database.key_check().await?.map(Sealed).ok_or("the database does not remember its key")?;
    if secrets.open(PLACE, &sealed).is_err() {
        return Err(format!(
            "the key in `{name}` is not the one that this database's secrets were sealed with: restore the right one"
        )
        .into());
    }
    Ok(secrets)
}
