//! Reads files of `NAME=value` lines.

use super::{interpolation::Interpolation, service::is_variable};

/// Returns the variables of a file, in its order.
pub(super) fn read(
    text: &str,
    path: &str,
    interpolation: &mut Interpolation<'_>,
) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let at = |what: &str| format!("`{path}`, line {}: {what}", number + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let (name, value) = line.split_once('=').map_or((line, None), |(name, value)| (name, Some(value)));
        let name = name.trim_end();
        if !is_variable(name) {
            return Err(at("it has to be `NAME=value`"));
        }
        let value = match value {
            // As in compose: the variable of the same name is passed on.
            None => interpolation.value(name).map(str::to_owned),
            Some(value) => Some(unquoted(value.trim(), interpolation).map_err(|what| at(&what))?),
        };
        variables.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(variables)
}

/// Single quotes are literal; in double quotes and without quotes, variables are replaced.
fn unquoted(value: &str, interpolation: &mut Interpolation<'_>) -> Result<String, String> {
    if let Some(inside) = value.strip_prefix('\'') {
        let (inside, _comment) = inside.split_once('\'').ok_or("a quote is not closed")?;
        return Ok(inside.to_owned());
    }
    let Some(inside) = value.strip_prefix('"') else {
        let end = value.find(" #").or_else(|| value.starts_with('#').then_some(0));
        return interpolation.text(value[..end.unwrap_or(value.len())].trim_end());
    };
    let (mut text, mut characters) = (String::new(), inside.chars());
    while let Some(c) = characters.next() {
        match c {
            '"' => return interpolation.text(&text),
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('$') => text.push_str("$$"),
                Some(c) => text.push(c),
                None => break,
            },
            c => text.push(c),
        }
    }
    Err("a quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn variables_are_read_line_by_line() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned())]).try_into().unwrap();
        let mut interpolation = Interpolation::new(&known);
        let text =
            "# a comment\n\nexport B=$A b # c\nC='$A #'\nD=\"x\\n\\\"$A\\$\" # d\nA\nNOBODY\nE=\nF=a#b";
        let read = read(text, "x.env", &mut interpolation).unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [("B", "1 b"), ("C", "$A #"), ("D", "x\n\"1$"), ("A", "1"), ("E", ""), ("F", "a#b")];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_no_variable_is_reported_by_its_line() {
        let known = Default::default();
        for (text, told) in [
            ("A=1\nroot:x:0:0", "`x.env`, line 2: it has to be `NAME=value`"),
            ("A='x", "`x.env`, line 1: a quote is not closed"),
            ("A=\"x\\", "`x.env`, line 1: a quote is not closed"),
        ] {
            assert_eq!(read(text, "x.env", &mut Interpolation::new(&known)).unwrap_err(), told);
        }
    }
}
