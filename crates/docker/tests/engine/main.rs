//! Contract tests of the ports of builds and containers, on a real Docker engine; and tests with a fake of
//! the docker client for an engine that fails.
//!
//! Every test has an installation of its own, so that tests do not see each other, and removes everything
//! that it creates. Needs the packages `docker.io`, `docker-compose` and `busybox-static`, and a running
//! engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod addresses;
mod arguments;
mod bases;
mod builds;
mod commands;
mod compositions;
mod containers;
mod dockerfiles;
mod environments;
mod events;
mod fake_engine;
mod faults;
mod installation;
mod inventory;
mod limits;
mod links;
mod list;
mod networks;
mod plans;
mod prebuilt;
mod printed;
mod recorder;
mod registries;
mod resume;
mod statistics;
mod swarm;
mod unavailable;
