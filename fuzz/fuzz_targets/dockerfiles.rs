//! Whatever a repository has as its Dockerfile: it is parsed or rejected with its line, its canonical
//! text parses to the same tree, and what is accepted reads nothing of others.
#![no_main]

use launchway_domain::{
    applications::Variables,
    dockerfile::{Command, Dockerfile, DockerfileBuilder, Flag, Healthcheck, Instruction, Policy},
};
use libfuzzer_sys::fuzz_target;

/// The longest line that every engine reads.
const MAX_LINE: usize = 65_535;
/// The prefix of cache mounts.
const SCOPE: &str = "launchway-1";

fuzz_target!(|data: &[u8]| {
    let tree = match Dockerfile::parse(data) {
        Ok(tree) => tree,
        Err(rejection) => {
            assert!(rejection.line > 0 && !rejection.reason.is_empty());
            return;
        }
    };
    same_when_parsed_again(&tree);
    let variables = Variables::default();
    for builder in [DockerfileBuilder::Legacy, DockerfileBuilder::BuildKit] {
        let policy = Policy { variables: &variables, builder, cache_scope: SCOPE };
        let Ok(checked) = policy.check(tree.clone()) else { continue };
        same_when_parsed_again(checked.tree());
        let text = checked.render();
        let lines = text.lines().filter(|line| !line.starts_with("# escape="));
        assert_eq!(lines.count(), checked.tree().statements.len(), "{text:?}");
        assert!(text.lines().all(|line| line.len() <= MAX_LINE));
        for statement in &checked.tree().statements {
            is_safe(&statement.instruction, builder);
        }
        // A checked file is accepted again, and not changed any more.
        let again = policy.check(checked.tree().clone()).map(|again| again.render());
        assert!(
            again.as_ref().is_ok_and(|again| *again == text || text.contains(SCOPE)),
            "{text:?} {again:?}"
        );
    }
    if let Ok(trigger) = std::str::from_utf8(data) {
        let policy = Policy { variables: &variables, builder: DockerfileBuilder::Legacy, cache_scope: SCOPE };
        if policy.check_trigger(trigger, &[]).is_ok() {
            is_one_local_instruction(trigger);
        }
    }
});

fn instructions(tree: &Dockerfile) -> Vec<&Instruction> {
    tree.statements.iter().map(|statement| &statement.instruction).collect()
}

fn same_when_parsed_again(tree: &Dockerfile) {
    let text = tree.render();
    let again =
        Dockerfile::parse(text.as_bytes()).unwrap_or_else(|rejection| panic!("{text:?}: {rejection}"));
    assert_eq!((tree.escape, instructions(tree)), (again.escape, instructions(&again)), "{text:?}");
    assert_eq!(again.render(), text);
}

/// The engine reads a trigger itself, so that it is one instruction as it is.
fn is_one_local_instruction(trigger: &str) {
    let tree = Dockerfile::parse(format!("FROM web:1\n{trigger}").as_bytes()).unwrap();
    assert_eq!(tree.statements.len(), 2, "{trigger:?}");
    if let Instruction::Add(transfer) = &tree.statements[1].instruction {
        let (_, sources) = transfer.paths.as_slice().split_last().unwrap();
        assert!(
            sources.iter().all(|source| !source.contains("://") && !source.starts_with("git@")),
            "{trigger:?}"
        );
    }
}

fn is_safe(instruction: &Instruction, builder: DockerfileBuilder) {
    match instruction {
        Instruction::Add(transfer) => {
            plain(&transfer.flags);
            let (_, sources) = transfer.paths.as_slice().split_last().unwrap();
            for source in sources {
                assert!(
                    source == "." || ["./", "../", "/"].iter().any(|start| source.starts_with(start)),
                    "{source}"
                );
            }
        }
        Instruction::Copy(transfer) => {
            plain(&transfer.flags);
            for flag in transfer.flags.iter().filter(|flag| flag.name == "from") {
                image(flag.value.as_deref().unwrap());
            }
        }
        Instruction::From(stage) => {
            assert!(
                stage.image.is_ascii() && !stage.image.contains(['$', '"', '\'', '\\', ' ']),
                "{stage:?}"
            );
        }
        Instruction::Run { flags, command } => {
            plain(flags);
            assert!(builder == DockerfileBuilder::BuildKit || flags.is_empty());
            for flag in flags.iter().filter(|flag| flag.name == "mount") {
                let value = flag.value.as_deref().unwrap();
                let fields: Vec<&str> = value.split(',').collect();
                if fields.contains(&"type=cache") {
                    assert!(fields.iter().any(|field| field.starts_with("id=launchway-1-")), "{value}");
                }
                fields.iter().filter_map(|field| field.strip_prefix("from=")).for_each(image);
            }
            if let Command::Shell(text) = command {
                assert!(!text.starts_with("--") && !text.contains('\n'), "{text:?}");
            }
        }
        Instruction::Healthcheck(Healthcheck::Command { flags, .. }) => plain(flags),
        Instruction::Onbuild(inner) => is_safe(inner, builder),
        _ => {}
    }
}

/// Options are ASCII without spaces, quotes and escapes.
fn plain(flags: &[Flag]) {
    for flag in flags {
        let value = flag.value.as_deref().unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte);
        assert!(flag.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{flag:?}");
        assert!(value.bytes().all(is_plain), "{flag:?}");
    }
}

/// A source is no variable and no beginning of an id, unless it is a stage.
fn image(source: &str) {
    assert!(!source.is_empty() && !source.contains(['$', '"', '\'', '\\']), "{source}");
    assert!(!source.to_lowercase().starts_with("sha256:"), "{source}");
}
