//! Compares our parsing of generated files with the engine's own.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use launchway_domain::{
    applications::Variables,
    dockerfile::{Dockerfile, DockerfileBuilder, Instruction, Policy},
};
use launchway_testkit::docker::docker;
use serde_json::Value;

/// The number of generated files.
const FILES: u64 = 12;
/// The most instructions of a file.
const MAX_INSTRUCTIONS: u64 = 14;

/// Instructions without a container, so that a step takes milliseconds. `_` is a space.
const TEMPLATES: [&str; 24] = [
    "ENV_A=1",
    "env_B=\"two_ words\"_C=x\\ y_D='z'",
    "ENV_OLD_form with $A",
    "ENV_E=à_F=Å-$A_G=\"a\\\"b\"",
    "LABEL_a=b_\"c d\"=\"e # f\"",
    "label_g='h \"i\"'_j=k=l",
    "LABEL_m_old form",
    "EXPOSE_80_443/tcp_53/udp",
    "CMD_[\"a\",_\"b c\",_\"\\u00e0\\n\"]",
    "CMD_echo $A && [ -f x ]",
    "CMD_[ -f /x ] && true",
    "cmd_['a']",
    "ENTRYPOINT_[]",
    "ENTRYPOINT_exec top -b",
    "USER_1000:1000",
    "VOLUME_/a_/b",
    "VOLUME_[\"/c d\",_\"/e\"]",
    "STOPSIGNAL_SIGTERM",
    "SHELL_[\"/bin/sh\",_\"-c\"]",
    "HEALTHCHECK_--interval=5s_--retries=2_CMD_curl --fail x",
    "HEALTHCHECK_NONE",
    "ARG_X=1_Y_Z=\"a b\"",
    "ONBUILD_RUN make --from=x",
    "MAINTAINER_Ada <ada@example.com>",
];

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

fn file(seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let end = numbers.one_of(&["\n", "\n", "\r\n"]);
    let mut text = numbers.one_of(&["", "\u{feff}", "# a comment\n", "# escape=\\\n"]).to_owned();
    text += &format!("{}FROM scratch{end}", numbers.one_of(&["", " ", "\t"]));
    for _ in 0..=numbers.below(MAX_INSTRUCTIONS) {
        text += numbers.one_of(&["", "", "\n", "  # a comment\n", "\t", "#\n"]);
        let template = numbers.one_of(&TEMPLATES);
        // The engine keeps the text of a trigger as it is.
        let is_trigger = template.starts_with("ONBUILD");
        for c in template.chars() {
            match c {
                '_' if is_trigger => text.push(' '),
                '_' => {
                    let space = numbers.one_of(&[
                        " ",
                        " ",
                        "  ",
                        "\t",
                        " \\\n",
                        " \\ \t\n  ",
                        " \\\n# comment\n ",
                        " \\\n   # comment\n\n  ",
                    ]);
                    text += &space.replace('\n', end);
                }
                c => text.push(c),
            }
        }
        text += if is_trigger { "" } else { numbers.one_of(&["", "", " ", "\t"]) };
        text += end;
    }
    text
}

/// Builds a text on the engine, and returns its steps and the configuration of the image.
fn build(text: &str) -> (Vec<String>, Value) {
    let tag = format!("launchway-test/agreement:{}", std::process::id());
    let mut client = Command::new("docker")
        // Without the cache, whose images another test may remove at any moment.
        .args(["build", "--no-cache", "--force-rm", "--network", "none", "--tag", &tag, "-"])
        .env("DOCKER_BUILDKIT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = client.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "the engine refuses {text:?}: {printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // Colours of a warning may precede the first step.
    let lines = printed.lines().map(|line| line.trim_start_matches("\u{1b}[0m"));
    let steps = lines.filter(|line| line.starts_with("Step ")).filter_map(|line| line.split_once(" : "));
    let steps = steps.map(|(_, step)| step.to_owned()).collect();
    let config = docker(&["image", "inspect", "--format", "{{json .Config}}", &tag]);
    docker(&["image", "rm", "--force", &tag]);
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config.as_object_mut().unwrap().remove("Image");
    (steps, config)
}

fn instructions(text: &str) -> Vec<Instruction> {
    let tree = Dockerfile::parse(text.as_bytes()).unwrap_or_else(|rejection| panic!("{text:?}: {rejection}"));
    tree.statements.into_iter().map(|statement| statement.instruction).collect()
}

#[test]
fn the_engine_reads_generated_files_as_we_do() {
    let variables = Variables::default();
    let policy =
        Policy { variables: &variables, builder: DockerfileBuilder::Legacy, cache_scope: "launchway" };
    for seed in 1..=FILES {
        let written = file(seed);
        let tree =
            Dockerfile::parse(written.as_bytes()).unwrap_or_else(|error| panic!("{written:?}: {error}"));
        let canonical = policy.check(tree).unwrap().render();
        let (steps, config) = build(&written);
        // The engine finds the same instructions in the file as we do,
        assert_eq!(instructions(&steps.join("\n")), instructions(&written), "{written:?}");
        let (canonical_steps, canonical_config) = build(&canonical);
        // it finds each line of our text to be one instruction,
        assert_eq!(canonical_steps, canonical.lines().collect::<Vec<_>>(), "{written:?}");
        // and makes the same image of both.
        assert_eq!(canonical_config, config, "{written:?}\n{canonical:?}");
    }
}
