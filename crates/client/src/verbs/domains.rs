//! The domains of an application.

use clap::Subcommand;
use serde_json::json;

use crate::{failure::Outcome, names, prompt, session::Session};

const DOMAINS: &str = "/deploy/application/domains";
const CERTIFICATES: &str = "/deploy/application/certificates";
const HSTS: &str = "/deploy/application/hsts";

#[derive(Debug, Subcommand)]
pub enum DomainsVerb {
    /// List the domains of an application
    List {
        /// Application, by name, name@environment or id
        app: String,
    },
    /// Add a domain to an application
    Add {
        /// Application, by name, name@environment or id
        app: String,
        /// Domain, such as shop.example.com
        domain: String,
    },
    /// Remove a domain from an application
    Remove {
        /// Application, by name, name@environment or id
        app: String,
        /// Domain, such as shop.example.com
        domain: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Upload a certificate for a domain
    SetCertificate {
        /// Application, by name, name@environment or id
        app: String,
        /// Domain, such as shop.example.com
        domain: String,
        /// File with the certificate and the intermediate ones after it, as PEM
        #[arg(long, value_name = "FILE")]
        chain: String,
        /// File with the private key, unencrypted, as PEM
        #[arg(long, value_name = "FILE")]
        key: String,
    },
    /// Delete the certificate of a domain
    RemoveCertificate {
        /// Application, by name, name@environment or id
        app: String,
        /// Domain, such as shop.example.com
        domain: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Make browsers use HTTPS only for a domain
    SetHsts {
        /// Application, by name, name@environment or id
        app: String,
        /// Domain, such as shop.example.com
        domain: String,
        /// Seconds for which browsers remember it after a visit, 180 days by default; 0 makes them forget it
        #[arg(long, value_name = "SECONDS")]
        max_age: Option<u32>,
    },
    /// Remove the HSTS policy of a domain
    RemoveHsts {
        /// Application, by name, name@environment or id
        app: String,
        /// Domain, such as shop.example.com
        domain: String,
    },
}

pub(crate) fn run(verb: DomainsVerb, session: &Session<'_>) -> Outcome {
    let (changed, words) = match verb {
        DomainsVerb::List { app } => return list(&app, session),
        DomainsVerb::Add { app, domain } => {
            let application = names::application(&session.server, &app)?;
            let body = json!({"id": application.id, "domain": domain});
            let changed = session.server.post(DOMAINS).body(body).send()?;
            (changed, format!("Added {domain} to {}", application.name))
        }
        DomainsVerb::Remove { app, domain, yes } => {
            let application = names::application(&session.server, &app)?;
            let question = format!("Remove {domain} from {}?", application.name);
            if !prompt::agreed(session.screen, &question, yes)? {
                return Ok(());
            }
            let body = json!({"id": application.id, "domain": domain});
            let changed = session.server.delete(DOMAINS).body(body).send()?;
            (changed, format!("Removed {domain} from {}", application.name))
        }
        DomainsVerb::SetCertificate { app, domain, chain, key } => {
            let (certificate, private_key) = (prompt::file(&chain)?, prompt::file(&key)?);
            let application = names::application(&session.server, &app)?;
            let body = json!({
                "id": application.id,
                "domain": domain,
                "certificate": certificate,
                "private_key": private_key,
            });
            let changed = session.server.put(CERTIFICATES).body(body).send()?;
            (changed, format!("Uploaded the certificate of {domain}"))
        }
        DomainsVerb::RemoveCertificate { app, domain, yes } => {
            let application = names::application(&session.server, &app)?;
            let question = format!("Delete the certificate of {domain}?");
            if !prompt::agreed(session.screen, &question, yes)? {
                return Ok(());
            }
            let body = json!({"id": application.id, "domain": domain});
            let changed = session.server.delete(CERTIFICATES).body(body).send()?;
            (changed, format!("Deleted the certificate of {domain}"))
        }
        DomainsVerb::SetHsts { app, domain, max_age } => {
            let application = names::application(&session.server, &app)?;
            let mut body = json!({"id": application.id, "domain": domain});
            if let Some(seconds) = max_age {
                body["max_age"] = json!(seconds);
            }
            let changed = session.server.put(HSTS).body(body).send()?;
            (changed, format!("Set the HSTS policy of {domain}"))
        }
        DomainsVerb::RemoveHsts { app, domain } => {
            let application = names::application(&session.server, &app)?;
            let body = json!({"id": application.id, "domain": domain});
            let changed = session.server.delete(HSTS).body(body).send()?;
            (changed, format!("Removed the HSTS policy of {domain}"))
        }
    };
    if session.screen.is_for_programs() {
        return session.screen.json(&changed);
    }
    session.screen.remark(&words);
    Ok(())
}

fn list(app: &str, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, app)?;
    if session.screen.is_for_programs() {
        return session.screen.json(&json!(application.domains));
    }
    let lines: String = application.domains.iter().map(|domain| format!("{domain}\n")).collect();
    session.screen.print(&lines)
}
