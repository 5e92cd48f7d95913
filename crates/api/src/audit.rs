//! The endpoint of the audit log.

use std::collections::BTreeMap;

use actix_web::web::Data;
use launchway_domain::{
    audit::{self, Entry, Filter},
    auth::{Action, Permission, Resource},
    clock::Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Api,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Reply, success},
    fields::SearchTerm,
    input::input,
    pages::{Paged, Pagination},
    query::Query,
    timestamp::Moment,
};

const READ: Permission = Permission::new(Resource::Audit, Action::Read);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/audit/logs", "audit_logs", audit_logs)
            .summary("List the audit log of this organization, newest first")
            .cli("launchway audit")
            .requires(READ),
    ]
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

input! {
    struct ListActivities {
        page: Paged<10, 100>,
        /// Text in message, actor, resource or metadata
        search: Option<SearchTerm>,
        /// Only those about this type of resource
        resource_type: Option<audit::Resource>,
        /// Only those with this action
        action: Option<audit::Action>,
        /// A username, ignoring case
        actor: Option<String>,
        /// Earliest time, inclusive
        from: Option<Timestamp>,
        /// Latest time, inclusive
        to: Option<Timestamp>,
    }
}

async fn audit_logs(api: Data<Api>, caller: Caller, query: Query<ListActivities>) -> Reply<Activities> {
    let ListActivities { page, search, resource_type, action, actor, from, to } = query.read()?;
    let search = search.map(Into::into);
    let filter = Filter { search, resource: resource_type, action, actor, from, to };
    let found = api.services.audit.list(&caller, &filter, page.0).await?;
    let pagination = Pagination::from(&found);
    let activities = found.items.into_iter().map(Into::into).collect();
    Ok(success("Activities retrieved successfully", Activities { activities, pagination }))
}
