//! Keys for a code host: the secret that signs pushes, and the key that fetches.

use clap::Args;
use serde::Deserialize;

use crate::{failure::Outcome, names, prompt, session::Session};

#[derive(Args, Debug)]
pub struct WebhookSecret {
    /// The application: its name, name@environment or id
    app: String,
    /// Make a new one; the old one works for 24 hours more
    #[arg(long)]
    rotate: bool,
}

#[derive(Args, Debug)]
pub struct DeployKey {
    /// Make a new one; repositories that know only the old one let nobody in any more
    #[arg(long)]
    rotate: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Deserialize)]
struct Secret {
    secret: String,
}

#[derive(Deserialize)]
struct PublicKey {
    public_key: String,
}

/// Prints only the secret, so that a script can pass it on.
pub(crate) fn webhook_secret(wish: WebhookSecret, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, &wish.app)?;
    let route = "/deploy/application/webhook-secret";
    let server = &session.server;
    let request = if wish.rotate { server.post(route) } else { server.get(route) };
    let data = request.with("id", application.id).send()?;
    session.screen.remark(&format!(
        "Give this to the code host of {} with the address {}/api/v1/webhook, for pushes:",
        application.repository,
        server.url()
    ));
    session.screen.show(data, |Secret { secret }| format!("{secret}\n"))
}

/// Prints only the public key, in the form that a code host expects.
pub(crate) fn deploy_key(wish: DeployKey, session: &Session<'_>) -> Outcome {
    let route = "/organizations/deploy-key";
    let question = "Repositories that know only the old key will let nobody in. Make a new one?";
    if wish.rotate && !prompt::agreed(session.screen, question, wish.yes)? {
        return Ok(());
    }
    let server = &session.server;
    let data = if wish.rotate { server.post(route) } else { server.get(route) }.send()?;
    session.screen.remark("Give this to private repositories, as a key that may only read:");
    session.screen.show(data, |PublicKey { public_key }| format!("{public_key}\n"))
}
