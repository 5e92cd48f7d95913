//! Contract tests of the steps of extensions, on a real Docker engine, with the installations of the tests of
//! `launchway-docker`.
//!
//! Needs the packages `docker.io`, `docker-compose` and `busybox-static`, and a running engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod extensions;
#[path = "../../../docker/tests/engine/installation.rs"]
#[expect(dead_code, reason = "the tests of the engine need more of it")]
mod installation;
#[path = "../../../docker/tests/engine/recorder.rs"]
mod recorder;
