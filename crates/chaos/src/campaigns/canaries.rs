//! Secrets that are recognised wherever they appear.

mod command_lines;
mod net;
mod search;
mod setup;

use std::fs;

use launchway_testkit::docker::docker;

use self::{
    command_lines::Watch,
    net::Net,
    search::Search,
    setup::{BUILD_VARIABLE, Installation},
};
use crate::{cluster::Cluster, options::Options, section::Section};

const METHOD: &str = "\
Every secret of an installation is a unique value: passwords, sessions, tokens, the second factor, build and \
environment variables, a token in the address of a repository, the secrets of webhooks, the addresses of receivers, \
the password of a mail server, and the variable of an extension. The campaign uses all of them. Applications that \
print their variables are built, deployed, fail, and receive pushes, from a code host that requires the token. \
Extensions run, messages go to real receivers and to one that does not answer, and requests fail. Meanwhile the \
command lines of all processes are read every few milliseconds.\n\n\
Then everything is searched for the secrets, also in hexadecimal and base64: the files of the database (on PostgreSQL \
also its tables, row by row), the data directory, the server log at its most verbose level, every answer of every \
operation that reads, messages and mails as received, and what the engine reports about images and containers. Places \
where a secret has to be are left out: the variables of an application for members, an administrator's own \
configuration, and the environment of a container. As a control, one value is planted in each place that is searched. \
The long form runs on both databases and adds a compose file.";

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Secrets in the wrong place", METHOD);
    search(&mut section, options, None);
    if options.is_long {
        search(&mut section, options, Some(Cluster::start()));
    }
    section
}

fn search(section: &mut Section, options: &Options, cluster: Option<Cluster>) {
    let database = if cluster.is_some() { "PostgreSQL" } else { "SQLite" };
    let watch = Watch::begin();
    let mut installation = Installation::populated(options, cluster.as_ref().map(Cluster::url));
    let seen = watch.end();
    let net = Net::of(installation.canaries.clone());
    let mut search = Search::with(&net);
    for line in &seen.lines {
        search.look("command lines", &String::from_utf8_lossy(line).replace('\0', " "), line);
    }
    search.answers(&installation);
    search.messages(&installation);
    search.engine(&installation);
    let images = installation.harness.engine().images();
    let histories = images.iter().map(|image| docker(&["history", "--no-trunc", image]));
    let kept = histories.filter(|message| net.caught(message.as_bytes()).contains(BUILD_VARIABLE)).count();
    // Once while the write-ahead log exists, and once after its checkpoint.
    search.files("data folder", &installation.harness.data());
    installation.harness.server.terminate();
    search.files("data folder", &installation.harness.data());
    let log = fs::read(&installation.harness.launch.log).unwrap();
    search.look("log of the server", "server.log", &log);
    if let Some(cluster) = &cluster {
        for (table, rows) in cluster.tables() {
            search.look("tables", &table, rows.as_bytes());
        }
        search.files("files of PostgreSQL", cluster.folder());
    }
    section.note(
        &format!("{database}: secrets / forms that were searched for"),
        format_args!("{} / {}", installation.canaries.len() - 1, net.forms()),
    );
    section.note(&format!("{database}: looks at the command lines of all processes"), seen.looks);
    section.note(
        &format!("{database}: images that keep a build variable in their history, as documented"),
        kept,
    );
    for (place, there) in search.places() {
        for (thing, what) in &there.found {
            eprintln!("  FOUND the {what} in the {place}: {thing}");
        }
        let searched =
            format!("{database}, {place}: secrets in {} things, {} KiB", there.things, there.bytes / 1024);
        section.never(&searched, there.found.len());
        section
            .control(&format!("{database}, {place}: the one that was planted there, found"), there.planted);
    }
}
