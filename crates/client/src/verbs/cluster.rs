//! The servers of the installation.

use serde::Deserialize;

use crate::{
    failure::Outcome,
    screen::Tone,
    session::Session,
    table::{Cell, Table},
    when::ago,
};

#[derive(Deserialize)]
struct Cluster {
    replica_id: Option<String>,
    clock_offset_ms: i64,
    replicas: Vec<Replica>,
}

#[derive(Deserialize)]
struct Replica {
    id: String,
    hostname: String,
    address: String,
    version: String,
    is_alive: bool,
    is_leader: bool,
    routes_behind: i64,
    seen_at: String,
}

impl Replica {
    fn state(&self) -> Cell {
        match (self.is_alive, self.is_leader) {
            (true, true) => Cell::toned("leader", Tone::Good),
            (true, false) => Cell::toned("alive", Tone::Good),
            (false, _) => Cell::toned("dead", Tone::Bad),
        }
    }
}

pub(crate) fn show(session: &Session<'_>) -> Outcome {
    let data = session.server.get("/cluster").send()?;
    session.screen.show(data, |cluster: Cluster| {
        let columns = ["STATE", "HOST", "ADDRESS", "VERSION", "SEEN", "ROUTES BEHIND", "ID"];
        let mut table = Table::new(&columns, "One server, on SQLite");
        for one in &cluster.replicas {
            let is_own = cluster.replica_id.as_ref() == Some(&one.id);
            let host = if is_own { format!("{} (this one)", one.hostname) } else { one.hostname.clone() };
            table.row([
                one.state(),
                host.as_str().into(),
                one.address.as_str().into(),
                one.version.as_str().into(),
                ago(&one.seen_at).as_str().into(),
                one.routes_behind.to_string().as_str().into(),
                one.id.as_str().into(),
            ]);
        }
        let offset = cluster.clock_offset_ms;
        let clock = if offset.abs() < 1000 {
            String::new()
        } else {
            format!("The clock of this server and that of the database differ by {} ms\n", offset.abs())
        };
        session.screen.table(&table) + &clock
    })
}
