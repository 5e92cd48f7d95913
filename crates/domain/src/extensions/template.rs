//! Templates: texts of a definition in which `{{ name }}` is a placeholder.
//!
//! **Invariant:** a value never becomes part of a shell script. There the placeholder becomes a reference
//! to an environment variable, quoted so that it is one word, whatever its value is.

use std::collections::BTreeMap;

/// The value that every definition may refer to beside its variables: the path of the run's workspace.
pub const WORKSPACE: &str = "workspace";
/// The prefix of the environment variables that carry values.
const ENVIRONMENT: &str = "LAUNCHWAY_VARIABLE_";

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The value of this name.
    Place(String),
}

/// Values of placeholders by name.
pub type Values = BTreeMap<String, String>;

/// Returns the environment variable that carries the value of `name` to a shell.
#[must_use]
pub fn environment_name(name: &str) -> String {
    format!("{ENVIRONMENT}{name}")
}

impl Template {
    /// Parses a text. `\{{` is `{{` itself.
    ///
    /// # Errors
    /// A sentence for a placeholder that is not closed, or that contains anything but a name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        let mut literal = String::new();
        while let Some(start) = rest.find("{{") {
            let (before, place) = (&rest[..start], &rest[start + 2..]);
            if let Some(before) = before.strip_suffix('\\') {
                literal.push_str(before);
                literal.push_str("{{");
                rest = place;
                continue;
            }
            let end = place
                .find("}}")
                .ok_or("`{{` is not closed by `}}`; write `\\{{` for the characters themselves")?;
            let name = place[..end].trim();
            if !is_name(name) {
                let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
                return Err(format!(
                    "`{{{{ {shown} }}}}` is not the name of a variable; write `\\{{{{` for the characters themselves"
                ));
            }
            literal.push_str(before);
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Place(name.to_owned()));
            rest = &place[end + 2..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { source: text.to_owned(), parts })
    }

    /// Returns the text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Place(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Returns the text with the values in place of the placeholders, unchanged. A missing value is empty.
    #[must_use]
    pub fn render(&self, values: &Values) -> String {
        let shown = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Place(name) => values.get(name).map(String::as_str).unwrap_or_default(),
        });
        shown.collect()
    }

    /// Returns the text for a shell: each placeholder becomes a reference to the [environment
    /// variable](environment_name) with its value, as one word or as a part of the quoted word around it.
    ///
    /// # Errors
    /// A sentence if a placeholder is in a position where a shell would not expand the reference.
    pub fn for_shell(&self) -> Result<String, String> {
        let (mut text, mut quotes) = (String::new(), Quotes::default());
        for part in &self.parts {
            match part {
                Part::Text(literal) => {
                    quotes.follow(literal);
                    text.push_str(literal);
                }
                Part::Place(name) if quotes.are_unclear => {
                    return Err(format!(
                        "`{{{{ {name} }}}}` stands behind `$'`, `<<` or a command in double quotes, where it is not clear what is quoted: put the value into a variable of the shell before that, as `x={{{{ {name} }}}}`"
                    ));
                }
                Part::Place(name) => {
                    let quote = match quotes.around {
                        Around::Nothing => "\"",
                        Around::Double => "",
                        Around::Single => {
                            return Err(format!(
                                "`{{{{ {name} }}}}` stands in single quotes, where a shell replaces nothing: use double quotes or none"
                            ));
                        }
                    };
                    text.extend([quote, "${", ENVIRONMENT, name, "}", quote]);
                    (quotes.is_escaped, quotes.last) = (false, Some('}'));
                }
            }
        }
        Ok(text)
    }
}

/// Returns whether this is a valid name of a variable or placeholder.
#[must_use]
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The shell quotes around the next character.
///
/// They are unclear from the first construct that only a complete shell parser could follow:
/// here-documents, commands in double quotes, and quotes in the braces of a parameter in double quotes.
#[derive(Default)]
struct Quotes {
    around: Around,
    is_escaped: bool,
    is_comment: bool,
    are_unclear: bool,
    /// The character before.
    last: Option<char>,
    /// The number of open braces of parameters, in double quotes.
    parameters: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Around {
    #[default]
    Nothing,
    Single,
    Double,
}

impl Quotes {
    fn follow(&mut self, text: &str) {
        for c in text.chars() {
            let last = self.last.replace(c);
            if std::mem::take(&mut self.is_escaped) {
                // An escaped character is always part of a word.
                self.last = Some('\\');
                continue;
            }
            if self.is_comment {
                self.is_comment = c != '\n';
                continue;
            }
            self.are_unclear |= self.is_unsupported_quoting(last, c);
            self.around = match (self.around, c) {
                (Around::Nothing | Around::Double, '\\') => {
                    self.is_escaped = true;
                    self.around
                }
                (Around::Nothing, '#') => {
                    self.is_comment = last.is_none_or(|last| last.is_whitespace() || ";&|()".contains(last));
                    self.around
                }
                (Around::Nothing, '\'') => Around::Single,
                (Around::Nothing, '"') => Around::Double,
                (Around::Single, '\'') | (Around::Double, '"') => Around::Nothing,
                (around, _) => around,
            };
        }
    }

