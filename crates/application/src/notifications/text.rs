//! The texts of messages.

use launchway_domain::{
    notifications::{EventKind, Fact},
    value::is_invisible,
};
use serde_json::json;

use super::document::{Document, shortened};

/// The largest length of a message, in characters. Slack truncates after 40,000 and recommends 4,000;
/// Discord rejects more than 2,000.
const LONGEST_SLACK: usize = 4000;
const LONGEST_DISCORD: usize = 2000;
/// The largest length of a log line, in characters.
const LONGEST_LINE: usize = 200;
/// The largest length of a user-supplied value, in characters.
const LONGEST_DETAIL: usize = 300;

/// Returns the request body for Slack.
pub(super) fn slack(document: &Document) -> String {
    let marks = Marks { text: escaped_for_slack, code: escaped_for_slack, bold: "*" };
    json!({ "text": chat(document, &marks, LONGEST_SLACK) }).to_string()
}

/// Returns the request body for Discord. No text in it can mention users.
pub(super) fn discord(document: &Document) -> String {
    // In a code block only its end is markup.
    let marks = Marks { text: escaped_for_discord, code: str::to_owned, bold: "**" };
    let content = chat(document, &marks, LONGEST_DISCORD);
    json!({ "content": content, "allowed_mentions": { "parse": [] } }).to_string()
}

/// Returns the subject and the text of a mail.
pub(super) fn mail(document: &Document) -> (String, String) {
    let headline = headline(document);
    let mut text = format!("{headline}.\n\n");
    for (label, value) in details(document) {
        text.push_str(&format!("{label}: {value}\n"));
    }
    text.push_str(&format!("Time: {}\n", document.timestamp()));
    let lines = document.last_lines();
    if !lines.is_empty() {
        text.push_str("\nThe end of the log:\n\n");
        for line in lines {
            text.push_str(&format!("    {}\n", shortened(&one_line(line), LONGEST_LINE)));
        }
    }
    if let Some(url) = document.url() {
        text.push_str(&format!("\n{url}\n"));
    }
    (format!("[Launchway] {headline}"), text)
}

/// The markup of a chat service.
struct Marks {
    /// Escapes user-supplied text.
    text: fn(&str) -> String,
    /// Escapes user-supplied text in a code block.
    code: fn(&str) -> String,
    bold: &'static str,
}

fn chat(document: &Document, marks: &Marks, longest: usize) -> String {
    let bold = marks.bold;
    let mut text = format!("{bold}{}{bold}", (marks.text)(&headline(document)));
    for (label, value) in details(document) {
        text.push_str(&format!("\n{label}: {}", (marks.text)(&value)));
    }
    let link = document.url().map(|url| format!("\n{url}")).unwrap_or_default();
    let left = longest.saturating_sub(text.chars().count() + link.chars().count());
    text.push_str(&block(&document.last_lines(), marks.code, left));
    text.push_str(&link);
    shortened(&text, longest)
}

/// Returns a code block with as many of the last lines as fit into `room`.
fn block(lines: &[&str], escape: fn(&str) -> String, room: usize) -> String {
    const FENCE: &str = "\n```\n```";
    let mut left = room.saturating_sub(FENCE.len());
    let mut kept: Vec<String> = Vec::new();
    for line in lines.iter().rev() {
        // No line can end the code block.
        let line = escape(&shortened(&one_line(line), LONGEST_LINE).replace('`', "'"));
        let length = line.chars().count() + 1;
        if length > left {
            break;
        }
        left -= length;
        kept.push(line);
    }
    if kept.is_empty() {
        return String::new();
    }
    kept.reverse();
    format!("\n```\n{}\n```", kept.join("\n"))
}

/// Returns a summary of the event in one line.
pub(super) fn headline(document: &Document) -> String {
    let get = |fact| document.get(fact).map(|value| one_line(&value)).unwrap_or_default();
    let application = || match document.get(Fact::Environment) {
        Some(environment) => format!("{} ({})", get(Fact::Application), one_line(&environment)),
        None => get(Fact::Application),
    };
    let by = || document.get(Fact::By).map(|by| format!(" by {}", one_line(&by))).unwrap_or_default();
    match document.kind() {
        Some(EventKind::DeploymentSucceeded) if document.get(Fact::RollbackTo).is_some() => {
            format!("{} was rolled back", application())
        }
        Some(EventKind::DeploymentSucceeded) => format!("{} was deployed", application()),
        Some(EventKind::DeploymentFailed) => format!("The deployment of {} failed", application()),
        Some(EventKind::ApplicationRecovered) => format!("{} is healthy again", application()),
        Some(EventKind::CertificateExpiring) => {
            let date: String = get(Fact::NotAfter).chars().take(10).collect();
            format!("The certificate of {} expires on {date}", get(Fact::Host))
        }
        Some(EventKind::DeploymentCancelled) => format!("The deployment of {} was cancelled", application()),
        Some(EventKind::ExtensionCompleted) => format!("The run of {} is complete", get(Fact::Extension)),
        Some(EventKind::ExtensionFailed) => format!("The run of {} failed", get(Fact::Extension)),
        Some(EventKind::MemberAdded) => {
            format!("{} was added as {}{}", get(Fact::Email), get(Fact::Role), by())
        }
        Some(EventKind::MemberRemoved) => format!("{} was removed{}", get(Fact::Email), by()),
        Some(EventKind::LoginNewDevice) => format!("{} logged in from a new device", get(Fact::User)),
        Some(EventKind::Test) => format!("Test message requested{}: this channel works", by()),
        None => "Unknown event".to_owned(),
    }
}

/// Returns further facts of the event, each with a label.
fn details(document: &Document) -> Vec<(&'static str, String)> {
    let labels = [
        (Fact::Organization, "Organization"),
        (Fact::Host, "Address"),
        (Fact::Branch, "Branch"),
        (Fact::Commit, "Commit"),
        (Fact::RollbackTo, "Rolled back to deployment"),
        (Fact::RequestedBy, "Requested by"),
        (Fact::Seconds, "Took"),
        (Fact::ExitCode, "Exit code"),
        (Fact::Reason, "Reason"),
        (Fact::Address, "From"),
        (Fact::UserAgent, "With"),
    ];
    let shown = |(fact, label)| {
        let value = shortened(&one_line(&document.get(fact)?), LONGEST_DETAIL);
        Some((label, if fact == Fact::Seconds { format!("{value} s") } else { value }))
    };
    labels.into_iter().filter_map(shown).collect()
}

/// Returns user-supplied text on one line, so that it can neither forge a line of the message nor reorder
/// the displayed text.
fn one_line(text: &str) -> String {
    let ends_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if ends_line(c) { ' ' } else { c }).filter(|c| !is_invisible(*c)).collect()
}

/// Escapes text for Slack. Otherwise `<!channel>` would notify everyone, and `<https://…|text>` would hide
/// the target of a link. Backticks cannot be escaped, so they are replaced.
fn escaped_for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "'")
}

/// Escapes text for Discord. Otherwise it could hide the target of a link, or be rendered as markup.
fn escaped_for_discord(text: &str) -> String {
    let is_mark = |c| "\\*_~`|>[]()<#@:-".contains(c);
    text.chars().flat_map(|c| is_mark(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests;
