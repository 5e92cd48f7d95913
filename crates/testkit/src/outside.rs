//! External services: HTTP receivers of notifications, a real mail server, a certificate authority for
//! both, and a code host.

mod authority;
mod mail_server;
mod postbox;
mod receiver;
mod web;

pub use self::{
    authority::{Authority, Identity},
    mail_server::{MailServer, MailServerOptions, Safety, TakenMail},
    postbox::{Message, Postbox, Reply},
    receiver::{Conversation, Receiver, Request},
    web::{Manner, Web},
};
