//! The words of an instruction and its options.

use super::{Flag, excerpt};

/// The characters that separate words.
pub(super) const SPACES: [char; 2] = [' ', '\t'];

/// The maximum number of options of an instruction.
const MAX_FLAGS: usize = 100;

/// The options of an instruction and the text behind them.
pub(super) struct Options<'a> {
    pub(super) flags: Vec<Flag>,
    pub(super) rest: &'a str,
    /// An option was written with quotes or escapes.
    pub(super) has_quotes: bool,
}

/// Separates the options from the rest, as the engine does.
///
/// The engine separates them byte by byte, and takes the bytes 0x85 and 0xA0, which occur in UTF-8
/// characters, for spaces. So an option has to be ASCII.
pub(super) fn options(text: &str) -> Result<Options<'_>, String> {
    let mut options = Options { flags: Vec::new(), rest: text.trim_start_matches(SPACES), has_quotes: false };
    while options.rest.starts_with("--") {
        let (word, length, has_quotes) = option(options.rest)?;
        options.has_quotes |= has_quotes;
        options.flags.push(flag(&word)?);
        if options.flags.len() > MAX_FLAGS {
            return Err(format!("the instruction has more than {MAX_FLAGS} options"));
        }
        options.rest = options.rest.get(length..).unwrap_or_default().trim_start_matches(SPACES);
    }
    Ok(options)
}

/// Returns the first word without its quotes, and its length as it was written.
fn option(text: &str) -> Result<(String, usize, bool), String> {
    let (mut word, mut quote, mut has_quotes) = (String::new(), None, false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if !c.is_ascii() {
            return Err(format!("the option `{}` may contain ASCII characters only", excerpt(&word)));
        }
        match (quote, c) {
            (None, ' ' | '\t') => return Ok((word, at, has_quotes)),
            (None, '"' | '\'') => (quote, has_quotes) = (Some(c), true),
            (Some(open), c) if open == c => quote = None,
            (_, '\\') => {
                has_quotes = true;
                word.extend(chars.next().map(|(_, c)| c));
            }
            (_, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote of the option `{}` is not closed", excerpt(&word)));
    }
    Ok((word, text.len(), has_quotes))
}

fn flag(word: &str) -> Result<Flag, String> {
    let shown = excerpt(word);
    let text = word.strip_prefix("--").unwrap_or_default();
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if !is_name {
        return Err(format!("`{shown}` is not an option"));
    }
    let is_value = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte);
    if !value.unwrap_or_default().bytes().all(is_value) {
        return Err(format!("the value of `{shown}` may not contain spaces, quotes or escapes"));
    }
    Ok(Flag { name: name.to_owned(), value: value.map(str::to_owned) })
}

/// Splits at spaces, whatever quotes there are.
pub(super) fn split(text: &str) -> Vec<String> {
    text.split(SPACES).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Splits at spaces outside quotes. Words keep their quotes and escapes.
pub(super) fn quoted_words(text: &str, escape: char) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match quote {
            None if SPACES.contains(&c) => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        word.push(c);
        if c == escape && quote != Some('\'') {
            word.extend(chars.next());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns the first word that some versions of the engine take for the beginning of a here-document,
/// whether it is in quotes or not.
pub(super) fn heredoc(text: &str) -> Option<&str> {
    text.split(SPACES).find(|word| {
        let after = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<");
        after.is_some_and(|name| {
            let name = name.strip_prefix('-').unwrap_or(name);
            !name.is_empty() && !name.starts_with('<')
        })
    })
}