    fn is_unsupported_quoting(&mut self, last: Option<char>, c: char) -> bool {
        match (self.around, last, c) {
            (Around::Nothing, Some('<'), '<') | (Around::Nothing, Some('$'), '\'') => true,
            (Around::Double, Some('$'), '(') | (Around::Double, _, '`') => true,
            (Around::Double, Some('$'), '{') => {
                self.parameters += 1;
                false
            }
            (Around::Double, _, '}') => {
                self.parameters = self.parameters.saturating_sub(1);
                false
            }
            (Around::Double, _, '"') => self.parameters > 0,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> Values {
        Values::from([("who".to_owned(), "ada {{ who }}".to_owned())])
    }

    fn shell(text: &str) -> Result<String, String> {
        Template::parse(text).unwrap().for_shell()
    }

    #[test]
    fn places_are_filled_once() {
        for (text, rendered) in [
            ("hello {{ who }}!", "hello ada {{ who }}!"),
            ("{{who}}{{  who  }}", "ada {{ who }}ada {{ who }}"),
            ("nobody: {{ nobody }}.", "nobody: ."),
            (r"\{{ who }} {", "{{ who }} {"),
            ("", ""),
            ("a } b }} c", "a } b }} c"),
        ] {
            assert_eq!(Template::parse(text).unwrap().render(&values()), rendered, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for (text, told) in [
            ("{{ who", "`{{` is not closed by `}}`; write `\\{{` for the characters themselves"),
            (
                "{{ .Names }}",
                "`{{ .Names }}` is not the name of a variable; write `\\{{` for the characters themselves",
            ),
            ("{{}}", "`{{  }}` is not the name of a variable; write `\\{{` for the characters themselves"),
        ] {
            assert_eq!(Template::parse(text).unwrap_err(), told);
        }
    }

    #[test]
    fn in_a_shell_a_value_is_one_word_whatever_is_in_it() {
        for (text, told) in [
            ("echo hello {{ who }} > x", r#"echo hello "${LAUNCHWAY_VARIABLE_who}" > x"#),
            (r#"echo "hello {{ who }}""#, r#"echo "hello ${LAUNCHWAY_VARIABLE_who}""#),
            ("echo 'it' {{ who }}", r#"echo 'it' "${LAUNCHWAY_VARIABLE_who}""#),
            (r#"echo \"{{ who }}"#, r#"echo \""${LAUNCHWAY_VARIABLE_who}""#),
            (r#"echo "\"{{ who }}""#, r#"echo "\"${LAUNCHWAY_VARIABLE_who}""#),
        ] {
            assert_eq!(shell(text).unwrap(), told);
        }
        assert!(shell("echo '{{ who }}'").unwrap_err().contains("single quotes"));
        assert!(shell(r#"echo "'{{ who }}'""#).is_ok());
    }

    #[test]
    fn quotes_in_a_comment_are_none() {
        for (text, told) in [
            ("# don't\necho {{ who }}", "# don't\necho \"${LAUNCHWAY_VARIABLE_who}\""),
            ("true;# say \"\necho {{ who }}", "true;# say \"\necho \"${LAUNCHWAY_VARIABLE_who}\""),
            ("echo a#\" {{ who }}\"", "echo a#\" ${LAUNCHWAY_VARIABLE_who}\""),
            ("echo \\ #\" {{ who }}\"", "echo \\ #\" ${LAUNCHWAY_VARIABLE_who}\""),
            (
                "echo {{ who }}#\" {{ who }}\"",
                "echo \"${LAUNCHWAY_VARIABLE_who}\"#\" ${LAUNCHWAY_VARIABLE_who}\"",
            ),
        ] {
            assert_eq!(shell(text).unwrap(), told);
        }
    }

    #[test]
    fn where_only_a_shell_knows_what_is_quoted_there_is_no_place() {
        for text in [
            r#"echo "$(echo {{ who }})""#,
            r#"echo "`echo {{ who }}`""#,
            r#"echo "${x:-"{{ who }}"}""#,
            r#"echo "${x:-${y}"{{ who }}"}""#,
            "cat <<EOF\nsay \"\nEOF\necho {{ who }}",
            r"echo $'\'' {{ who }}",
        ] {
            assert!(shell(text).unwrap_err().contains("not clear what is quoted"), "{text}");
        }
        for text in [
            r#"echo $(echo {{ who }} "{{ who }}")"#,
            r#"echo "${HOME}/{{ who }}""#,
            r#"x={{ who }}; echo "$(echo "$x")""#,
            r#"echo "\$({{ who }})""#,
        ] {
            assert!(shell(text).is_ok(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_places_stays_as_it_is(text in "[^{\\\\]{0,60}") {
            let template = Template::parse(&text).unwrap();
            prop_assert_eq!(template.render(&values()), text.clone());
            prop_assert_eq!(template.for_shell().unwrap(), text);
        }

        #[test]
        fn shell_placeholders_become_references_only(before in "[ -~&&[^{\\\\]]{0,20}") {
            let template = Template::parse(&format!("{before}{{{{ x }}}}")).unwrap();
            if let Ok(text) = template.for_shell() {
                let reference = "${LAUNCHWAY_VARIABLE_x}";
                let allowed = [format!("{before}{reference}"), format!("{before}\"{reference}\"")];
                prop_assert!(allowed.contains(&text), "{}", text);
            }
        }

        #[test]
        fn whatever_is_written_is_read_or_refused(text in "[{}\\\\ a-z'\"]{0,40}") {
            if let Ok(template) = Template::parse(&text) {
                let _either = template.for_shell();
                prop_assert!(template.names().all(is_name));
            }
        }
    }
}
