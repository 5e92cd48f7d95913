//! Tests that need the Docker engine: `cargo xtask test --quick` leaves them out.

mod database_move;
pub(crate) mod deployments;
pub(crate) mod front;
mod injection;
pub(crate) mod installation;
mod swarm;
