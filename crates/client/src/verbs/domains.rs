//! The domains of an application.

use clap::Subcommand;
use serde_json::json;

use crate::{failure::Outcome, names, prompt, session::Session};

#[derive(Debug, Subcommand)]
pub enum DomainsVerb {
    /// List the names that an application is reached by
    List {
        /// The application: its name, name@environment or id
        app: String,
    },
    /// Lead a name to an application, from now on
    Add {
        /// The application: its name, name@environment or id
        app: String,
        /// The name, such as shop.example.com
        domain: String,
    },
    /// Lead a name there no more
    Remove {
        /// The application: its name, name@environment or id
        app: String,
        /// The name, such as shop.example.com
        domain: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

pub(crate) fn run(verb: DomainsVerb, session: &Session<'_>) -> Outcome {
    let route = "/deploy/application/domains";
    let (changed, words) = match verb {
        DomainsVerb::List { app } => return list(&app, session),
        DomainsVerb::Add { app, domain } => {
            let application = names::application(&session.server, &app)?;
            let body = json!({"id": application.id, "domain": domain});
            let changed = session.server.post(route).body(body).send()?;
            (changed, format!("{domain} leads to {}", application.name))
        }
        DomainsVerb::Remove { app, domain, yes } => {
            let application = names::application(&session.server, &app)?;
            let question = format!("Lead {domain} to {} no more?", application.name);
            if !prompt::agreed(session.screen, &question, yes)? {
                return Ok(());
            }
            let body = json!({"id": application.id, "domain": domain});
            let changed = session.server.delete(route).body(body).send()?;
            (changed, format!("{domain} leads to {} no more", application.name))
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
