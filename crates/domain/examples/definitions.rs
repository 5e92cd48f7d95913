//! `definitions`: measures the processor time that hostile definitions take until they are read or refused.
//!
//! Prints one line for each: its name, its bytes, and the milliseconds of the longest of a few readings.
#![expect(clippy::print_stdout, reason = "the numbers are what the program is for")]

use std::fmt::Write as _;

use launchway_domain::extensions::Definition;
use rustix::time::{ClockId, clock_gettime};

const READINGS: usize = 5;
/// The size limit of a definition.
const LARGEST: usize = 256 * 1024;
/// The length limit of a pattern.
const LONGEST_PATTERN: usize = 512;

const HEAD: &str =
    "metadata: {id: x, name: x, description: x, author: x, icon: x, category: Utility, type: run}\n";
const STEPS: &str = "execution:\n  run:\n    - {name: a, type: command, properties: {cmd: 'true'}}\n";

fn main() {
    for (name, definition) in corpus() {
        let readings = (0..READINGS).map(|_| milliseconds(&definition));
        let longest = readings.fold(0.0_f64, f64::max);
        println!("{name}\t{}\t{longest:.2}", definition.len());
    }
}

fn milliseconds(definition: &str) -> f64 {
    let begun = processor_time();
    let read = Definition::parse(std::hint::black_box(definition));
    let taken = processor_time() - begun;
    drop(std::hint::black_box(read));
    taken
}

fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Milliseconds of a short program: exact in a float.
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Returns inputs that are known to overload parsers of YAML, of patterns and of templates.
fn corpus() -> Vec<(&'static str, String)> {
    let each = |count: usize, text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let filled = |piece: &str| piece.repeat(LARGEST / piece.len());
    let pattern = |source: &str| asking_for(source, 1);
    vec![
        ("aliases of aliases", aliases()),
        ("one anchor, many aliases", format!("a: &a [x]\nb: [{}]\n", "*a,".repeat(80_000))),
        ("many anchors", each(14_000, &|n| format!("k{n}: &a{n} x\n"))),
        ("lists in lists", format!("metadata: {}", "[".repeat(LARGEST - 20))),
        ("maps in maps", format!("metadata: {}", "{a: ".repeat(LARGEST / 4 - 10))),
        ("lists by indentation", filled("- ")),
        ("questions by indentation", filled("? ")),
        ("maps by indentation", each(700, &|n| format!("{}a:\n", " ".repeat(n)))),
        ("30,000 keys", each(30_000, &|n| format!("k{n}: \n"))),
        ("9,000 unknown keys", format!("{HEAD}{STEPS}{}", each(9_000, &|n| format!("unknown-key-{n}: x\n")))),
        ("unknown keys of steps", format!("{HEAD}{}", unknown_properties())),
        ("the same key again", filled("a: x\n")),
        ("keys that collide in sight", each(9_000, &|n| format!("{}{n}: x\n", "k".repeat(20)))),
        ("256 KiB of text", format!("a: {}", "x".repeat(LARGEST - 3))),
        ("256 KiB of comment", format!("# {}", "x".repeat(LARGEST - 2))),
        ("256 KiB of spaces", " ".repeat(LARGEST)),
        ("256 KiB of tabs", "\t".repeat(LARGEST)),
        ("256 KiB of lines", "\n".repeat(LARGEST)),
        ("256 KiB in quotes", format!("a: \"{}\"", "\\n".repeat(LARGEST / 2 - 10))),
        ("quotes without end", format!("a: \"{}", "x\n ".repeat(LARGEST / 3 - 10))),
        ("a block of 256 KiB", format!("a: |\n{}", "  x\n".repeat(LARGEST / 4 - 10))),
        ("a folded text", format!("a: >\n{}", "  x\n\n".repeat(LARGEST / 5 - 10))),
        ("one plain text of many lines", format!("a: x\n{}", "  x\n".repeat(LARGEST / 4 - 10))),
        ("colons", filled(": ")),
        ("brackets and commas", format!("a: [{}", ",".repeat(LARGEST - 10))),
        ("pairs in a list", format!("a: [{}]", "a: b,".repeat(LARGEST / 5 - 10))),
        ("pairs without end", format!("a: [{}", "{a,".repeat(LARGEST / 3 - 10))),
        ("documents", filled("---\n")),
        ("tags", filled("!a ")),
        ("directives", filled("%A b\n")),
        ("pattern (a+)+$", pattern("(a+)+$")),
        (r"pattern \pL{500}", pattern(r"\pL{500}")),
        (r"pattern \w{500}", pattern(r"\w{500}")),
        (r"pattern (?i)\w{500}", pattern(r"(?i)\w{500}")),
        ("pattern of nested counts", pattern("((a{0,100}){0,100}){0,100}")),
        ("pattern of nested empties", pattern("(((|a){0,50}){0,50}){0,50}")),
        ("pattern of parentheses", pattern(&"(".repeat(LONGEST_PATTERN))),
        ("100 times a refused pattern", asking_for(r"(\w{40}){40}", 100)),
        ("100 times a pattern that is no pattern", asking_for(&"(".repeat(LONGEST_PATTERN), 100)),
        // Those that take longest to compile or to match, of a few sizes that are allowed.
        (r"100 times \w{5}", asking_for(r"\w{5}", 100)),
        ("100 times [^a]{0,62}", asking_for("[^a]{0,62}", 100)),
        ("100 times (?:.*a){15}", asking_for("(?:.*a){15}", 100)),
        ("100 times (?:.*a){30}", asking_for("(?:.*a){30}", 100)),
        ("100 times (?:a?){200}", asking_for("(?:a?){200}", 100)),
        ("100 times (?:a?){800}", asking_for("(?:a?){800}", 100)),
        ("100 times [ab]*a[ab]{222}", asking_for("[ab]*a[ab]{222}", 100)),
        ("100 times [ab]*a[ab]{109}", asking_for("[ab]*a[ab]{109}", 100)),
        ("100 times [ab]*a[ab]{254}", asking_for("[ab]*a[ab]{254}", 100)),
        ("100 times [ab]*a?[ab]{0,450}", asking_for("[ab]*a?[ab]{0,450}", 100)),
        ("100 times [ab]*a?[ab]{0,900}", asking_for("[ab]*a?[ab]{0,900}", 100)),
        ("100 times [ab]*a?[ab]{0,3000}", asking_for("[ab]*a?[ab]{0,3000}", 100)),
        (
            "a default of 256 KiB",
            format!(
                "{HEAD}variables: {{x: {{type: string, default: {}}}}}\n{STEPS}",
                "x".repeat(LARGEST - 300)
            ),
        ),
        (
            "a default that is a list",
            format!("{HEAD}variables: {{x: {{type: array, default: [{}]}}}}\n{STEPS}", "x,".repeat(19_000)),
        ),
        ("places without end", one_command(&"{{".repeat(LARGEST / 2 - 200))),
        ("places", one_command(&"{{x}}".repeat(LARGEST / 5 - 100))),
        ("places that are none", one_command(&r"\{{".repeat(LARGEST / 3 - 200))),
        ("200 steps that name many variables", many_references()),
        ("one step of many properties", many_properties()),
        ("a list of many volumes", many_volumes()),
    ]
}

