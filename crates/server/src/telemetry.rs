//! Log lines, on standard error.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::{Layer as _, filter::LevelFilter, fmt, layer::SubscriberExt as _};

use crate::config::{Config, LogFormat};

/// Sends log lines to standard error from now on, those of panics included.
pub(crate) fn start(config: &Config) {
    let lines = match config.log_format {
        LogFormat::Text => {
            fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(false).boxed()
        }
        LogFormat::Json => fmt::layer().json().with_writer(stderr).boxed(),
    };
    // What the HTTP server says of itself at start, this server says better; and a request head
    // that cannot be read is its sender's fault, which anyone can make as often as they like.
    let filter = config
        .log
        .clone()
        .with_target("actix_server", LevelFilter::WARN)
        .with_target("actix_http", LevelFilter::OFF);
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter));
    // It is set once, by `main`; a second one would be a mistake that changes nothing.
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
