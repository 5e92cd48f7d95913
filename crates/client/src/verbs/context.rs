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
    /// List contexts
    List,
    /// Select the default context
    Use {
        /// Name of the context
        name: String,
    },
    /// Delete a context and its token; use `logout` to end the session on the server
    Delete {
        /// Name of the context
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
            screen.remark(&format!("Switched to context {name}"));
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
            screen.remark(&format!("Deleted context {name}"));
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
        Table::new(&["", "NAME", "SERVER", "LOGGED IN"], "No contexts. `launchway login` creates one");
    for (name, context) in &contexts.contexts {
        let mark = if is_current(name) { Cell::toned("*", Tone::Good) } else { "".into() };
        let is_logged_in = if context.token.is_some() { "yes" } else { "no" };
        table.row([mark, name.as_str().into(), context.url.as_str().into(), is_logged_in.into()]);
    }
    screen.print(&screen.table(&table))
}
