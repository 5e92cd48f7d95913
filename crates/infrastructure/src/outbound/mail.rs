//! Messages by mail.

mod message;
mod wire;

use std::{
    error::Error as _,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use launchway_domain::{
    logs::Masker,
    notifications::{Answer, Mail, MailLogin, MailSecurity, SendError, Sent},
};
use lettre::{
    Address,
    transport::smtp::{
        Error,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::AsyncSmtpConnection,
        commands::{Data, Mail as From, Rcpt, Starttls},
        extension::{ClientId, Extension, MailBodyParameter, MailParameter},
    },
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use self::{message::MimeMessage, wire::Wire};
use super::{Outbound, Time, guard::RequiredPermission, text::one_line};

/// The timeout of closing a connection after the mail was accepted.
const FAREWELL: Duration = Duration::from_secs(1);

pub(super) async fn send(outbound: &Outbound, mail: &Mail, time: Time) -> Result<Sent, SendError> {
    let message = MimeMessage::write(mail)?;
    let host = mail.host.as_str();
    let mut session = time.limit(host, Box::pin(open(outbound, mail))).await?;
    let taken = time.limit(host, Box::pin(session.hand_over(&message))).await;
    // The result of the mail is known. No later response of the server changes it.
    let _parted = timeout_at(time.end.min(Instant::now() + FAREWELL), session.connection.quit()).await;
    taken
}

/// Connects, encrypts as configured, and logs in.
async fn open<'a>(outbound: &Outbound, mail: &'a Mail) -> Result<Session<'a>, SendError> {
    let host = mail.host.as_str();
    let wanted = match mail.security {
        MailSecurity::StartTls | MailSecurity::Tls => RequiredPermission::Permitted,
        MailSecurity::None => RequiredPermission::Allowed,
    };
    let stream = outbound.guard.way(host, mail.port, wanted).await?.connect().await?;
    let broke = |_| SendError::Unreachable(format!("The connection to {host} was lost"));
    let (peer, own) = (stream.peer_addr().map_err(broke)?, stream.local_addr().map_err(broke)?);
    let wire = match mail.security {
        MailSecurity::StartTls => {
            let stream = ask_to_encrypt(host, stream, peer, &name(own)).await?;
            Wire::encrypted_midway(outbound.tls.encrypt(host, stream).await?, peer)
        }
        MailSecurity::Tls => Wire::new(outbound.tls.encrypt(host, stream).await?, peer),
        MailSecurity::None => Wire::new(Box::new(stream), peer),
    };
    let mut session = Session::begin(host, wire, &name(own)).await?;
    if let Some(login) = &mail.login {
        session.log_in(login).await?;
    }
    Ok(session)
}

/// Sends `STARTTLS`. Everything that the server sent before is discarded with the session, also what it
/// sent too early: that could come from an attacker.
async fn ask_to_encrypt(
    host: &str,
    stream: TcpStream,
    peer: SocketAddr,
    name: &ClientId,
) -> Result<TcpStream, SendError> {
    let broke = |_| SendError::Unreachable(format!("The connection to {host} was lost"));
    let stream = stream.into_std().map_err(broke)?;
    let open = TcpStream::from_std(stream.try_clone().map_err(broke)?).map_err(broke)?;
    let mut session = Session::begin(host, Wire::new(Box::new(open), peer), name).await?;
    if !session.connection.server_info().supports_feature(Extension::StartTls) {
        let told = format!("{host} does not offer encryption (STARTTLS), and nothing was said without it");
        return Err(SendError::Unreachable(told));
    }
    let asked = session.connection.command(Starttls).await;
    asked.map_err(|error| smtp_error(host, "", &error))?;
    TcpStream::from_std(stream).map_err(broke)
}

/// Returns our `EHLO` name: the address that the server sees, as for clients without a host name.
fn name(own: SocketAddr) -> ClientId {
    match own.ip().to_canonical() {
        IpAddr::V4(address) => ClientId::Ipv4(address),
        IpAddr::V6(address) => ClientId::Ipv6(address),
    }
}

/// An SMTP session.
struct Session<'a> {
    host: &'a str,
    connection: AsyncSmtpConnection,
}

