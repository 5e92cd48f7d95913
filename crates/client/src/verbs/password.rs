//! Changes the user's own password.

use serde_json::json;

use crate::{failure::Outcome, prompt, session::Session};

/// Asks for both passwords; in a pipe they are one line each, the current one first.
pub(crate) fn change(session: &Session<'_>) -> Outcome {
    let current = prompt::secret("Current password")?;
    let new = prompt::new_secret(session.screen, "New password")?;
    let body = json!({"current_password": current, "new_password": new});
    session.server.patch("/user/password").body(body).send()?;
    session.screen.remark("Changed the password, and ended your other sessions");
    Ok(())
}
