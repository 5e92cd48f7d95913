//! The short forms of writes.

use launchway_domain::{
    applications, audit, deployments,
    jobs::{self, Outcome},
    notifications,
    store::Write,
    webhooks,
};

/// Returns the short form of a commit.
pub(super) fn in_short(writes: &[Write]) -> String {
    let words: Vec<String> = writes.iter().map(word).collect();
    format!("commit: {}", words.join(", "))
}

fn word(write: &Write) -> String {
    match write {
        Write::Job(jobs::Write::Prove(_)) => "prove".to_owned(),
        Write::Job(jobs::Write::Enqueue(job)) => format!("enqueue {}", job.kind.as_str()),
        Write::Job(jobs::Write::Settle { outcome, .. }) => match outcome {
            Outcome::Succeeded => "succeeded".to_owned(),
            Outcome::Failed { reason } => format!("failed ({reason})"),
            Outcome::Cancelled => "cancelled".to_owned(),
        },
        Write::Deployment(write) => deployment_word(write),
        Write::Extension(write) => super::extensions::word(write),
        Write::Webhook(webhooks::Write::RequireMissed(head)) => {
            format!("require missed {}", head.commit.short())
        }
        Write::Webhook(webhooks::Write::PassOver { commit, .. }) => format!("pass over {}", commit.short()),
        Write::Application(applications::Write::SetStopped { is_stopped, .. }) => {
            if *is_stopped { "stopped" } else { "not stopped" }.to_owned()
        }
        Write::Application(applications::Write::SetHealth { health, .. }) => match health {
            applications::Health::Healthy => "healthy".to_owned(),
            applications::Health::Degraded(reason) => format!("degraded ({reason})"),
            applications::Health::Broken(reason) => format!("broken ({reason})"),
        },
        Write::Log(launchway_domain::logs::Write::Append(lines)) => {
            let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
            format!("line ({})", texts.join(" / "))
        }
        Write::Notification(notifications::Write::Announce(event)) => {
            let reason =
                event.facts.get(&notifications::Fact::Reason).map(String::as_str).unwrap_or_default();
            format!("announce {} ({reason})", event.kind.as_str())
        }
        Write::Audit(audit::Write::Append(entry)) => format!("entry ({})", entry.message),
        other => format!("{other:?}"),
    }
}

fn deployment_word(write: &deployments::Write) -> String {
    match write {
        deployments::Write::Advance { progress, .. } => {
            let deployments::Progress { state, commit, image, container, further_copies } = progress;
            let parts = [
                state.map(|state| state.as_str().to_owned()),
                commit.as_ref().map(|commit| format!("commit {}", commit.short())),
                image.as_ref().map(|_| "image".to_owned()),
                container.as_ref().map(|container| format!("container {}", container.state.as_str())),
                (!further_copies.is_empty()).then(|| format!("and {} copies", further_copies.len())),
            ];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        deployments::Write::GoLive { .. } => "go live".to_owned(),
        deployments::Write::RecordContainer { container, .. } => {
            format!("record {} {}", container.name, container.state.as_str())
        }
        deployments::Write::ReplaceContainer { container, further_copies, .. } => {
            let copies = std::iter::once(container).chain(further_copies);
            let copies = copies.map(|copy| format!("{} {}", copy.name, copy.state.as_str()));
            format!("replace by {}", copies.collect::<Vec<_>>().join(", "))
        }
        deployments::Write::FollowJobs { application: Some(_), .. } => "follow".to_owned(),
        deployments::Write::FollowJobs { application: None, .. } => "follow all".to_owned(),
        other @ deployments::Write::Insert(_) => format!("{other:?}"),
    }
}
