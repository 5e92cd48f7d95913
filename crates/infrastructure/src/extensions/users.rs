//! Steps about users of this machine.
//!
//! Accounts below 1000 are system accounts: a mistake with one of them breaks a service that has nothing to
//! do with the extension, or gives root access away. So only accounts that a step created are changed,
//! which is recorded with their UIDs. `root` is never changed, by whatever name.

use std::{fs, io, path::PathBuf, sync::Arc};

use launchway_domain::{
    deployments::{Output, StepError},
    extensions::{AccountName, UserAction},
};
use launchway_system::files::{make_private_folders, off_thread, remove, write_private_file};
use serde_json::{Value, json};

use super::{Host, HostRunner, commands::exit_code, not_run, notes::StepNotes};

/// The first UID of a regular user.
const FIRST_PERSON: u32 = 1000;
/// The exit code of `getent` if there is no such entry.
const NO_ENTRY: i32 = 2;

/// The users of this machine.
pub(super) struct Users<'a> {
    host: &'a Host,
    /// The folder that records the users that steps created.
    made: PathBuf,
}

impl HostRunner {
    pub(super) fn users(&self) -> Users<'_> {
        Users { host: &self.host, made: self.workspaces.users() }
    }
}

impl Users<'_> {
    /// Executes a step. Returns the exit code of its program.
    pub(super) async fn perform(
        &self,
        notes: &StepNotes,
        action: &UserAction,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        match action {
            UserAction::Create { name, groups, is_system } => {
                refuse_root(name)?;
                let was_there = self.number(name).await?.is_some();
                notes.once(json!({ "was_there": was_there })).await?;
                if was_there {
                    output.write(format!("The user `{name}` is there already.\n").as_bytes()).await;
                    return Ok(0);
                }
                let code = self.create(name, groups, *is_system, output).await?;
                if code == 0 {
                    self.note_made(name).await?;
                }
                Ok(code)
            }
            UserAction::Delete(name) => {
                let Some(number) = self.number(name).await? else { return Ok(0) };
                self.require_changeable(name, number).await?;
                notes.once(json!({ "was_there": true })).await?;
                let code = self.run("userdel", &["--", name.as_str()], output).await?;
                if code == 0 {
                    self.forget_made(name).await?;
                }
                Ok(code)
            }
            UserAction::AddGroups { name, groups } => {
                self.note_groups(notes, name).await?;
                self.add_to(name, &groups.iter().map(AccountName::as_str).collect::<Vec<_>>(), output).await
            }
            UserAction::RemoveGroups { name, groups } => {
                let before = self.note_groups(notes, name).await?;
                let theirs = groups.iter().map(AccountName::as_str).filter(|group| has(&before, group));
                self.remove_from(name, &theirs.collect::<Vec<_>>(), output).await
            }
        }
    }

    /// Reverts a step, as far as it changed anything.
    pub(super) async fn revert(
        &self,
        notes: &StepNotes,
        action: &UserAction,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let Some(noted) = notes.read().await? else { return Ok(()) };
        let code = match action {
            UserAction::Create { name, .. } => {
                let was_there = noted.get("was_there").and_then(Value::as_bool).unwrap_or(true);
                if was_there || self.number(name).await?.is_none() {
                    0
                } else {
                    refuse_root(name)?;
                    let code = self.run("userdel", &["--", name.as_str()], output).await?;
                    self.forget_made(name).await?;
                    code
                }
            }
            UserAction::Delete(name) => match self.number(name).await? {
                Some(_) => 0,
                None => {
                    return Err(StepError::Rejected(format!(
                        "the user `{name}` is deleted, and cannot be recreated as it was"
                    )));
                }
            },
            UserAction::AddGroups { name, groups } => {
                let new = groups.iter().map(AccountName::as_str).filter(|group| !has(&noted, group));
                let now = self.groups(name).await?;
                let new: Vec<&str> = new.filter(|group| now.iter().any(|known| known == group)).collect();
                self.remove_from(name, &new, output).await?
            }
            UserAction::RemoveGroups { name, groups } => {
                let lost = groups.iter().map(AccountName::as_str).filter(|group| has(&noted, group));
                self.add_to(name, &lost.collect::<Vec<_>>(), output).await?
            }
        };
        match code {
            0 => notes.forget().await,
            code => {
                Err(StepError::Rejected(format!("the change to a user was not reverted: exit code {code}")))
            }
        }
    }

    async fn create(
        &self,
        name: &AccountName,
        groups: &[AccountName],
        is_system: bool,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        let mut words = match is_system {
            true => vec!["--system", "--no-create-home", "--shell", "/usr/sbin/nologin"],
            false => vec!["--create-home"],
        };
        let groups = groups.iter().map(AccountName::as_str).collect::<Vec<_>>().join(",");
        if !groups.is_empty() {
            words.extend(["--groups", &groups]);
        }
        words.extend(["--", name.as_str()]);
        self.run("useradd", &words, output).await
    }

    async fn add_to(
        &self,
        name: &AccountName,
        groups: &[&str],
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        if groups.is_empty() {
            return Ok(0);
        }
        let groups = groups.join(",");
        self.run("usermod", &["--append", "--groups", &groups, "--", name.as_str()], output).await
    }

    async fn remove_from(
        &self,
        name: &AccountName,
        groups: &[&str],
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        for group in groups {
            let code = self.run("gpasswd", &["--delete", name.as_str(), "--", group], output.clone()).await?;
            if code != 0 {
                return Ok(code);
            }
        }
        Ok(0)
    }

    /// Records the groups of a user who may be changed. Returns the note.
    async fn note_groups(&self, notes: &StepNotes, name: &AccountName) -> Result<Value, StepError> {
        let unknown = || StepError::Rejected(format!("there is no user `{name}` on this machine"));
        let number = self.number(name).await?.ok_or_else(unknown)?;
        self.require_changeable(name, number).await?;
        let groups = self.groups(name).await?;
        notes.once(json!({ "groups": groups })).await
    }

    /// Returns the UID of a user; `None` when there is none.
    async fn number(&self, name: &AccountName) -> Result<Option<u32>, StepError> {
        let call = self.host.call("getent").args(["--", "passwd", name.as_str()]);
        let finished = call.run().await.map_err(not_run)?;
        match exit_code(finished.status) {
            0 => {
                let entry = String::from_utf8_lossy(&finished.answer).into_owned();
                let number = entry.split(':').nth(2).and_then(|number| number.parse().ok());
                number
                    .map(Some)
                    .ok_or_else(|| StepError::Retryable("the list of users cannot be read".to_owned()))
            }
            NO_ENTRY => Ok(None),
            code => Err(StepError::Retryable(format!("the list of users cannot be read: exit code {code}"))),
        }
    }

    async fn groups(&self, name: &AccountName) -> Result<Vec<String>, StepError> {
        let call = self.host.call("id").args(["-nG", "--", name.as_str()]);
        let finished = call.run().await.map_err(not_run)?;
        if !finished.succeeded() {
            return Err(StepError::Retryable(format!("the groups of `{name}` cannot be read")));
        }
        Ok(String::from_utf8_lossy(&finished.answer).split_whitespace().map(str::to_owned).collect())
    }

    async fn run(&self, program: &str, words: &[&str], output: Arc<dyn Output>) -> Result<i32, StepError> {
        let call = self.host.call(program).args(words).env("LANG", "C.UTF-8");
        Ok(exit_code(call.run_into(output).await.map_err(not_run)?.status))
    }

    async fn require_changeable(&self, name: &AccountName, number: u32) -> Result<(), StepError> {
        refuse_root(name)?;
        let is_ours = number != 0 && self.made(name).await? == Some(number);
        match number >= FIRST_PERSON || is_ours {
            true => Ok(()),
            false => Err(StepError::Rejected(format!(
                "the user `{name}` belongs to this machine: of those below {FIRST_PERSON}, only ones that an extension made are changed"
            ))),
        }
    }

    /// Returns the recorded UID of a user that a step created.
    async fn made(&self, name: &AccountName) -> Result<Option<u32>, StepError> {
        let place = self.made.join(name.as_str());
        off_thread("read which users steps made", move || match fs::read_to_string(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => Ok(text?.trim().parse().ok()),
        })
        .await
    }

    async fn note_made(&self, name: &AccountName) -> Result<(), StepError> {
        let Some(number) = self.number(name).await? else { return Ok(()) };
        let (folder, place) = (self.made.clone(), self.made.join(name.as_str()));
        off_thread("note which users steps made", move || {
            make_private_folders(&folder)?;
            remove(&place)?;
            write_private_file(&place, &number.to_string())
        })
        .await
    }

    async fn forget_made(&self, name: &AccountName) -> Result<(), StepError> {
        let place = self.made.join(name.as_str());
        off_thread("forget which users steps made", move || remove(&place)).await
    }
}

/// Returns whether a user was in a group, according to the note of a step.
fn has(noted: &Value, group: &str) -> bool {
    let groups = noted.get("groups").and_then(Value::as_array).into_iter().flatten();
    groups.filter_map(Value::as_str).any(|known| known == group)
}

fn refuse_root(name: &AccountName) -> Result<(), StepError> {
    match name.as_str() {
        "root" => Err(StepError::Rejected("the user `root` is never changed".to_owned())),
        _ => Ok(()),
    }
}
