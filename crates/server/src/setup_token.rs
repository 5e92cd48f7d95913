//! The setup token of a fresh installation, for a remote registration of the first administrator.
//!
//! Only operators who can read the log or the files of a server know it. Every server of the installation has the same
//! one: the database stores it, sealed with the key, until the registration deletes it.

use std::error::Error;

use launchway_domain::{
    auth::{Token, TokenKind},
    secret::{Entropy as _, SecretBox},
};
use launchway_infrastructure::{
    backup::replace_private_file, clock::SystemEntropy, data_dir::DataDir, database::Database,
};

/// The file of the token in the data directory.
const NAME: &str = "setup-token";
/// The associated data of the sealed token.
const PLACE: &str = "setup_token.sealed";

/// Returns the token of the installation, and writes it to the file of this server. Returns `None` once there is an
/// administrator, and removes the file. The file of a server that stored none in the database becomes the token.
pub(crate) async fn claim(
    database: &Database,
    data: &DataDir,
    secrets: &dyn SecretBox,
) -> Result<Option<String>, Box<dyn Error>> {
    let file = data.read_private_file(NAME)?.map(|text| text.trim().to_owned());
    let earlier = file.clone().filter(|token| !token.is_empty());
    let new = || Token::new(TokenKind::Setup, SystemEntropy.bits_256()).expose().to_owned();
    let sealed = secrets.seal(PLACE, earlier.unwrap_or_else(new).as_bytes())?;
    let Some(stored) = database.claim_setup_token(sealed).await? else {
        data.remove_private_file(NAME)?;
        return Ok(None);
    };
    let token = String::from_utf8(secrets.open(PLACE, &stored)?.expose().clone())?;
    if file.as_ref() != Some(&token) {
        replace_private_file(&data.path().join(NAME), &format!("{token}\n"), true)?;
    }
    Ok(Some(token))
}
