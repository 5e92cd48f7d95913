//! Two-factor authentication: a code of an authenticator at every login.

use std::io::{self, IsTerminal as _};

use clap::Subcommand;
use qrcode::{QrCode, render::unicode::Dense1x2};
use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::Outcome,
    prompt,
    screen::{Screen, Tone},
    session::Session,
};

#[derive(Debug, Subcommand)]
pub enum TwoFactorVerb {
    /// Set up an authenticator, and enable two-factor authentication with its first code
    Setup,
    /// Enable two-factor authentication with a code from your authenticator
    Enable {
        /// Code; asked for if it is not given
        #[arg(long)]
        code: Option<String>,
    },
    /// Disable two-factor authentication with a code from your authenticator, or a recovery code
    Disable {
        /// Code; asked for if it is not given
        #[arg(long)]
        code: Option<String>,
    },
}

#[derive(Deserialize)]
struct Setup {
    secret: String,
    otpauth_url: String,
}

#[derive(Deserialize)]
struct Enabled {
    recovery_codes: Vec<String>,
}

pub(crate) fn run(verb: TwoFactorVerb, session: &Session<'_>) -> Outcome {
    match verb {
        TwoFactorVerb::Setup => set_up(session),
        TwoFactorVerb::Enable { code } => enable(&asked(code)?, session),
        TwoFactorVerb::Disable { code } => {
            session.server.post("/auth/two-factor/disable").body(json!({"code": asked(code)?})).send()?;
            session.screen.remark("Disabled two-factor authentication");
            Ok(())
        }
    }
}

fn asked(code: Option<String>) -> Outcome<String> {
    code.map_or_else(|| prompt::secret("Authenticator code"), Ok)
}

fn set_up(session: &Session<'_>) -> Outcome {
    let screen = session.screen;
    let data = session.server.post("/auth/two-factor/setup").body(json!({})).send()?;
    screen.show(data, |Setup { secret, otpauth_url }| {
        format!("{}{otpauth_url}\nOr enter this key: {secret}\n", picture(&otpauth_url, screen))
    })?;
    if screen.is_for_programs() {
        return Ok(());
    }
    if !screen.is_interactive() {
        screen.remark(
            "Two-factor authentication is not enabled yet: run `launchway two-factor enable` with a code",
        );
        return Ok(());
    }
    loop {
        let code = prompt::text(screen, "Authenticator code", None)?;
        match enable(&code, session) {
            // A typing error is no reason to start again.
            Err(failure) if failure.is("invalid_credentials") => screen.print_failure(&failure),
            outcome => return outcome,
        }
    }
}

fn enable(code: &str, session: &Session<'_>) -> Outcome {
    let data = session.server.post("/auth/two-factor/enable").body(json!({"code": code})).send()?;
    session.screen.remark(
        "Enabled two-factor authentication. Each of these recovery codes works once, instead of a code:",
    );
    session.screen.show(data, |enabled: Enabled| {
        enabled.recovery_codes.iter().map(|code| format!("{code}\n")).collect()
    })?;
    session.screen.remark("They are not shown again: store them separately from your authenticator");
    Ok(())
}

/// Returns the URI as a QR code, if the output is a terminal.
fn picture(text: &str, screen: &Screen) -> String {
    if !io::stdout().is_terminal() {
        return String::new();
    }
    drawn(text).map_or_else(String::new, |lines| {
        // Cameras want dark on light, whatever the colours of the terminal are.
        lines.iter().map(|line| format!("{}\n", screen.tint(line, Tone::Contrast))).collect()
    })
}

/// Returns the lines of a QR code, in which a full block is light; `None` if the text is too long for one.
fn drawn(text: &str) -> Option<Vec<String>> {
    let code = QrCode::new(text).ok()?;
    // What the library calls dark is a full block, and a block is light here.
    let image = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    Some(image.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_light_around_and_as_wide_as_high() {
        let lines =
            drawn("otpauth://totp/Launchway:ada%40example.com?secret=ABCDEFGH234567&issuer=Launchway")
                .unwrap();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width));
        // Two rows to a line.
        assert_eq!(lines.len(), width.div_ceil(2));
        assert!(lines[0].chars().all(|c| c == '█'), "{}", lines[0]);
        let (last, others) = lines.split_last().unwrap();
        assert!(others.iter().all(|line| line.starts_with("████") && line.ends_with("████")));
        assert!(last.chars().all(|c| c == '▀'), "{last}");
    }

    #[test]
    fn what_is_too_long_has_no_picture() {
        assert_eq!(drawn(&"x".repeat(4_000)), None);
    }
}
