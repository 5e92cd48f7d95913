//! The definition of an extension, and forks of it.

use actix_web::{HttpResponse, web::Path};
use askama::Template;
use launchway_domain::{
    auth::{Action, Resource},
    extensions::{Definition, ExtensionKey},
};

use super::{extension_key, show};
use crate::{
    context::PageContext,
    error::PageError,
    form::Submitted,
    frame::{Frame, Section, page_after, see_other},
    router::PREFIX,
};

#[derive(Template)]
#[template(path = "definition.html")]
struct DefinitionPage {
    frame: Frame,
    key: String,
    name: String,
    /// The extension that it is a fork of; empty for an entry of the catalog.
    parent: String,
    yaml: String,
    /// The number of lines of the field.
    rows: usize,
    problem: Option<String>,
    may_fork: bool,
}

pub(super) async fn definition_page(
    context: PageContext,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    show_definition(&context, &extension_key(&path)?, None).await
}

/// Shows the definition, or the text of a form that was refused.
async fn show_definition(
    context: &PageContext,
    key: &ExtensionKey,
    refused: Option<(String, &PageError)>,
) -> Result<HttpResponse, PageError> {
    let extension = context.services().extensions.get(&context.visitor, key).await?;
    let (typed, error) = refused.unzip();
    let parent = extension.parent.map(|parent| parent.to_string()).unwrap_or_default();
    let title = format!("Definition of {}", extension.name);
    let problem = Definition::parse(&extension.yaml).err().map(|invalid| invalid.to_string());
    let yaml = typed.unwrap_or(extension.yaml);
    page_after(
        error,
        &DefinitionPage {
            frame: context.frame(Section::Extensions, title).with_error(error),
            key: extension.key.to_string(),
            name: extension.name.to_string(),
            may_fork: parent.is_empty() && context.may(Resource::Extension, Action::Create),
            parent,
            rows: yaml.lines().count().clamp(12, 40),
            yaml,
            problem,
        },
    )
}

pub(super) async fn fork(submitted: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let Submitted { context, form } = submitted;
    let (key, extensions) = (extension_key(&path)?, &context.services().extensions);
    // Browsers end the lines of a form with two characters.
    let typed = form.text("definition").replace("\r\n", "\n");
    let source = extensions.get(&context.visitor, &key).await?;
    // An unchanged definition is copied, so that the fork has a name of its own.
    let yaml = Some(typed.clone()).filter(|typed| *typed != source.yaml);
    match extensions.fork(&context.visitor, &key, yaml, None).await {
        Ok(fork) => Ok(see_other(format!("{PREFIX}/extensions/{}?done=forked", fork.key))),
        Err(error) => show_definition(&context, &key, Some((typed, &error.into()))).await,
    }
}

pub(super) async fn delete(submitted: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let Submitted { context, form } = submitted;
    let (key, volumes) = (extension_key(&path)?, form.is_checked("volumes"));
    match context.services().extensions.delete(&context.visitor, &key, volumes).await {
        Ok(_) => Ok(see_other(format!("{PREFIX}/extensions?done=fork-deleted"))),
        Err(error) => show(&context, &key, Some((&form, &error.into()))).await,
    }
}
