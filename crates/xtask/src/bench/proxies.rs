//! The front proxy compared with nginx, HAProxy and Caddy, with the access log on in all of them.

mod load;
mod subject;

use std::path::Path;

use anyhow::Result;

use self::{
    load::{KINDS, Kind, LOADS, Load},
    subject::{Setting, Subject},
};
use crate::bench::{Effort, Figure, Plot, Report, Sample, plot::points};

const ROUNDS: u32 = 2;
/// The names of the subjects, in their order.
const NAMES: [&str; 4] = ["Launchway", "nginx", "HAProxy", "Caddy"];
const LEAST_RATIO: f64 = 0.8;

/// Measures every load on each proxy in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Proxies");
    report.paragraph(&format!(
        "Launchway's front proxy, nginx, HAProxy and Caddy in front of the same bare hyper server, each with \
         its access log on, and with as many threads or processes as the machine has processors: `wrk -t1` \
         on each in turn. Bodies have 1 KiB unless the row says otherwise. `new` means a new connection for \
         each request, and over TLS a full handshake (P-256). `site` means files of the same folder, which \
         HAProxy does not serve. CPU is the time of all processes of the proxy. Ratios are the medians of \
         the ratios of {} rounds; above 1, Launchway is better.",
        effort.rounds(ROUNDS)
    ));
    report.columns(
        "load | req/s | of nginx | of HAProxy | of Caddy | CPU µs | nginx over it | HAProxy over it | Caddy over it",
    );
    let setting = Setting::make(&folder.join("proxies"))?;
    let subjects = setting.subjects()?;
    let mut measured = Vec::new();
    for load in LOADS {
        let results = results(&subjects, load, effort);
        report.row(&results.row(load));
        measured.push((load, results));
    }
    let failures = measured.iter().flat_map(|(_, results)| &results.failures);
    let failures: Vec<&str> = failures.map(String::as_str).collect();
    if !failures.is_empty() {
        report.paragraph(&format!("Runs that failed and are not counted: {}.", failures.join("; ")));
    }
    draw(report, &measured);
    for (load, results) in measured {
        let [requests, cpu] = results.ratios(1).unwrap_or_default();
        let figure = |words: &str, ratios| {
            Figure::new(format!("proxies: {}: {words}", load.name()), "", 2, ratios).at_least(LEAST_RATIO)
        };
        report.figure(figure("requests/s of nginx", requests));
        report.figure(figure("CPU of nginx over ours", cpu));
    }
    Ok(())
}

/// The results of one load.
struct Results {
    /// Requests per second and CPU of a request, for each subject that it concerns.
    samples: Vec<Option<[Sample; 2]>>,
    /// The runs that failed.
    failures: Vec<String>,
}

fn results(subjects: &[Subject], load: &Load, effort: Effort) -> Results {
    let concerned = |subject: &&Subject| !load.is_site || subject.serves_sites;
    let samples = subjects.iter().map(|one| concerned(&one).then(Default::default)).collect();
    let mut results = Results { samples, failures: Vec::new() };
    for subject in subjects.iter().filter(concerned) {
        // A failure repeats itself in the rounds.
        drop(load.warm_up(subject));
    }
    for round in 0..effort.rounds(ROUNDS) as usize {
        // Rotates the order, so that none always runs on a warmer machine.
        for step in 0..subjects.len() {
            let which = (round + step) % subjects.len();
            let Some([requests, cpu]) = &mut results.samples[which] else { continue };
            match load.run(&subjects[which]) {
                Ok(run) => {
                    requests.push(run.requests_per_second);
                    cpu.push(run.cpu_microseconds_per_request);
                }
                Err(error) => {
                    eprintln!("{}: {}: {error:#}", load.name(), NAMES[which]);
                    requests.push_failure();
                    cpu.push_failure();
                    let failure = format!("{} at {}, round {}", NAMES[which], load.name(), round + 1);
                    results.failures.push(failure);
                }
            }
        }
    }
    results
}

impl Results {
    /// Returns how much better the first subject is than another, in requests per second and in CPU.
    fn ratios(&self, other: usize) -> Option<[Sample; 2]> {
        let ([requests, cpu], [their_requests, their_cpu]) =
            (self.samples[0].as_ref()?, self.samples[other].as_ref()?);
        Some([requests.over(their_requests), their_cpu.over(cpu)])
    }

    fn row(&self, load: &Load) -> Vec<String> {
        let own = |which: usize, digits: usize| {
            let sample = self.samples[0].as_ref().map(|samples| samples[which].median());
            sample.map_or_else(String::new, |median| format!("{median:.digits$}"))
        };
        let ratio = |other: usize, which: usize| {
            let ratios = self.ratios(other);
            ratios.map_or_else(|| "–".to_owned(), |ratios| format!("{:.2}", ratios[which].median()))
        };
        let (name, requests, cpu) = (load.name(), own(0, 0), own(1, 1));
        let [first, second, third] = [1, 2, 3].map(|other| ratio(other, 0));
        let [fourth, fifth, sixth] = [1, 2, 3].map(|other| ratio(other, 1));
        vec![name, requests, first, second, third, cpu, fourth, fifth, sixth]
    }
}

/// Draws the ratios to nginx over the number of connections.
fn draw(report: &mut Report, measured: &[(&Load, Results)]) {
    for (which, name, title) in [
        (0, "proxies-requests", "Requests per second, over those of nginx"),
        (1, "proxies-cpu", "CPU of a request: that of nginx over ours"),
    ] {
        let mut plot = Plot::new(title, "connections", "ratio");
        for kind in KINDS {
            let (positions, samples) = line(measured, kind, which);
            plot.line(kind.name(), points(&positions, &samples));
        }
        report.plot(name, plot);
    }
}

fn line(measured: &[(&Load, Results)], kind: Kind, which: usize) -> (Vec<u32>, Vec<Sample>) {
    let of_kind = measured.iter().filter(|(load, _)| load.kind == kind && load.is_usual());
    of_kind
        .filter_map(|(load, results)| {
            let [requests, cpu] = results.ratios(1)?;
            Some((load.connections, if which == 0 { requests } else { cpu }))
        })
        .unzip()
}
