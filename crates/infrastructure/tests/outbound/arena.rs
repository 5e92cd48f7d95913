//! Helpers of the tests of messages.

use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use launchway_domain::{
    network::{AllowedEndpoint, OutboundPolicy},
    notifications::{Mail, MailSecurity, Post, SendError},
};
use launchway_infrastructure::outbound::{Outbound, OutboundOptions, Resolver, SystemResolver, Trust};

/// A resolver whose answers a test chooses, and which may change with each lookup.
#[derive(Debug, Default)]
pub(crate) struct Names {
    answers: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    /// Each name with its answers, one after the other; the last one stays.
    pub(crate) fn new(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let addresses = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let answers = names
            .iter()
            .map(|(name, answers)| ((*name).to_owned(), answers.iter().rev().map(addresses).collect()));
        Arc::new(Self { answers: Mutex::new(answers.collect()), asked: AtomicUsize::new(0) })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answers = answers.get_mut(name).ok_or_else(|| io::Error::other("no such name"))?;
        match answers.len() {
            1 => Ok(answers[0].clone()),
            _ => Ok(answers.pop().unwrap()),
        }
    }
}

/// The options of a test's sender.
pub(crate) struct Way {
    pub(crate) policy: OutboundPolicy,
    pub(crate) timeout: Duration,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) trust: Trust,
}

impl Way {
    /// Allows public addresses and these.
    pub(crate) fn to(networks: &[&str], port: u16) -> Self {
        let allow = |network: &&str| AllowedEndpoint { network: network.parse().unwrap(), port };
        Self {
            policy: OutboundPolicy::allowing(networks.iter().map(allow).collect()),
            timeout: Duration::from_secs(10),
            resolver: Arc::new(SystemResolver::default()),
            trust: Trust::only("").unwrap(),
        }
    }

    /// Allows this machine, at one port.
    pub(crate) fn here(port: u16) -> Self {
        Self::to(&["127.0.0.0/8", "::1/128"], port)
    }

    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub(crate) fn with_names(self, resolver: Arc<Names>) -> Self {
        Self { resolver, ..self }
    }

    pub(crate) fn trusting(self, pem: &str) -> Self {
        Self { trust: Trust::only(pem).unwrap(), ..self }
    }

    pub(crate) fn open(self) -> Outbound {
        let Self { policy, timeout, resolver, trust } = self;
        Outbound::new(OutboundOptions { policy, timeout, resolver, trust })
    }
}

pub(crate) fn post_to(url: impl Into<String>) -> Post {
    Post { url: url.into().try_into().unwrap(), headers: vec![], body: r#"{"text":"It is live"}"#.to_owned() }
}

pub(crate) fn mail_by(host: &str, port: u16, security: MailSecurity) -> Mail {
    Mail {
        host: host.to_owned().try_into().unwrap(),
        port,
        security,
        login: None,
        from: ("Launchway".parse().unwrap(), "launchway@example.com".parse().unwrap()),
        to: vec!["ada@example.com".parse().unwrap()],
        message_id: "msg_1".to_owned(),
        subject: "shop was deployed".to_owned(),
        text: "It is live.\n".to_owned(),
    }
}

pub(crate) fn error_of<T: std::fmt::Debug>(sent: Result<T, SendError>) -> String {
    match sent {
        Err(SendError::Unreachable(error)) => error,
        other => panic!("not unreachable, but {other:?}"),
    }
}

/// Returns the result and the time that it took.
pub(crate) async fn timed<T>(what: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let value = what.await;
    (value, started.elapsed())
}

/// Runs one test of this file's program again, in a process with additional environment variables.
pub(crate) fn run_again(test: &str, environment: &[(&str, &str)]) {
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && printed.contains("1 passed"), "{printed}");
}
