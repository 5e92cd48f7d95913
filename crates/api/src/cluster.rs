//! The servers of the installation.

use actix_web::web::Data;

use crate::{
    Api,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{List, Reply, success},
    views::cluster::{ClusterView, NodeView},
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/cluster", "show_cluster", show_cluster)
            .summary("Show the servers of the installation")
            .cli("launchway cluster")
            .about("For a session of an administrator of the installation, and for an API token of theirs with the permission `metrics:read`. An installation on SQLite has one server, and lists none."),
        Endpoint::get("/api/v1/cluster/nodes", "list_nodes", list_nodes)
            .summary("List the machines that run the containers of applications")
            .cli("launchway nodes")
            .about("For a session of an administrator of the installation, and for an API token of theirs with the permission `metrics:read`. Without Docker Swarm there are no nodes, and the list is empty."),
    ]
}

async fn show_cluster(api: Data<Api>, caller: Caller) -> Reply<ClusterView> {
    let cluster = api.services.replica.show(&caller).await?;
    Ok(success("Servers retrieved successfully", cluster.into()))
}

async fn list_nodes(api: Data<Api>, caller: Caller) -> Reply<List<NodeView>> {
    let nodes = api.services.nodes.list(&caller).await?;
    Ok(success("Nodes retrieved successfully", nodes.into_iter().map(Into::into).collect()))
}
