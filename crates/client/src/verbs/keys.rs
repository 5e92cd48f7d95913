//! Keys for a code host: the secret that signs pushes, and the key that fetches.

use clap::Args;
use serde::Deserialize;

use crate::{failure::Outcome, names, prompt, session::Session};

#[derive(Args, Debug)]
pub struct WebhookSecret {
    /// Application, by name, name@environment or id
    app: String,
    /// Create a new secret; the old one stays valid for 24 hours
    #[arg(long)]
    rotate: bool,
}

#[derive(Args, Debug)]
pub struct DeployKey {
    /// Create a new key; the old one stops working
    #[arg(long)]
    rotate: bool,
    /// Do not ask for confirmation
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
pub(crate) fn webhook_secret(arguments: WebhookSecret, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, &arguments.app)?;
    let route = "/deploy/application/webhook-secret";
    let server = &session.server;
    let request = if arguments.rotate { server.post(route) } else { server.get(route) };
    let data = request.with("id", application.id).send()?;
    session.screen.remark(&format!(
        "Add a webhook for pushes to {} with the URL {}/api/v1/webhook and this secret:",
        application.repository,
        server.url()
    ));
    session.screen.show(data, |Secret { secret }| format!("{secret}\n"))
}

/// Prints only the public key, in the form that a code host expects.
pub(crate) fn deploy_key(arguments: DeployKey, session: &Session<'_>) -> Outcome {
    let route = "/organizations/deploy-key";
    let question = "Repositories with only the old key can no longer be fetched. Create a new key?";
    if arguments.rotate && !prompt::agreed(session.screen, question, arguments.yes)? {
        return Ok(());
    }
    let server = &session.server;
    let data = if arguments.rotate { server.post(route) } else { server.get(route) }.send()?;
    session.screen.remark("Add this as a read-only deploy key to private repositories:");
    session.screen.show(data, |PublicKey { public_key }| format!("{public_key}\n"))
}