fn aliases() -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..20 {
        let below = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(text, "a{level}: &a{level} [{below}]").ok();
    }
    text
}

/// Returns a definition with variables that have this pattern, and the longest defaults that it is tried
/// on.
fn asking_for(pattern: &str, count: usize) -> String {
    let (pattern, default) = (pattern.replace('\'', "''"), "a".repeat(256));
    let variable = |number| {
        format!("  v{number}: {{type: string, default: {default}, validation_pattern: '{pattern}'}}\n")
    };
    format!("{HEAD}variables:\n{}{STEPS}", (0..count).map(variable).collect::<String>())
}

fn one_command(command: &str) -> String {
    format!(
        "{HEAD}variables: {{x: {{type: string}}}}\nexecution: {{run: [{{name: a, type: command, properties: {{cmd: '{command}'}}}}]}}\n"
    )
}

fn many_references() -> String {
    let variables: String = (0..100).map(|n| format!("  a_variable_{n}: {{type: string}}\n")).collect();
    let places: String = (0..60).map(|n| format!("{{{{a_variable_{}}}}}", 99 - n)).collect();
    let step = format!("    - {{name: a, type: command, properties: {{cmd: '{places}'}}}}\n");
    format!("{HEAD}variables:\n{variables}execution:\n  run:\n{}", step.repeat(200))
}

fn unknown_properties() -> String {
    let properties: String = (0..40).map(|n| format!("p{n}: x, ")).collect();
    format!(
        "execution:\n  run:\n{}",
        format!("    - {{name: a, type: docker, properties: {{action: run, {properties}}}}}\n").repeat(200)
    )
}

fn many_properties() -> String {
    let properties: String = (0..9_000).map(|n| format!("p{n}: x, ")).collect();
    format!(
        "{HEAD}execution: {{run: [{{name: a, type: docker, properties: {{action: run, {properties}}}}}]}}\n"
    )
}

fn many_volumes() -> String {
    let volumes: String = (0..15_000).map(|n| format!("v{n}:/x, ")).collect();
    format!(
        "{HEAD}execution: {{run: [{{name: a, type: docker, properties: {{action: run, name: a, image: a, volumes: [{volumes}]}}}}]}}\n"
    )
}
