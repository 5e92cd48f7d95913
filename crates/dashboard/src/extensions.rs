//! Extensions: the catalog, a form for the variables of each, and its runs.

mod definition;
mod executions;
mod inputs;

use std::collections::BTreeMap;

use actix_web::{
    HttpResponse,
    web::{Path, ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{
    auth::{Action, Resource},
    extensions::{Category, Definition, Extension, ExtensionFilter, ExtensionKey, Validation},
};

use self::{executions::ExecutionRow, inputs::Input};
use crate::{
    context::PageContext,
    error::PageError,
    form::{Form, Submitted},
    frame::{Frame, Section, page, page_after, see_other},
    pages::{Choice, Pager, requested},
    router::PREFIX,
};

/// The number of extensions of a page.
const PAGE: i64 = 18;
/// The number of runs on the page of an extension.
const RECENT: i64 = 10;
/// The prefix of the fields of variables, so that no variable is taken for a field of the page.
const VARIABLE: &str = "variable.";

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/extensions", get().to(extensions_page))
        .route("/extensions/{key}", get().to(extension_page))
        .route("/extensions/{key}/definition", get().to(definition::definition_page))
        .route("/extensions/{key}/fork", post().to(definition::fork))
        .route("/extensions/{key}/delete", post().to(definition::delete))
        .route("/extensions/{key}/run", post().to(run))
        .route("/extensions/{key}/uninstall", post().to(uninstall));
    executions::routes(config);
}

/// Parses the key of a path. An invalid key cannot exist, so it is not found.
fn extension_key(path: &Path<String>) -> Result<ExtensionKey, Error> {
    path.parse().map_err(|_no_key| Error::NotFound("the extension"))
}

/// An extension in the catalog.
struct ExtensionCard {
    key: String,
    letter: String,
    name: String,
    about: String,
    category: &'static str,
    is_fork: bool,
}

impl From<Extension> for ExtensionCard {
    fn from(extension: Extension) -> Self {
        // The first sentence; the page of the extension has the whole description.
        let about =
            extension.description.split_once(". ").map_or(extension.description.as_str(), |(first, _)| first);
        Self {
            about: about.trim_end_matches('.').to_owned(),
            key: extension.key.to_string(),
            letter: letter(&extension),
            name: extension.name.to_string(),
            category: extension.category.as_str(),
            is_fork: extension.organization_id.is_some(),
        }
    }
}

/// Returns the letter on the tile of an extension. Its icon may be a character that no font of the visitor has.
fn letter(extension: &Extension) -> String {
    extension.name.as_str().chars().take(1).flat_map(char::to_uppercase).collect()
}

#[derive(Template)]
#[template(path = "extensions.html")]
struct ExtensionsPage {
    frame: Frame,
    cards: Vec<ExtensionCard>,
    categories: Vec<Choice>,
    category: String,
    search: String,
    pager: Pager,
    is_filtered: bool,
}

async fn extensions_page(context: PageContext) -> Result<HttpResponse, PageError> {
    let (search, category) = (context.text("search"), context.text("category"));
    let filter = ExtensionFilter {
        search: Some(search.clone()).filter(|text| !text.is_empty()),
        category: context.choice("category")?,
        kind: None,
    };
    let extensions = &context.services().extensions;
    let found = extensions.list(&context.visitor, &filter, context.page_request(PAGE)?).await?;
    page(&ExtensionsPage {
        frame: context.frame(Section::Extensions, "Extensions"),
        pager: Pager::of(&found, &[("search", &search), ("category", &category)]),
        cards: found.items.into_iter().map(ExtensionCard::from).collect(),
        categories: Category::ALL.iter().map(|each| Choice::named(each.as_str(), &category)).collect(),
        is_filtered: filter != ExtensionFilter::default(),
        category,
        search,
    })
}

#[derive(Template)]
#[template(path = "extension.html")]
struct ExtensionPage {
    frame: Frame,
    key: String,
    letter: String,
    name: String,
    description: String,
    author: String,
    category: &'static str,
    version: String,
    inputs: Vec<Input>,
    executions: Vec<ExecutionRow>,
    is_valid: bool,
    may_run: bool,
    may_uninstall: bool,
    may_fork: bool,
    /// The extension that it is a fork of; empty for an entry of the catalog.
    parent: String,
    /// It changes the machine, which only an administrator of the installation may do.
    needs_administrator: bool,
}

async fn extension_page(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    show(&context, &extension_key(&path)?, None).await
}

async fn show(
    context: &PageContext,
    key: &ExtensionKey,
    refused: Option<(&Form, &PageError)>,
) -> Result<HttpResponse, PageError> {
    let extensions = &context.services().extensions;
    let extension = extensions.get(&context.visitor, key).await?;
    let runs = extensions.executions(&context.visitor, key, requested(None, RECENT)?).await?;
    let definition = match extension.validation {
        Validation::Invalid => None,
        _ => Definition::parse(&extension.yaml).ok(),
    };
    let (form, error) = refused.unzip();
    let inputs = definition.iter().flat_map(|definition| &definition.variables);
    let acts_on_host = definition.as_ref().is_some_and(Definition::acts_on_host);
    let needs_administrator = acts_on_host && !context.visitor.administers_installation();
    let parent = extension.parent.as_ref().map(ToString::to_string).unwrap_or_default();
    page_after(
        error,
        &ExtensionPage {
            frame: context.frame(Section::Extensions, extension.name.to_string()).with_error(error),
            inputs: inputs.map(|variable| Input::new(variable, form)).collect(),
            key: extension.key.to_string(),
            letter: letter(&extension),
            name: extension.name.to_string(),
            description: extension.description,
            author: extension.author,
            category: extension.category.as_str(),
            version: extension.version,
            executions: runs.items.iter().map(|(execution, _)| ExecutionRow::from(execution)).collect(),
            is_valid: definition.is_some(),
            may_run: context.may(Resource::Extension, Action::Create) && !needs_administrator,
            may_uninstall: context.may(Resource::Extension, Action::Delete),
            may_fork: parent.is_empty() && context.may(Resource::Extension, Action::Create),
            parent,
            needs_administrator,
        },
    )
}

async fn run(submitted: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let Submitted { context, form } = submitted;
    let key = extension_key(&path)?;
    match context.services().extensions.run(&context.visitor, &key, &values(&form), None).await {
        Ok(detail) => Ok(see_other(format!("{PREFIX}/executions/{}?done=run", detail.execution.id))),
        Err(error) => show(&context, &key, Some((&form, &error.into()))).await,
    }
}

/// Returns the values of the variables. An empty field is absent, so that the default counts.
fn values(form: &Form) -> BTreeMap<String, String> {
    let fields = form.iter().filter_map(|(name, value)| Some((name.strip_prefix(VARIABLE)?, value)));
    fields
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

async fn uninstall(submitted: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let Submitted { context, form } = submitted;
    let (key, volumes) = (extension_key(&path)?, form.is_checked("volumes"));
    match context.services().extensions.uninstall(&context.visitor, &key, volumes).await {
        Ok(_) => Ok(see_other(format!("{PREFIX}/extensions/{key}?done=uninstalled"))),
        Err(error) => show(&context, &key, Some((&form, &error.into()))).await,
    }
}
