//! Prompts on the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use crate::{
    failure::{Failure, Kind, Outcome, failed},
    screen::Screen,
};

/// Asks for a line of text; an empty answer selects the default.
pub(crate) fn text(screen: &Screen, question: &str, proposal: Option<&str>) -> Outcome<String> {
    if !screen.is_interactive() {
        return match proposal {
            Some(proposal) => Ok(proposal.to_owned()),
            None => Err(no_terminal(question)),
        };
    }
    loop {
        match proposal {
            Some(proposal) => ask(&format!("{question} [{proposal}]: "))?,
            None => ask(&format!("{question}: "))?,
        }
        let answer = line()?;
        match (answer.trim(), proposal) {
            ("", Some(proposal)) => return Ok(proposal.to_owned()),
            ("", None) => {}
            (answer, _) => return Ok(answer.to_owned()),
        }
    }
}

/// Asks until the answer passes `check`, which returns the error otherwise.
pub(crate) fn checked<T>(
    screen: &Screen,
    question: &str,
    proposal: Option<&str>,
    check: impl Fn(&str) -> Result<T, String>,
) -> Outcome<T> {
    loop {
        match check(&text(screen, question, proposal)?) {
            Ok(answer) => return Ok(answer),
            Err(wrong) if screen.is_interactive() => screen.warn(&wrong),
            Err(wrong) => return Err(Failure::new(Kind::Usage, wrong)),
        }
    }
}

/// Asks the user to confirm by typing the name of what will be lost; `--yes` skips the question.
pub(crate) fn meant(screen: &Screen, question: &str, name: &str, yes: bool) -> Outcome<bool> {
    if !yes && screen.is_interactive() {
        return Ok(text(screen, &format!("{question} Type the name to confirm"), None)? == name);
    }
    agreed(screen, question, yes)
}

/// Asks for a secret: without echo on a terminal, or a line from a pipe. Never an argument, which every
/// user of the machine can read.
pub(crate) fn secret(question: &str) -> Outcome<String> {
    let cannot = || failed(format!("{question} cannot be read"));
    if io::stdin().is_terminal() {
        rpassword::prompt_password(format!("{question}: ")).map_err(cannot())
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(cannot())?;
        if line.is_empty() {
            return Err(no_terminal(question));
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// Asks for a new secret: twice on a terminal, so that a typing error does not lock the user out.
pub(crate) fn new_secret(screen: &Screen, question: &str) -> Outcome<String> {
    loop {
        let first = secret(question)?;
        if !io::stdin().is_terminal() || secret(&format!("{question} (again)"))? == first {
            return Ok(first);
        }
        screen.warn("the entries do not match: try again");
    }
}

/// Asks for several secrets: without echo on a terminal. In a pipe a single secret is the whole input, so
/// that it may have several lines; several secrets are one line each.
pub(crate) fn secrets(questions: &[String]) -> Outcome<Vec<String>> {
    if io::stdin().is_terminal() {
        return questions.iter().map(|question| secret(question)).collect();
    }
    match questions {
        [question] => Ok(vec![all(question)?]),
        questions => {
            let secrets = questions.iter().map(|question| secret(question)).collect::<Outcome<_>>()?;
            match all("standard input")? {
                rest if rest.is_empty() => Ok(secrets),
                _ => Err(Failure::new(Kind::Usage, "standard input has more lines than there are values")
                    .hint("set values with several lines one at a time")),
            }
        }
    }
}

/// Returns the whole standard input, without the final line end.
fn all(question: &str) -> Outcome<String> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(failed(format!("{question} cannot be read")))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// Returns the content of a file, or of standard input for `-`.
pub(crate) fn file(name: &str) -> Outcome<String> {
    let cannot = || failed(format!("{name} cannot be read"));
    if name != "-" {
        return std::fs::read_to_string(name).map_err(cannot());
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(cannot())?;
    Ok(text)
}

/// Asks for a confirmation; `--yes` skips the question.
pub(crate) fn agreed(screen: &Screen, question: &str, yes: bool) -> Outcome<bool> {
    if yes {
        return Ok(true);
    }
    if !screen.is_interactive() {
        return Err(Failure::new(
            Kind::Usage,
            format!("{question} A confirmation is required, and there is no terminal"),
        )
        .hint("use --yes to confirm"));
    }
    ask(&format!("{question} [y/N] "))?;
    Ok(matches!(line()?.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn ask(words: &str) -> Outcome {
    let mut terminal = io::stderr().lock();
    terminal
        .write_all(words.as_bytes())
        .and_then(|()| terminal.flush())
        .map_err(failed("cannot write to the terminal"))
}

fn line() -> Outcome<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).map_err(failed("cannot read the answer"))?;
    if read == 0 {
        return Err(Failure::new(Kind::Usage, "no answer was given"));
    }
    Ok(line)
}

fn no_terminal(question: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{question} is required, and cannot be asked for without a terminal"))
        .hint("pass it as an argument, or a secret on standard input; see --help")
}
