//! Administration with the files of the server, without a login.

use std::{
    error::Error,
    io::{BufRead as _, IsTerminal as _},
};

use launchway_application::auth::NewAdmin;
use launchway_domain::{auth::Password, value::InvalidValue};

use crate::{
    assembly::{self, Tables},
    cli::{CreateAdmin, ResetPassword},
    config::Config,
    print_line,
};

/// Creates the first administrator.
pub(crate) fn create(config: &Config, arguments: CreateAdmin) -> Result<(), Box<dyn Error>> {
    let admin = NewAdmin {
        email: checked("--email", arguments.email)?,
        username: checked("--username", arguments.username)?,
        organization: arguments.organization.map(|name| checked("--organization", name)).transpose()?,
        password: password()?,
    };
    let profile = assembly::offline(config, Tables::BringUpToDate, async |services| {
        services.registration.create_admin(admin).await
    })?;
    print_line(&format!("created the administrator {} of this installation", profile.user.email));
    Ok(())
}

/// Sets a user's password and ends their sessions.
pub(crate) fn reset_password(config: &Config, arguments: ResetPassword) -> Result<(), Box<dyn Error>> {
    let email = checked("--email", arguments.email)?;
    let password = password()?;
    assembly::offline(config, Tables::MustBeThere, async |services| {
        services.passwords.reset(&email, &password).await
    })?;
    print_line(&format!("changed the password of {email}, and ended all sessions of this user"));
    Ok(())
}

fn checked<T: TryFrom<String, Error = InvalidValue>>(name: &str, value: String) -> Result<T, String> {
    T::try_from(value).map_err(|refused| format!("{name} {refused}"))
}

/// Reads the password from the terminal without echo, or from a pipe. Never from the command line, which
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
