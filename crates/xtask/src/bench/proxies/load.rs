//! The loads.

use anyhow::Result;

use super::Subject;
use crate::bench::wrk::{self, Target};

/// Few, many, and very many connections.
const CONNECTIONS: [u32; 3] = [16, 256, 2_000];

/// The use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Kept,
    New,
    TlsKept,
    TlsNew,
}

pub(super) const KINDS: [Kind; 4] = [Kind::Kept, Kind::New, Kind::TlsKept, Kind::TlsNew];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::New => "new",
            Self::TlsKept => "TLS, kept",
            Self::TlsNew => "TLS, new",
        }
    }

    fn is_tls(self) -> bool {
        matches!(self, Self::TlsKept | Self::TlsNew)
    }

    fn is_new(self) -> bool {
        matches!(self, Self::New | Self::TlsNew)
    }
}

/// One load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) kind: Kind,
    pub(super) connections: u32,
    body: Body,
    pub(super) is_site: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Small,
    Medium,
    Large,
}

const fn usual(kind: Kind, connections: u32) -> Load {
    Load { kind, connections, body: Body::Small, is_site: false }
}

const fn larger(kind: Kind, body: Body) -> Load {
    Load { kind, connections: CONNECTIONS[0], body, is_site: false }
}

const fn site(body: Body) -> Load {
    Load { kind: Kind::Kept, connections: CONNECTIONS[0], body, is_site: true }
}

pub(super) const LOADS: &[Load] = &[
    usual(Kind::Kept, CONNECTIONS[0]),
    usual(Kind::Kept, CONNECTIONS[1]),
    usual(Kind::Kept, CONNECTIONS[2]),
    usual(Kind::New, CONNECTIONS[0]),
    usual(Kind::New, CONNECTIONS[1]),
    usual(Kind::New, CONNECTIONS[2]),
    usual(Kind::TlsKept, CONNECTIONS[0]),
    usual(Kind::TlsKept, CONNECTIONS[1]),
    usual(Kind::TlsKept, CONNECTIONS[2]),
    usual(Kind::TlsNew, CONNECTIONS[0]),
    usual(Kind::TlsNew, CONNECTIONS[1]),
    usual(Kind::TlsNew, CONNECTIONS[2]),
    larger(Kind::Kept, Body::Medium),
    larger(Kind::Kept, Body::Large),
    larger(Kind::TlsKept, Body::Medium),
    larger(Kind::TlsKept, Body::Large),
    site(Body::Small),
    site(Body::Medium),
    site(Body::Large),
];

impl Body {
    fn name(self) -> &'static str {
        match self {
            Self::Small => "1 KiB",
            Self::Medium => "64 KiB",
            Self::Large => "10 MiB",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Small => 1_024,
            Self::Medium => 64 * 1_024,
            Self::Large => 10 * 1_024 * 1_024,
        }
    }
}

/// Returns the names and the sizes of the files of the site. The server behind the proxies answers each name with as many
/// bytes.
pub(super) fn files() -> [(String, usize); 3] {
    [Body::Small, Body::Medium, Body::Large].map(|body| (body.bytes().to_string(), body.bytes()))
}

impl Load {
    /// Returns whether only its kind and its number of connections tell it from others.
    pub(super) fn is_usual(&self) -> bool {
        self.body == Body::Small && !self.is_site
    }

    pub(super) fn name(&self) -> String {
        let mut name = format!("{} connections, {}", self.connections, self.kind.name());
        if self.is_site {
            name = format!("site, {name}");
        }
        if !self.is_usual() {
            name = format!("{name}, {}", self.body.name());
        }
        name
    }

    /// Returns the length of a run: before the first answer, all connections are opened.
    fn seconds(&self) -> u32 {
        match self.connections {
            2_000.. => 2,
            _ => 1,
        }
    }

    pub(super) fn run(&self, subject: &Subject) -> Result<wrk::Load> {
        self.run_for(subject, self.seconds())
    }

    /// Opens connections and fills caches.
    pub(super) fn warm_up(&self, subject: &Subject) -> Result<()> {
        self.run_for(subject, 1).map(drop)
    }

    fn run_for(&self, subject: &Subject, seconds: u32) -> Result<wrk::Load> {
        let host = if self.is_site { "Host: site.example.com" } else { "Host: bench.example.com" };
        let path = self.body.bytes();
        let mut headers = Vec::new();
        let url = if self.kind.is_tls() {
            // The name is that of the certificate, and is sent as SNI.
            format!("https://localhost:{}/{path}", subject.tls_port)
        } else {
            headers.push(host);
            format!("http://127.0.0.1:{}/{path}", subject.port())
        };
        if self.kind.is_new() {
            headers.push("Connection: close");
        }
        wrk::load_at(&Target { pid: subject.pid(), url, headers }, self.connections, seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = LOADS.iter().map(Load::name).collect();
        assert_eq!(names.len(), LOADS.len());
        assert!(
            names.contains("site, 16 connections, kept, 1 KiB") && names.contains("2000 connections, new")
        );
    }
}
