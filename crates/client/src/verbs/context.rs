//! Remembered servers.

use clap::Subcommand;
use serde_json::json;

use crate::{
    contexts::Contexts,
    failure::Outcome,
    names,
    screen::{Screen, Tone},
    table::{Cell, Table},
};

#[derive(Debug, Subcommand)]
pub enum ContextVerb {
    /// List the servers that are remembered
    List,
    /// Talk to this one from now on
    Use {
        /// The name that it is remembered by
        name: String,
    },
    /// Forget one, and its token; the session itself is ended by `logout`
    Delete {
        /// The name that it is remembered by
        name: String,
    },
}

pub(crate) fn run(verb: ContextVerb, screen: &Screen) -> Outcome {
    let mut contexts = Contexts::load()?;
    match verb {
        ContextVerb::List => list(&contexts, screen),
        ContextVerb::Use { name } => {
            if !contexts.contexts.contains_key(&name) {
                return Err(names::no_context(&name, &contexts));
            }
            screen.remark(&format!("Commands go to {name} now"));
            contexts.current = Some(name);
            contexts.save()
        }
        ContextVerb::Delete { name } => {
            if contexts.contexts.remove(&name).is_none() {
                return Err(names::no_context(&name, &contexts));
            }
            if contexts.current.as_ref() == Some(&name) {
                contexts.current = None;
            }
            screen.remark(&format!("{name} is forgotten"));
            contexts.save()
        }
    }
}

fn list(contexts: &Contexts, screen: &Screen) -> Outcome {
    let is_current = |name: &String| contexts.current.as_ref() == Some(name);
    if screen.is_for_programs() {
        let all = contexts.contexts.iter().map(|(name, context)| {
            json!({"name": name, "url": context.url, "organization": context.organization,
                "is_current": is_current(name), "is_logged_in": context.token.is_some()})
        });
        return screen.json(&all.collect());
    }
    let mut table =
        Table::new(&["", "NAME", "SERVER", "LOGGED IN"], "No server is remembered: `launchway login`");
    for (name, context) in &contexts.contexts {
        let mark = if is_current(name) { Cell::toned("*", Tone::Good) } else { "".into() };
        let is_logged_in = if context.token.is_some() { "yes" } else { "no" };
        table.row([mark, name.as_str().into(), context.url.as_str().into(), is_logged_in.into()]);
    }
    screen.print(&screen.table(&table))
}
