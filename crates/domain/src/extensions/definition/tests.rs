//! Tests of the definition language.

use super::*;
use crate::extensions::{Action, FileAction};

const HELLO: &str = r#"
metadata: {id: hello-note, name: Hello note, description: Writes a greeting, author: someone, icon: "N", category: Utility, type: run, version: 1.0.0, isVerified: false}
variables:
  who: {type: string, description: Who to greet, default: world, is_required: true, validation_pattern: "^[a-z]{1,20}$"}
execution:
  run:
    - {name: Make folder, type: file, properties: {action: mkdir, dest: "{{ workspace }}/notes"}}
    - name: Write greeting
      type: command
      properties: {cmd: "echo hello {{ who }} > notes/hi.txt", revert_cmd: "rm -f notes/hi.txt"}
      timeout: 10
  validate:
    - {name: Check file, type: command, properties: {cmd: "test -s notes/hi.txt"}}
"#;

fn refusal(yaml: &str) -> Vec<String> {
    let InvalidDefinition(problems) = Definition::parse(yaml).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

/// Returns the example with one text replaced.
fn with(from: &str, to: &str) -> String {
    assert!(HELLO.contains(from), "{from}");
    HELLO.replacen(from, to, 1)
}

#[test]
fn the_documented_example_is_read() {
    let definition = Definition::parse(HELLO).unwrap();
    assert_eq!(definition.metadata.id.as_str(), "hello-note");
    assert_eq!((definition.run.len(), definition.validate.len()), (2, 1));
    assert_eq!(definition.run[0].timeout, Duration::from_secs(300));
    assert_eq!(definition.run[1].timeout, Duration::from_secs(10));
    assert!(definition.acts_on_host() && !definition.reaches_engine());
    let values =
        Values::from([("workspace".to_owned(), "/w".to_owned()), ("who".to_owned(), "ada".to_owned())]);
    let folder = FileAction::MakeFolder("notes".parse().unwrap());
    assert_eq!(definition.run[0].resolve(&values), Ok(Action::File(folder)));
}

#[test]
fn reports_every_problem_with_line_key_and_rule() {
    for (from, to, told) in [
        (
            "category: Utility",
            "category: Fun",
            "line 2: `metadata.category` must be one of Security, Containers, Database, Web Server, Maintenance, Monitoring, Storage, Network, Development, Media, Game, Utility, Productivity, Social, Other, got `Fun`",
        ),
        ("type: run,", "type: play,", "line 2: `metadata.type` must be `install` or `run`, got `play`"),
        ("id: hello-note, ", "", "line 2: `metadata.id` is missing"),
        ("isVerified: false", "isVerified: maybe", "line 2: `metadata.isVerified` must be `true` or `false`"),
        (
            "author: someone",
            "autor: someone, author: x",
            "line 2: `metadata.autor` is not known here: allowed are `id`, `name`, `description`, `author`, `icon`, `category`, `type`, `version`, `isVerified`",
        ),
        (
            "type: string",
            "type: text",
            "line 4: `variables.who.type` must be `string`, `integer`, `boolean` or `array`, got `text`",
        ),
        (
            "default: world",
            "default: World",
            "line 4: `variables.who.default` must be what the variable's `validation_pattern` describes, got `World`",
        ),
        (
            "^[a-z]{1,20}$",
            "(a",
            "line 4: `variables.who.validation_pattern` must be a regular expression of at most 512 characters that stays small: no look-around, no back-references, got `(a`",
        ),
        (
            "  who:",
            "  workspace: {type: string}\n  who:",
            "line 4: `variables.workspace` must be called by 1 to 64 letters, digits and `_`, the first no digit, and not `workspace`",
        ),
        (
            "type: file",
            "type: files",
            "line 7: `execution.run[0].type` must be one of command, file, docker, docker_compose, service, user, proxy, got `files`",
        ),
        (
            "action: mkdir, ",
            "",
            "line 7: `execution.run[0].properties.action` is missing: it must be one of `mkdir`, `write`, `copy`, `move`, `delete`",
        ),
        (
            "action: mkdir",
            "action: mkdirs",
            "line 7: `execution.run[0].properties.action` must be one of `mkdir`, `write`, `copy`, `move`, `delete`",
        ),
        (", dest: \"{{ workspace }}/notes\"", "", "line 7: `execution.run[0].properties.dest` is missing"),
        (
            "action: mkdir",
            "action: mkdir, mode: 7",
            "line 7: `execution.run[0].properties.mode` is not known here: allowed are `action`, `dest`",
        ),
        (
            "{{ workspace }}/notes",
            "/etc",
            "line 7: `execution.run[0].properties.dest` must be a path in the workspace, such as `notes/hi.txt`, without `..`, got `/etc`",
        ),
        (
            "hello {{ who }}",
            "hello {{ whom }}",
            "line 10: `execution.run[1].properties.cmd` refers to `whom`, which is no variable of this definition",
        ),
        (
            "hello {{ who }}",
            "hello '{{ who }}'",
            "line 10: `execution.run[1].properties.cmd` `{{ who }}` stands in single quotes, where a shell replaces nothing: use double quotes or none",
        ),
        (
            "timeout: 10",
            "timeout: 0",
            "line 11: `execution.run[1].timeout` must be a number of seconds between 1 and 1800, got `0`",
        ),
        (
            "timeout: 10",
            "timeout: 1801",
            "line 11: `execution.run[1].timeout` must be a number of seconds between 1 and 1800, got `1801`",
        ),
        (
            "timeout: 10",
            "retries: 10",
            "line 11: `execution.run[1].retries` is not known here: allowed are `name`, `type`, `ignore_errors`, `timeout`, `properties`",
        ),
        ("name: Check file, ", "", "line 13: `execution.validate[0].name` is missing"),
    ] {
        assert_eq!(refusal(&with(from, to)), [told], "{to}");
    }
}

#[test]
fn several_problems_are_reported_in_the_order_of_the_file() {
    let yaml = with("category: Utility", "category: Fun").replacen("timeout: 10", "timeout: x", 1);
    let told = refusal(&yaml);
    assert_eq!(told.len(), 2);
    assert!(told[0].starts_with("line 2:") && told[1].starts_with("line 11:"));
}

#[test]
fn what_is_no_definition_is_refused() {
    for (yaml, told) in [
        ("", "line 1: it is empty"),
        ("[]", "line 1: has to be a map"),
        ("a: 1\na: 2", "line 2: `a` is there twice"),
        ("a: &x 1\nb: *x", "line 2: aliases such as `*name` are not allowed"),
        ("a: !!str 1", "line 1: tags such as `!reset` are not allowed"),
    ] {
        assert_eq!(refusal(yaml)[0], told, "{yaml}");
    }
    let empty = with("  run:", "  run: []\n  later:");
    assert!(refusal(&empty).contains(&"line 6: `execution.run` must have at least one step".to_owned()));
    let none = with("execution:", "executions:");
    assert!(refusal(&none).iter().any(|told| told.contains("`execution` is missing")));
}

fn steps_of(count: usize) -> String {
    let (head, _) = HELLO.split_once("  run:").unwrap();
    let step = "    - {name: A, type: command, properties: {cmd: 'true'}}\n";
    format!("{head}  run:\n{}", step.repeat(count))
}

#[test]
fn there_are_at_most_200_steps() {
    assert!(Definition::parse(&steps_of(200)).is_ok());
    assert_eq!(refusal(&steps_of(201)), ["line 6: `execution.run` must have at most 200 steps, got 201"]);
    let both = steps_of(200) + "  validate:\n    - {name: A, type: command, properties: {cmd: 'true'}}\n";
    assert!(refusal(&both)[0].contains("at most 200 steps in all, got 201"));
}

fn variables_of(count: usize) -> String {
    let variables: String = (0..count).map(|number| format!("  v{number}: {{type: string}}\n")).collect();
    with("execution:\n", &format!("{variables}execution:\n"))
}

#[test]
fn there_are_at_most_100_variables() {
    assert!(Definition::parse(&variables_of(99)).is_ok());
    assert!(refusal(&variables_of(100))[0].contains("at most 100 variables, got 101"));
}

#[test]
fn a_definition_has_at_most_256_kib() {
    let padded = |size: usize| format!("{HELLO}#{}", "x".repeat(size - HELLO.len() - 1));
    assert!(Definition::parse(&padded(256 * 1024)).is_ok());
    assert_eq!(refusal(&padded(256 * 1024 + 1)), ["line 1: it has more than 256 KiB"]);
}

#[test]
fn defaults_are_of_their_kind() {
    let with_default = |kind: &str, default: &str| {
        with("execution:\n", &format!("  x: {{type: {kind}, default: {default}}}\nexecution:\n"))
    };
    for (kind, default, value) in [
        ("integer", "5432", DefaultValue::Integer(5432)),
        ("boolean", "true", DefaultValue::Truth(true)),
        ("string", "010", DefaultValue::Text("010".to_owned())),
        ("array", "[a, 'b c']", DefaultValue::List(vec!["a".to_owned(), "b c".to_owned()])),
    ] {
        let definition = Definition::parse(&with_default(kind, default)).unwrap();
        assert_eq!(definition.variables[1].default, Some(value));
    }
    for (kind, default) in [("integer", "many"), ("boolean", "yes"), ("array", "a"), ("string", "[a]")] {
        assert!(refusal(&with_default(kind, default))[0].contains("`variables.x.default`"), "{kind}");
    }
}

#[test]
fn a_default_that_a_pattern_has_to_match_is_short() {
    let with_default = |length: usize| {
        with("default: world", &format!("default: {}", "a".repeat(length))).replace("{1,20}", "+")
    };
    assert!(Definition::parse(&with_default(256)).is_ok());
    assert_eq!(
        refusal(&with_default(257)),
        [
            "line 4: `variables.who.default` must be at most 256 bytes where a `validation_pattern` has to match it, got 257 bytes"
        ]
    );
}

#[test]
fn what_costs_much_elsewhere_is_refused_at_once() {
    let deep = format!("metadata: {}", "[".repeat(60_000));
    let deeper = format!("metadata: {}", "{a: ".repeat(40_000));
    let keys: String = (0..30_000).map(|number| format!("k{number}: x\n")).collect();
    let bomb = "a: &a [x,x]\nb: [*a,*a]";
    for yaml in [deep.as_str(), &deeper, &keys, bomb, &"- ".repeat(100_000), &"? ".repeat(100_000)] {
        assert!(!refusal(yaml).is_empty());
    }
}
