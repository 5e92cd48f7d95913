//! The JSON form of instructions: an array of texts.

/// The longest chain of arrays and objects in each other.
const MAX_DEPTH: usize = 100;

/// The reading of a text that begins with `[`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Array {
    /// An array of texts, and nothing behind it.
    Texts(Vec<String>),
    /// Not JSON, so that it is text for a shell or words.
    NotJson,
    /// JSON that versions of the engine read differently, or refuse.
    Ambiguous,
}

/// Reads the JSON form.
pub(super) fn array(text: &str) -> Array {
    if !text.starts_with('[') {
        return Array::NotJson;
    }
    let mut scanner = Scanner { rest: text };
    match scanner.value(0) {
        // Some versions of the engine ignore the text behind an array.
        Some(Value::Texts(texts)) if scanner.rest.trim().is_empty() => Array::Texts(texts),
        Some(_) => Array::Ambiguous,
        None if is_json_with_spaces(text) => Array::Ambiguous,
        None => Array::NotJson,
    }
}

/// Returns whether a text is JSON once its words are written with spaces between them: a tab is not allowed
/// in a text of JSON, and a space is.
fn is_json_with_spaces(text: &str) -> bool {
    let is_space = |c: char| c.is_control() || c.is_whitespace();
    let spaced: String = text.chars().map(|c| if is_space(c) { ' ' } else { c }).collect();
    spaced != text && Scanner { rest: &spaced }.value(0).is_some()
}

/// Writes the JSON form, without a character that could separate words.
pub(super) fn write_array(texts: &[String]) -> String {
    let mut out = String::from("[");
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                c if (c.is_control() || c.is_whitespace()) && c != ' ' => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out.push(']');
    out
}

enum Value {
    Text(String),
    Texts(Vec<String>),
    Other,
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return Some(Value::Other);
        }
        self.skip_spaces();
        match self.rest.chars().next()? {
            '"' => self.text().map(Value::Text),
            '[' => self.list(depth),
            '{' => self.object(depth),
            _ => ["true", "false", "null"]
                .iter()
                .any(|word| self.take(word))
                .then_some(Value::Other)
                .or_else(|| self.number()),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.take("[");
        self.skip_spaces();
        if self.take("]") {
            return Some(Value::Texts(Vec::new()));
        }
        let mut texts = Some(Vec::new());
        loop {
            match (self.value(depth + 1)?, &mut texts) {
                (Value::Text(text), Some(texts)) => texts.push(text),
                _ => texts = None,
            }
            self.skip_spaces();
            if self.take("]") {
                return Some(texts.map_or(Value::Other, Value::Texts));
            }
            self.take(",").then_some(())?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take("{");
        self.skip_spaces();
        if self.take("}") {
            return Some(Value::Other);
        }
        loop {
            self.skip_spaces();
            self.text()?;
            self.skip_spaces();
            self.take(":").then_some(())?;
            self.value(depth + 1)?;
            self.skip_spaces();
            if self.take("}") {
                return Some(Value::Other);
            }
            self.take(",").then_some(())?;
        }
    }

    fn text(&mut self) -> Option<String> {
        self.take("\"").then_some(())?;
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                c if c < ' ' => return None,
                c => text.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            c @ ('"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let unit = self.unit()?;
                let ahead = self.rest;
                let second = (0xd800..0xdc00).contains(&unit) && self.take("\\u");
                match second.then(|| self.unit()) {
                    Some(None) => return None,
                    Some(Some(low)) => {
                        let pair = char::decode_utf16([unit, low]).next()?.ok();
                        // A lone half is a replacement character to the engine, too.
                        if pair.is_none() {
                            self.rest = ahead;
                        }
                        pair.unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                    None => char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            _ => return None,
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits =
            self.rest.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.rest = self.rest.get(4..)?;
        u16::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) -> Option<Value> {
        self.take("-");
        if !self.take("0") {
            self.digits()?;
        }
        if self.take(".") {
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            let _sign = self.take("+") || self.take("-");
            self.digits()?;
        }
        Some(Value::Other)
    }

    fn digits(&mut self) -> Option<()> {
        let after = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_digits = after.len() < self.rest.len();
        self.rest = after;
        has_digits.then_some(())
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self, word: &str) -> bool {
        let after = self.rest.strip_prefix(word);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }
}
