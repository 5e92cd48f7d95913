//! The endpoint of the audit log.

use std::collections::BTreeMap;

use actix_web::web::Data;
use launchway_domain::audit::{Entry, Filter};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Api,
    caller::Caller,
    envelope::{Envelope, Reply, success},
    fields::SearchTerm,
    pages::{PageSizes, Pagination},
    query::Query,
    routes::Routes,
    timestamp::Moment,
};

const PAGES: PageSizes = PageSizes { default: 10, largest: 100 };

pub(crate) fn routes(routes: &mut Routes) {
    routes.get("/api/v1/audit/logs", audit_logs);
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditActivity)]
pub(crate) struct ActivityView {
    id: String,
    #[schema(example = "update")]
    action: &'static str,
    #[schema(example = "blue")]
    action_color: &'static str,
    actor: String,
    message: String,
    #[schema(example = "user")]
    resource: &'static str,
    resource_id: String,
    metadata: BTreeMap<String, String>,
    timestamp: Moment,
}

impl From<Entry> for ActivityView {
    fn from(entry: Entry) -> Self {
        let mut metadata = entry.metadata;
        if !entry.request_id.is_empty() {
            metadata.insert("request_id".to_owned(), entry.request_id);
        }
        // User names can be reused; the id identifies the user.
        metadata.extend(entry.actor_id.map(|id| ("actor_id".to_owned(), id.to_string())));
        metadata.extend(entry.address.map(|address| ("address".to_owned(), address.to_string())));
        Self {
            id: entry.id.to_string(),
            action: entry.action.as_str(),
            action_color: entry.action.color(),
            actor: entry.actor,
            message: entry.message,
            resource: entry.resource.as_str(),
            resource_id: entry.resource_id,
            metadata,
            timestamp: entry.at.into(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Activities {
    activities: Vec<ActivityView>,
    pagination: Pagination,
}

/// List the audit log of this organization, newest first
#[utoipa::path(get, path = "/api/v1/audit/logs", tag = "audit", security(("bearer" = [])),
    params(
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 10, at most 100; also `pageSize`"),
        ("search" = Option<String>, Query, description = "Text in message, actor, resource or metadata"),
        ("resource_type" = Option<String>, Query, description = "Such as `user`"),
        ("action" = Option<String>, Query, description = "`create`, `update`, `delete` or `access`"),
        ("actor" = Option<String>, Query, description = "A username, ignoring case"),
        ("from" = Option<String>, Query, description = "Earliest time, inclusive"),
        ("to" = Option<String>, Query, description = "Latest time, inclusive"),
    ),
    responses((status = 200, body = Envelope<Activities>)))]
pub(crate) async fn audit_logs(api: Data<Api>, caller: Caller, query: Query) -> Reply<Activities> {
    let mut query = query.read()?;
    let page = PAGES.take(&mut query);
    let search = query.optional::<SearchTerm>("search");
    let resource = query.optional("resource_type");
    let action = query.optional("action");
    let actor = query.optional("actor");
    let from = query.optional("from");
    let to = query.optional("to");
    query.finish_query()?;
    let filter = Filter {
        search: search?.map(Into::into),
        resource: resource?,
        action: action?,
        actor: actor?,
        from: from?,
        to: to?,
    };
    let found = api.services.audit.list(&caller, &filter, page?).await?;
    let pagination = Pagination::from(&found);
    let activities = found.items.into_iter().map(Into::into).collect();
    Ok(success("Activities retrieved successfully", Activities { activities, pagination }))
}
