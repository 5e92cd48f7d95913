#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a campaign that cannot go on has to stop")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on both")]

mod campaigns;
mod cluster;
mod disk;
mod document;
mod engine;
mod harness;
mod isolation;
mod load;
mod options;
mod process;
mod regular;
mod repository;
mod rng;
mod section;
mod tenants;
mod tracer;
mod verdict;
mod visitor;

use std::process::ExitCode;

use crate::{campaigns::CAMPAIGNS, options::Options};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let Some((_, campaign)) = CAMPAIGNS.iter().find(|(name, _)| *name == options.campaign) else {
        let names: Vec<_> = CAMPAIGNS.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no campaign `{}`; there are: {}", options.campaign, names.join(", "));
        return ExitCode::from(2);
    };
    if campaigns::needs_isolation(&options.campaign) && !isolation::is_isolated() {
        return isolation::rerun();
    }
    let section = campaign(&options);
    println!("{}", section.markdown());
    let missed = section.missed();
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("{}: {} figures miss their goal", options.campaign, missed.len());
    for figure in missed {
        eprintln!("  {figure}");
    }
    ExitCode::FAILURE
}