impl<'a> Session<'a> {
    async fn begin(host: &'a str, wire: Wire, name: &ClientId) -> Result<Self, SendError> {
        match AsyncSmtpConnection::connect_with_transport(Box::new(wire), name).await {
            Ok(connection) => Ok(Self { host, connection }),
            Err(error) => Err(smtp_error(host, "", &error)),
        }
    }

    async fn log_in(&mut self, login: &MailLogin) -> Result<(), SendError> {
        let credentials =
            Credentials::new(login.username.as_str().to_owned(), login.password.expose().clone());
        let server = self.connection.server_info();
        if server.get_auth_mechanism(DEFAULT_MECHANISMS).is_none() {
            let told = format!("{} does not offer login with a password", self.host);
            return Err(SendError::Unreachable(told));
        }
        let answered = self.connection.auth(DEFAULT_MECHANISMS, &credentials).await;
        // Some servers echo the credentials.
        let secrets = Masker::new([login.password.expose().as_str()]);
        answered.map(drop).map_err(|error| send_error(self.host, &error, |said| secrets.mask(said)))
    }

    /// Skips recipients that the server rejects permanently. A recipient that it rejects temporarily fails
    /// the mail as a whole, so that no recipient gets it several times.
    async fn hand_over(&mut self, message: &MimeMessage) -> Result<Sent, SendError> {
        let host = self.host;
        let refused = |error: Error| smtp_error(host, "", &error);
        let knows_foreign = self.connection.server_info().supports_feature(Extension::SmtpUtfEight);
        let (to, foreign): (Vec<&Address>, Vec<&Address>) =
            message.to.iter().partition(|to| knows_foreign || !is_foreign(to));
        let plain_only = |to: &Address| format!("{to}: {host} takes only addresses in plain letters");
        let mut left_out = message.left_out.clone();
        left_out.extend(foreign.into_iter().map(plain_only));
        let parameters = self.parameters(message, &to)?;
        self.connection.command(From::new(Some(message.from.clone()), parameters)).await.map_err(refused)?;
        let (mut takers, mut refusal) = (0, None);
        for to in to {
            match self.connection.command(Rcpt::new(to.clone(), vec![])).await {
                Ok(_) => takers += 1,
                Err(error) => match smtp_error(host, &format!("{to}: "), &error) {
                    refused @ SendError::Answered { code: 500..=599, .. } => {
                        left_out.push(refused.to_string());
                        refusal = Some(refused);
                    }
                    put_off => return Err(put_off),
                },
            }
        }
        if takers == 0 {
            let nobody = || {
                SendError::Unreachable(format!(
                    "No recipient can receive mail from {host}: {}",
                    left_out.join("; ")
                ))
            };
            return Err(refusal.unwrap_or_else(nobody));
        }
        self.connection.command(Data).await.map_err(refused)?;
        let taken = self.connection.message(&message.text).await.map_err(refused)?;
        Ok(Sent { code: taken.code().into(), left_out })
    }

    /// Returns the parameters for a message that is not all ASCII.
    fn parameters(&self, message: &MimeMessage, to: &[&Address]) -> Result<Vec<MailParameter>, SendError> {
        let server = self.connection.server_info();
        let mut parameters = Vec::new();
        if is_foreign(&message.from) || to.iter().any(|to| is_foreign(to)) {
            if !server.supports_feature(Extension::SmtpUtfEight) {
                let told = format!("{} takes only addresses in plain letters (no SMTPUTF8)", self.host);
                return Err(SendError::Unreachable(told));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        if !message.text.is_ascii() {
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        Ok(parameters)
    }
}

/// Returns whether an address needs `SMTPUTF8`.
fn is_foreign(address: &Address) -> bool {
    !AsRef::<str>::as_ref(address).is_ascii()
}

/// Returns the error with a message. `about` comes before the text of the server.
fn smtp_error(host: &str, about: &str, error: &Error) -> SendError {
    send_error(host, error, |said| format!("{about}{said}"))
}

/// Returns the error with another message than the server's text, which is shortened only here.
fn send_error(host: &str, error: &Error, words: impl Fn(&str) -> String) -> SendError {
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    match error.status() {
        Some(code) => {
            SendError::Answered { code: code.into(), text: one_line(&words(&said), Answer::LONGEST) }
        }
        None if error.is_response() => {
            SendError::Unreachable(format!("{host} does not answer like a mail server"))
        }
        None => SendError::Unreachable(format!("The connection to {host} was lost")),
    }
}
