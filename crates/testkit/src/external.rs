//! External services: HTTP receivers of notifications, a real mail server, a certificate authority for
//! both, and a code host.

mod authority;
mod mail_server;
mod receiver;
mod test_receiver;
mod web;

pub use self::{
    authority::{Authority, Identity},
    mail_server::{MailServer, MailServerOptions, Safety, TakenMail},
    receiver::{Conversation, Receiver, Request},
    test_receiver::{Message, Reply, TestReceiver},
    web::{Manner, Web},
};
