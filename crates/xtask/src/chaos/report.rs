//! The report of the campaigns: a page whose sections are replaced one by one.

use std::{io::ErrorKind, path::Path};

use anyhow::Result;
use fs_err as fs;

use super::CAMPAIGNS;
use crate::machine;

/// The text above the first section.
const HEAD: &str = "\
# Reliability

The guarantees that hold when the server, its database, its disk or its clock fails, or when a client is hostile.
Each section is the output of a campaign of `crates/chaos` from its last run in the long form. `cargo xtask test` runs
the short forms of all campaigns except two: `conformance`, which needs `schemathesis`, or `pip`, which then installs
it; and `swarm`, which takes ten minutes.

```sh
cargo xtask chaos                                      # the short forms
cargo xtask chaos kills-sqlite --long --kills 1000     # one campaign as a report needs it
cargo xtask chaos --long --report docs/reliability.md  # everything on this page
```

Clients record the answers that they receive in a **ledger**: deployments that were accepted, log lines that were
shown. A separate program, `launchway-verify`, compares the ledger with the database, by plain SQL, and with the engine,
by labels. It shares no code with the server and sends it no requests. It also looks for deployments and jobs that have
not finished (in the tables: that are not at their end), gaps in logs, containers that belong to no live version, live
versions without their container, and damage.

In the campaigns from `slow-clients` to `conformance` nothing fails: clients misuse the server, which must serve all
other clients as before.

A row that begins with **control** tests the campaign itself: a guard was removed, or a loss was invented, and the
campaign must detect it. A figure that misses its goal is marked FAIL, and the command exits with status 1.
";

/// Replaces the section of a campaign. The page is read at once before, so that campaigns may run
/// concurrently.
pub(crate) fn put(file: &Path, name: &str, told: &str, circumstances: &str) -> Result<()> {
    let told = match told.split_once("\n\n") {
        Some((title, rest)) => format!("{title}\n\n{circumstances}\n\n{}\n", rest.trim()),
        None => format!("## {name}\n\n{circumstances}\n\n**The campaign did not finish.**\n"),
    };
    let page = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let mut text = HEAD.to_owned();
    for other in CAMPAIGNS {
        let section = if other == name { Some(told.clone()) } else { section(&page, other) };
        if let Some(section) = section {
            text.push_str(&format!("\n{}\n{section}", mark(other)));
        }
    }
    Ok(fs::write(file, text)?)
}

/// Returns the invisible marker before a section.
fn mark(name: &str) -> String {
    format!("<!-- campaign: {name} -->")
}

fn section(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("{}\n", mark(name)))?;
    let section = rest.split("\n<!-- campaign: ").next().unwrap_or(rest);
    Some(section.to_owned())
}

/// Returns the commit, the machine and the time of a campaign.
pub(crate) fn circumstances(is_dist: bool) -> Result<String> {
    let (date, commit) = (machine::date()?, machine::commit(&["crates", "migrations"]));
    let build = if is_dist { "`dist`" } else { "development" };
    Ok(format!("{date}, commit {commit}, {build} build, on {}.", machine::describe()))
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_section_is_replaced_and_the_others_stay() {
        let scratch = Scratch::create(&env::temp_dir(), "scratch", &[]).unwrap();
        let file = scratch.path().join("page.md");
        put(&file, "outages", "## Outages\n\nThe old ones.\n", "Yesterday.").unwrap();
        put(&file, "full-disk", "## A full disk\n\nFull.\n", "Yesterday.").unwrap();
        put(&file, "outages", "## Outages\n\nThe new ones.\n", "Today.").unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let expected = "\n<!-- campaign: full-disk -->\n## A full disk\n\nYesterday.\n\nFull.\n\
                        \n<!-- campaign: outages -->\n## Outages\n\nToday.\n\nThe new ones.\n";
        assert_eq!(text.strip_prefix(HEAD), Some(expected));
    }

    #[test]
    fn a_campaign_without_a_result_is_reported_as_such() {
        let scratch = Scratch::create(&env::temp_dir(), "scratch", &[]).unwrap();
        let file = scratch.path().join("page.md");
        put(&file, "outages", "", "Today.").unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains("**The campaign did not finish.**"));
    }
}
