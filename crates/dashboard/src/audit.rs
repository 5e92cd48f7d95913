//! The audit log, with filters and exports.

use actix_web::{
    HttpResponse,
    http::header::CONTENT_DISPOSITION,
    web::{ServiceConfig, get},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Entry, Filter, Resource},
    page::PageRequest,
};
use serde_json::json;

use crate::{
    context::PageContext,
    error::PageError,
    format::Time,
    frame::{Frame, Section, page},
    pages::{Choice, Pager},
};

/// The number of entries of a page.
const PAGE: i64 = 25;
/// The number of entries of an export that are read at once.
const BATCH: i64 = 500;
/// The largest number of entries of an export.
const MOST_EXPORTED: usize = 10_000;

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/audit", get().to(audit_page))
        .route("/audit.csv", get().to(export_csv))
        .route("/audit.json", get().to(export_json));
}

struct EntryRow {
    action: &'static str,
    kind: &'static str,
    message: String,
    resource: &'static str,
    at: Time,
    address: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    rows: Vec<EntryRow>,
    pager: Pager,
    search: String,
    actor: String,
    actions: Vec<Choice>,
    resources: Vec<Choice>,
    query: String,
    is_filtered: bool,
}

/// The filter of a request, and its parameters as they came.
struct Wanted {
    filter: Filter,
    parameters: Vec<(&'static str, String)>,
}

impl Wanted {
    fn of(context: &PageContext) -> Result<Self, Error> {
        let text = |name: &'static str| (name, context.text(name));
        let parameters: Vec<_> = ["search", "actor", "action", "resource"].map(text).into();
        let given = |name: &str| {
            let found = parameters.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let filter = Filter {
            search: given("search"),
            actor: given("actor"),
            action: context.choice("action")?,
            resource: context.choice("resource")?,
            ..Filter::default()
        };
        Ok(Self { filter, parameters })
    }

    fn text(&self, name: &str) -> &str {
        self.parameters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

async fn audit_page(context: PageContext) -> Result<HttpResponse, PageError> {
    let wanted = Wanted::of(&context)?;
    let found =
        context.services().audit.list(&context.visitor, &wanted.filter, context.page_request(PAGE)?).await?;
    let pairs: Vec<_> = wanted.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let pager = Pager::of(&found, &pairs);
    page(&AuditPage {
        frame: context.frame(Section::Audit, "Audit log"),
        rows: found.items.into_iter().map(row).collect(),
        search: wanted.text("search").to_owned(),
        actor: wanted.text("actor").to_owned(),
        actions: Action::ALL.iter().map(|each| Choice::named(each.as_str(), wanted.text("action"))).collect(),
        resources: Resource::ALL
            .iter()
            .map(|each| Choice::named(each.as_str(), wanted.text("resource")))
            .collect(),
        query: pager.query.clone(),
        is_filtered: wanted.filter != Filter::default(),
        pager,
    })
}

fn row(entry: Entry) -> EntryRow {
    EntryRow {
        action: entry.action.as_str(),
        kind: match entry.action.color() {
            "green" => "good",
            "red" => "bad",
            "blue" => "accent",
            _ => "off",
        },
        message: entry.message,
        resource: entry.resource.as_str(),
        at: Time(entry.at),
        address: entry.address.map(|address| address.to_string()).unwrap_or_default(),
    }
}

/// Returns the entries of an export, newest first.
async fn entries(context: &PageContext, wanted: &Wanted) -> Result<Vec<Entry>, Error> {
    let mut all = Vec::new();
    for number in 1.. {
        let request = PageRequest::new(number, BATCH, BATCH);
        let request = request.map_err(|invalid| Error::Invalid(invalid.to_string()))?;
        let found = context.services().audit.list(&context.visitor, &wanted.filter, request).await?;
        let is_last = !found.has_next();
        all.extend(found.items);
        if is_last || all.len() >= MOST_EXPORTED {
            break;
        }
    }
    all.truncate(MOST_EXPORTED);
    Ok(all)
}

async fn export_csv(context: PageContext) -> Result<HttpResponse, PageError> {
    let mut text = String::from("time,actor,action,resource,resource_id,message,address,request_id\r\n");
    for entry in entries(&context, &Wanted::of(&context)?).await? {
        let address = entry.address.map(|address| address.to_string()).unwrap_or_default();
        let cells = [
            Time(entry.at).machine(),
            entry.actor,
            entry.action.as_str().to_owned(),
            entry.resource.as_str().to_owned(),
            entry.resource_id,
            entry.message,
            address,
            entry.request_id,
        ];
        text.push_str(&cells.map(|each| cell(&each)).join(","));
        text.push_str("\r\n");
    }
    Ok(HttpResponse::Ok()
        .content_type("text/csv; charset=utf-8")
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"audit.csv\""))
        .body(text))
}

/// Returns a cell of a CSV file. A text that a spreadsheet would run as a formula begins with a quote.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

async fn export_json(context: PageContext) -> Result<HttpResponse, PageError> {
    let entries = entries(&context, &Wanted::of(&context)?).await?;
    let entries = entries.into_iter().map(|entry| {
        json!({
            "id": entry.id.to_string(),
            "timestamp": Time(entry.at).machine(),
            "actor": entry.actor,
            "action": entry.action.as_str(),
            "resource": entry.resource.as_str(),
            "resource_id": entry.resource_id,
            "message": entry.message,
            "metadata": entry.metadata,
            "address": entry.address.map(|address| address.to_string()),
            "request_id": entry.request_id,
        })
    });
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"audit.json\""))
        .json(entries.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn cells_are_quoted_and_are_no_formulas() {
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("@sum(a,b)"), "\"'@sum(a,b)\"");
    }
}
