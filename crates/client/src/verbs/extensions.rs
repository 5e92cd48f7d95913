//! Extensions and their runs.

mod executions;
pub(crate) mod run;
mod variables;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use self::variables::Variable;
use crate::{
    failure::Outcome,
    names, prompt,
    records::Pagination,
    screen::{Screen, Tone, visible},
    server::Request,
    session::Session,
    table::{Cell, Table},
};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Extensions {
    #[command(subcommand)]
    verb: Option<ExtensionsVerb>,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Args, Debug)]
struct Filter {
    /// Show only extensions with this text in their id, name, description or author
    #[arg(long)]
    search: Option<String>,
    /// Show only extensions of this category, such as Database
    #[arg(long)]
    category: Option<String>,
    /// Page number
    #[arg(long, default_value_t = 1)]
    page: u32,
}

#[derive(Debug, Subcommand)]
enum ExtensionsVerb {
    /// Show an extension and its variables
    Show {
        /// Id of the extension, such as postgres
        id: String,
        /// Print the definition instead, in the format of `fork --file`
        #[arg(long)]
        definition: bool,
    },
    /// Fork an extension for this organization, and print the id of the fork
    Fork {
        /// Id of an extension of the catalog
        id: String,
        /// Definition of the fork, or - for standard input; by default that of the extension
        #[arg(long, value_name = "FILE")]
        file: Option<String>,
    },
    /// Remove the resources of an extension in this organization, except volumes
    Uninstall(Removal),
    /// Delete a fork and its resources, except volumes
    Delete(Removal),
    /// List the runs of an extension
    Executions {
        /// Id of the extension, such as postgres
        id: String,
        /// Page number
        #[arg(long, default_value_t = 1)]
        page: u32,
    },
    /// Show the output of a run until it finishes
    Follow {
        /// Id of the run
        execution: String,
    },
    /// Cancel a run, and revert its steps
    Cancel {
        /// Id of the run
        execution: String,
    },
}

#[derive(Args, Debug)]
struct Removal {
    /// Id of the extension, such as postgres
    id: String,
    /// Also delete its volumes, and all data in them
    #[arg(long)]
    volumes: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Deserialize)]
struct Listed {
    extensions: Vec<Extension>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Extension {
    extension_id: String,
    parent_extension_id: String,
    name: String,
    description: String,
    author: String,
    category: String,
    extension_type: String,
    version: String,
    is_verified: bool,
    yaml_content: String,
    /// A JSON object as text.
    parsed_content: String,
    variables: Vec<Variable>,
}

pub(crate) fn run(extensions: Extensions, session: &Session<'_>) -> Outcome {
    match extensions.verb {
        None => list(extensions.filter, session),
        Some(ExtensionsVerb::Show { id, definition }) => show(&id, definition, session),
        Some(ExtensionsVerb::Fork { id, file }) => fork(&id, file.as_deref(), session),
        Some(ExtensionsVerb::Uninstall(removal)) => {
            let path = format!("/extensions/{}/uninstall", names::id(&removal.id)?);
            let body = json!({"volumes": removal.volumes});
            remove(&removal, session.server.post(&path).body(body), "Remove the resources of", session)
        }
        Some(ExtensionsVerb::Delete(removal)) => {
            let path = format!("/extensions/{}", names::id(&removal.id)?);
            let request = session.server.delete(&path).with("volumes", removal.volumes);
            remove(&removal, request, "Delete the fork and the resources of", session)
        }
        Some(ExtensionsVerb::Executions { id, page }) => executions::list(&id, page, session),
        Some(ExtensionsVerb::Follow { execution }) => run::follow(&execution, session),
        Some(ExtensionsVerb::Cancel { execution }) => executions::cancel(&execution, session),
    }
}

fn list(filter: Filter, session: &Session<'_>) -> Outcome {
    let data = session
        .server
        .get("/extensions")
        .with_some("search", filter.search)
        .with_some("category", filter.category)
        .with("page", filter.page)
        .with("page_size", 100)
        .send()?;
    session.screen.show(data, |listed: Listed| {
        let headings = ["ID", "NAME", "CATEGORY", "TYPE", "DESCRIPTION"];
        let mut table = Table::new(&headings, "No extensions found");
        for one in &listed.extensions {
            table.row([
                one.extension_id.as_str().into(),
                one.name.as_str().into(),
                one.category.as_str().into(),
                one.extension_type.as_str().into(),
                one.description.lines().next().unwrap_or_default().into(),
            ]);
        }
        session.screen.table(&table) + &listed.pagination.more(filter.page)
    })
}

fn show(id: &str, definition: bool, session: &Session<'_>) -> Outcome {
    let data = read(id, session)?;
    session.screen.show(data, |one: Extension| match definition {
        true => one.yaml_content,
        false => described(&one, session.screen),
    })
}

/// Returns an extension of the API.
fn read(id: &str, session: &Session<'_>) -> Outcome<Value> {
    session.server.get(&format!("/extensions/by-extension-id/{}", names::id(id)?)).send()
}

fn described(one: &Extension, screen: &Screen) -> String {
    let checked = if one.is_verified { ", verified" } else { "" };
    let source = match one.parent_extension_id.as_str() {
        "" => String::new(),
        parent => format!(", a fork of {parent}"),
    };
    let title = screen.tint(&visible(&one.name), Tone::Strong);
    let kind = format!(
        "{} ({}, {}{}{checked}{source}) by {}",
        one.extension_id,
        one.category,
        one.extension_type,
        if one.version.is_empty() { String::new() } else { format!(", {}", one.version) },
        one.author,
    );
    let mut table = Table::new(&["VARIABLE", "TYPE", "DEFAULT", "DESCRIPTION"], "No variables");
    for variable in &one.variables {
        let usual = match variable.usual() {
            Some(usual) => Cell::from(usual),
            None if variable.is_required => Cell::toned("required", Tone::Doubtful),
            None => "".into(),
        };
        table.row([
            variable.variable_name.as_str().into(),
            variable.variable_type.as_str().into(),
            usual,
            variable.description.as_str().into(),
        ]);
    }
    format!("{title}\n{}\n{}\n\n{}", visible(&kind), visible(one.description.trim()), screen.table(&table))
}

fn fork(id: &str, file: Option<&str>, session: &Session<'_>) -> Outcome {
    let yaml = file.map(prompt::file).transpose()?;
    let path = format!("/extensions/{}/fork", names::id(id)?);
    let data = session.server.post(&path).body(json!({"yaml_content": yaml})).send()?;
    session.screen.show(data, |fork: Extension| format!("{}\n", fork.extension_id))
}

fn remove(removal: &Removal, request: Request<'_>, what: &str, session: &Session<'_>) -> Outcome {
    let volumes = if removal.volumes { ", including its volumes and all data in them" } else { "" };
    let question = format!("{what} {} in this organization{volumes}?", removal.id);
    if !prompt::agreed(session.screen, &question, removal.yes)? {
        return Ok(());
    }
    let data = request.send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&data);
    }
    session.screen.remark(&format!("Removing the resources of {}", removal.id));
    Ok(())
}
