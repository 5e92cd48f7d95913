//! Tests of what only an installation on PostgreSQL has: `cargo xtask test --quick` leaves them out.

mod availability;
mod replicas;
