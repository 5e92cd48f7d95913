//! Static sites and the proxy's own pages, as a client sees them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compressed;
mod conditions;
mod links;
mod pages;
mod parts;
mod paths;
mod races;
mod site;
mod tags;
