//! What an operator does with the server's own files, when nobody can log in.

use std::{
    error::Error,
    io::{BufRead as _, IsTerminal as _},
};

use launchway_application::auth::NewAdmin;
use launchway_domain::{auth::Password, value::InvalidValue};
use launchway_infrastructure::{data_dir::DataDir, database::Database};

use crate::{
    cli::{CreateAdmin, ResetPassword},
    config::Config,
    say, wiring,
};

/// Makes the first administrator.
pub(crate) fn create(config: &Config, arguments: CreateAdmin) -> Result<(), Box<dyn Error>> {
    let admin = NewAdmin {
        email: checked("--email", arguments.email)?,
        username: checked("--username", arguments.username)?,
        organization: arguments.organization.map(|name| checked("--organization", name)).transpose()?,
        password: password()?,
    };
    let data = DataDir::open(&config.data_dir)?;
    let profile = wiring::runtime()?.block_on(async {
        let wiring = wiring::Wiring::new(config, &data).await?;
        let profile = wiring.services.registration.create_admin(admin).await?;
        wiring.database.close().await;
        Ok::<_, Box<dyn Error>>(profile)
    })?;
    say(&format!("{} is the administrator of this installation now", profile.user.email));
    Ok(())
}

/// Sets a user's password and ends their sessions.
pub(crate) fn reset_password(config: &Config, arguments: ResetPassword) -> Result<(), Box<dyn Error>> {
    let email = checked("--email", arguments.email)?;
    let password = password()?;
    let data = DataDir::open(&config.data_dir)?;
    wiring::runtime()?.block_on(async {
        let wiring = wiring::Wiring::new(config, &data).await?;
        wiring.services.passwords.reset(&email, &password).await?;
        wiring.database.close().await;
        // A server that runs beside us has to notice, so that no old session works any more when
        // we say so.
        tokio::time::sleep(2 * Database::NOTICES_OTHERS_WITHIN).await;
        Ok::<_, Box<dyn Error>>(())
    })?;
    say(&format!("{email} has another password now, and no session"));
    Ok(())
}

fn checked<T: TryFrom<String, Error = InvalidValue>>(name: &str, value: String) -> Result<T, String> {
    T::try_from(value).map_err(|refused| format!("{name} {refused}"))
}

/// The password from the terminal, unseen, or from a pipe. Never from the command line, which
/// every user of the machine can read.
fn password() -> Result<Password, Box<dyn Error>> {
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password("Password: ")?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    Ok(checked("the password", text)?)
}
