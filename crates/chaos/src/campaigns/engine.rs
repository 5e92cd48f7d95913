//! The Docker engine is restarted and killed at random times, under load.

pub(crate) mod load;
mod recovery;
mod rounds;

use std::{env, fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use launchway_testkit::docker::{base_image, docker};

use self::{
    load::{Load, ResponseCounts},
    recovery::{GOAL, Recovery, WATCH},
    rounds::{INTERVENTIONS, MOMENTS, Rounds, exchange_addresses},
};
use crate::{
    engine::{Engine, EngineEnd},
    options::Options,
    rng::Rng,
    section::Section,
    tenants::{Shape, Tenants},
    verdict,
};

const METHOD: &str = "\
Two organizations have three applications each, in containers on a Docker engine that only this campaign uses. Each \
application answers with its own name. Three clients request it by its host name through the front proxy, with pauses \
of 100 ms.\n\n\
Half of the rounds restart the engine (SIGTERM), half kill it (SIGKILL): idle, during a build, around a switch, a \
stop or a delete, or while the server is stopped and the front proxy runs alone. In other rounds, containers are \
killed, stopped, paused, removed or disconnected by hand; or all containers of an organization are stopped while the \
server is stopped, and started in reverse order.\n\n\
From the moment when the engine and the server answer again, every application that should run must answer by its \
host name and be `running` within 10 s (30 s in the short form, which shares its machine with other tests). At the \
end the verifier compares the records with the engine. If something has no record, it does so after the grace period \
of two minutes.";

/// The pause between two requests to one application.
const PAUSE: Duration = Duration::from_millis(100);
/// Leftovers of an engine that no record accounts for are removed every minute, when they are two minutes old.
const GRACE: Duration = Duration::from_secs(190);
/// Drops fixed addresses from the arguments of docker, and the label by which a container is known to have one.
const WITHOUT_ADDRESSES: &str = r#"#!/bin/sh
is_value=
for argument do
  shift
  if [ -n "$is_value" ]; then is_value=; continue; fi
  case "$argument" in
    --ip) is_value=1; continue ;;
    --ip=*) continue ;;
    launchway.address=*) argument=launchway.address= ;;
  esac
  set -- "$@" "$argument"
done
exec DOCKER "$@"
"#;

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Restarts and kills of the Docker engine", METHOD);
    let engine = Engine::start();
    let organizations = &["north", "south"];
    let shape = Shape { organizations, applications: 3, settings: pool("10.224.0.0/16"), ..Shape::default() };
    let tenants = Tenants::start(options, &shape);
    let load = Load::start(&tenants, "/", PAUSE);
    let mut rounds = Rounds { engine, tenants, recovery: Recovery::default(), rng: Rng::fresh() };

    let faults = options.engine_faults();
    let mut moments: Vec<_> = MOMENTS.iter().cycle().take(faults).copied().collect();
    let (mut restarts, mut kills) = (0, 0);
    for number in 1..=faults {
        let moment = moments.swap_remove(rounds.rng.below(moments.len()));
        let end = if number % 2 == 1 { EngineEnd::Killed } else { EngineEnd::Terminated };
        match end {
            EngineEnd::Terminated => restarts += 1,
            EngineEnd::Killed => kills += 1,
        }
        rounds.end_engine(number, end, moment);
        if number % 10 == 0 {
            eprintln!("  {number} rounds, {}", shown(&load.responses()));
        }
    }
    let interventions = options.count(1, 10);
    for number in 1..=interventions {
        rounds.intervene(number, &INTERVENTIONS);
    }
    let exchanges = options.count(1, 10);
    for number in 1..=exchanges {
        rounds.exchange_addresses(number, number % organizations.len());
    }

    let responses = load.end();
    section.note("restarts / kills of the engine", format_args!("{restarts} / {kills}"));
    section.note("starts that the engine itself broke off", rounds.engine.failed_starts());
    section.note("interventions by hand", interventions * INTERVENTIONS.len());
    section.note("exchanges of addresses", exchanges);
    report_load(&mut section, &responses);
    rounds.recovery.report(&mut section, if options.is_long { GOAL } else { WATCH });
    let figures = rounds.tenants.compare(GRACE);
    verdict::add_figures(&mut section, &figures);
    verdict::report_engine(&mut section, &figures);
    verdict::add_false_records(&mut section, &rounds.tenants.harness);
    control_leak(&mut section, &mut rounds.tenants);
    let Rounds { engine, tenants, .. } = rounds;
    drop(tenants);
    control_addresses(options, &mut section);
    drop(engine);
    section
}

fn report_load(section: &mut Section, responses: &ResponseCounts) {
    for example in &responses.examples {
        eprintln!("  {example}");
    }
    section.note(
        "requests / answers of the right application",
        format_args!("{} / {}", responses.requests(), responses.right),
    );
    section.note("answers of no application, by status", responses.unserved());
    section.never("answers of another application", responses.foreign);
    section.never("answers of no application other than 404, 502, 503 and 504", responses.unexpected());
}

fn shown(responses: &ResponseCounts) -> String {
    format!("{} right, {} foreign, {}", responses.right, responses.foreign, responses.unserved())
}

/// The setting of an address range.
fn pool(range: &str) -> Vec<(String, String)> {
    vec![("LAUNCHWAY_NETWORK_POOL".to_owned(), range.to_owned())]
}

/// A container without a record, which has to be found.
fn control_leak(section: &mut Section, tenants: &mut Tenants) {
    tenants.harness.server.kill();
    let label = format!("launchway.instance={}", tenants.harness.instance());
    docker(&["create", "--label", &label, base_image(), "true"]);
    let leaked = tenants.compare(Duration::ZERO).leaked;
    section.control("containers without a record, found as leaked", leaked);
}

/// An installation whose containers have no fixed addresses: after the same exchange of addresses, answers
/// of another application have to be counted.
fn control_addresses(options: &Options, section: &mut Section) {
    let folder = tempfile::tempdir().unwrap();
    let path = env::var("PATH").unwrap_or_default();
    wrap_docker(folder.path(), &path);
    let mut settings = pool("10.225.0.0/16");
    settings.push(("PATH".to_owned(), format!("{}:{path}", folder.path().display())));
    let shape = Shape { organizations: &["east"], applications: 3, settings, ..Shape::default() };
    let mut tenants = Tenants::start(options, &shape);
    let load = Load::start(&tenants, "/", PAUSE);
    exchange_addresses(&mut tenants, 0);
    let responses = load.end();
    section.control("answers of another application, without fixed addresses", responses.foreign);
}

/// Puts a program `docker` into a folder that drops addresses and runs the real one.
fn wrap_docker(folder: &Path, path: &str) {
    let real = env::split_paths(path).map(|folder| folder.join("docker")).find(|file| file.exists());
    let real = real.expect("the command line of docker is on the PATH");
    let wrapper = folder.join("docker");
    fs::write(&wrapper, WITHOUT_ADDRESSES.replace("DOCKER", &real.display().to_string())).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_wrapper_of_docker_drops_addresses_only() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::write(real.join("docker"), "#!/bin/sh\nprintf '%s|' \"$@\"\n").unwrap();
        fs::set_permissions(real.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
        wrap_docker(folder.path(), &real.display().to_string());
        let words = [
            "run",
            "--ip",
            "10.0.0.2",
            "--env",
            "A=b c",
            "--ip=10.0.0.3",
            "",
            "--label",
            "launchway.address=10.0.0.2",
            "image",
        ];
        let output = Command::new(folder.path().join("docker")).args(words).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "run|--env|A=b c||--label|launchway.address=|image|"
        );
    }
}
