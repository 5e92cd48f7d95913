//! The instructions of a Dockerfile, in each way in which a version of docker may read it.
//!
//! Versions disagree about where an instruction ends. A text is therefore read in all of these ways,
//! and a reading with an unknown instruction counts for nothing: docker refuses such a file whole.

/// How many texts below an instruction are looked for.
const MOST_HEREDOCS: usize = 200;

const KNOWN: &[&str] = &[
    "add",
    "arg",
    "cmd",
    "copy",
    "entrypoint",
    "env",
    "expose",
    "from",
    "healthcheck",
    "label",
    "maintainer",
    "onbuild",
    "run",
    "shell",
    "stopsignal",
    "user",
    "volume",
    "workdir",
];

/// One way to read a Dockerfile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// `<<END` takes the lines up to `END`.
    heredocs: bool,
    /// A comment inside an instruction may have spaces before it.
    indented_comments: bool,
    /// Two escape characters at the end of a line do not continue it.
    doubled_escapes: bool,
}

/// An instruction, its name in lower case.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) name: String,
    pub(super) rest: String,
}

/// Why there are no instructions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Docker would not take it either, when read in this way.
    Nonsense(String),
    /// It is not certain what docker would take it for.
    Doubtful(String),
}

impl Reading {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self {
            heredocs: bits & 1 == 0,
            indented_comments: bits & 2 == 0,
            doubled_escapes: bits & 4 == 0,
        })
    }

    pub(super) fn instructions(self, text: &str) -> Result<Vec<Instruction>, Unread> {
        let lines = lines_of(text)?;
        let escape = escape_of(&lines)?;
        let mut found = Vec::new();
        let mut heredocs = 0;
        let mut at = 0;
        while let Some(first) = lines.get(at) {
            at += 1;
            let first = first.trim_start();
            if first.is_empty() || first.starts_with('#') {
                continue;
            }
            let (mut line, mut goes_on) = self.without_continuation(first, escape);
            while goes_on && let Some(next) = lines.get(at) {
                at += 1;
                let is_comment =
                    next.starts_with('#') || (self.indented_comments && next.trim_start().starts_with('#'));
                if is_comment || next.trim().is_empty() {
                    continue;
                }
                let (more, still) = self.without_continuation(next, escape);
                line.push_str(&more);
                goes_on = still;
            }
            let Some(instruction) = Instruction::of(&line)? else { continue };
            if self.heredocs && matches!(instruction.name.as_str(), "run" | "copy" | "add" | "onbuild") {
                for marker in markers(&instruction.rest) {
                    heredocs += 1;
                    if heredocs > MOST_HEREDOCS {
                        return Err(doubtful("has too many texts that begin with `<<`"));
                    }
                    let ends = |line: &&str| {
                        marker.name == if marker.chomp { line.trim_start_matches('\t') } else { line }
                    };
                    let Some(length) = lines.iter().skip(at).position(ends) else { continue };
                    if marker.is_doubtful {
                        return Err(doubtful(&format!("can be read in two ways at `<<{}`", marker.name)));
                    }
                    at += length + 1;
                }
            }
            found.push(instruction);
        }
        Ok(found)
    }

    fn without_continuation(self, line: &str, escape: char) -> (String, bool) {
        let trimmed = line.trim_end_matches([' ', '\t']);
        match trimmed.strip_suffix(escape) {
            Some(before) if !(self.doubled_escapes && before.ends_with(escape)) => (before.to_owned(), true),
            _ => (line.to_owned(), false),
        }
    }
}

impl Instruction {
    /// `None` for an empty line.
    pub(super) fn of(line: &str) -> Result<Option<Self>, Unread> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let (name, rest) = line.split_once(is_space).unwrap_or((line, ""));
        let name = name.to_lowercase();
        if KNOWN.contains(&name.as_str()) {
            Ok(Some(Self { name, rest: rest.trim().to_owned() }))
        } else {
            Err(Unread::Nonsense(name.chars().filter(|c| !c.is_control()).take(40).collect()))
        }
    }
}

/// What separates words.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

fn doubtful(what: &str) -> Unread {
    Unread::Doubtful(format!("the Dockerfile {what}"))
}

fn lines_of(text: &str) -> Result<Vec<&str>, Unread> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    if lines.iter().any(|line| line.contains('\r')) {
        return Err(doubtful("has a carriage return within a line"));
    }
    Ok(lines)
}

/// The character that continues a line. Versions disagree about which lines may say so, except for
/// the first.
fn escape_of(lines: &[&str]) -> Result<char, Unread> {
    let mut escape = '\\';
    for (number, line) in lines.iter().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            break;
        }
        let squeezed: String = line.split_whitespace().collect::<String>().to_lowercase();
        let Some(value) = squeezed.strip_prefix("#escape=") else { continue };
        let is_plain = line.chars().all(|c| !c.is_whitespace() || matches!(c, ' ' | '\t'));
        match value {
            "\\" => {}
            "`" if number == 0 && is_plain && lines.first().is_some_and(|first| first.starts_with('#')) => {
                escape = '`';
            }
            _ => return Err(doubtful("must say `# escape=` on its first line, with `\\` or a backtick")),
        }
    }
    Ok(escape)
}

/// The beginning of a text below an instruction.
struct Marker {
    name: String,
    chomp: bool,
    is_doubtful: bool,
}

/// The words that look like `<<END`, outside quotes or where it is not certain whether they are.
fn markers(rest: &str) -> Vec<Marker> {
    let mut found = Vec::new();
    let mut quote = None;
    let mut begins_word = true;
    let mut is_doubtful = false;
    for (at, c) in rest.char_indices() {
        if begins_word && (c == '<' || c.is_ascii_digit()) && (quote.is_none() || is_doubtful) {
            let ahead = rest.get(at..).unwrap_or_default();
            found.extend(marker(ahead, is_doubtful));
        }
        begins_word = c.is_whitespace();
        is_doubtful |=
            matches!(c, '\\' | '`') || (c == '$' && rest.get(at + 1..).is_some_and(|r| r.starts_with('{')));
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
    }
    found
}

fn marker(ahead: &str, is_doubtful: bool) -> Option<Marker> {
    let word = ahead.split(char::is_whitespace).next()?;
    let after = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")?;
    let (chomp, after) = after.strip_prefix('-').map_or((false, after), |after| (true, after));
    let name =
        ["\"", "'"].iter().find_map(|quote| after.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(after);
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    if name.is_empty() || name.starts_with('<') {
        return None;
    }
    let name_without_quotes = name.replace(['"', '\''], "");
    Some(Marker { name: name_without_quotes, chomp, is_doubtful: is_doubtful || !is_plain })
}
