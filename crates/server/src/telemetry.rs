//! Logging to standard error.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::{Layer as _, filter::LevelFilter, fmt, layer::SubscriberExt as _};

use crate::config::{Config, LogFormat};

/// Starts logging to standard error, including panics.
pub(crate) fn start(config: &Config) {
    let lines = match config.log_format {
        LogFormat::Text => {
            fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(false).boxed()
        }
        LogFormat::Json => fmt::layer().json().with_writer(stderr).boxed(),
    };
    // The startup messages of the HTTP server are redundant; and a malformed request head is the client's
    // fault, which any client could flood the log with.
    let filter = config
        .log
        .clone()
        .with_target("actix_server", LevelFilter::WARN)
        .with_target("actix_http", LevelFilter::OFF);
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter));
    // It is set once, by `main`; a second call would be a bug without effect.
    let _ = tracing::subscriber::set_global_default(subscriber);
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        tracing::error!(place, message, "panic");
    }));
}
