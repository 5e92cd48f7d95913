//! The servers of the installation.

use actix_web::web::Data;

use crate::{
    Api,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Reply, success},
    views::cluster::ClusterView,
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/cluster", "show_cluster", show_cluster)
            .summary("Show the servers of the installation")
            .cli("launchway cluster")
            .about("For a session of an administrator of the installation, and for an API token of theirs with the permission `metrics:read`. An installation on SQLite has one server, and lists none."),
    ]
}

async fn show_cluster(api: Data<Api>, caller: Caller) -> Reply<ClusterView> {
    let cluster = api.services.replica.show(&caller).await?;
    Ok(success("Servers retrieved successfully", cluster.into()))
}
