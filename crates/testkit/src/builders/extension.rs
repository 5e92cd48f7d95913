//! Extensions and their runs.

use launchway_domain::{
    clock::Timestamp,
    extensions::{
        Category, Execution, ExecutionState, ExecutionStep, Extension, ExtensionKind, ExtensionVariable,
        Phase, Validation, VariableKind, content_hash,
    },
    ids::ExecutionId,
    organizations::{Organization, Scope},
    secret::Sealed,
    users::User,
};

use super::{a_user, an_organization, parsed};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// The entry "Hello note" of the catalog, `hello-note`, added at [`NEW_YEAR`], without variables.
pub fn an_extension() -> ExtensionBuilder {
    ExtensionBuilder {
        organization: None,
        key: "hello-note".to_owned(),
        name: "Hello note".to_owned(),
        description: "Writes a greeting".to_owned(),
        author: "someone".to_owned(),
        category: Category::Utility,
        kind: ExtensionKind::Run,
        yaml: "metadata: {id: hello-note}".to_owned(),
        variables: Vec::new(),
        created_at: moment(NEW_YEAR),
    }
}

/// Builds an [`Extension`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ExtensionBuilder {
    organization: Option<Organization>,
    key: String,
    name: String,
    description: String,
    author: String,
    category: Category,
    kind: ExtensionKind,
    yaml: String,
    variables: Vec<String>,
    created_at: Timestamp,
}

impl ExtensionBuilder {
    /// Sets the key, and so another id.
    pub fn keyed(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// Makes it a fork of `hello-note` in an organization, with another id.
    pub fn forked_by(mut self, organization: &Organization) -> Self {
        self.organization = Some(organization.clone());
        self
    }

    /// Sets the name.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the description.
    pub fn described(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// Sets the author.
    pub fn written_by(mut self, author: &str) -> Self {
        author.clone_into(&mut self.author);
        self
    }

    /// Sets the category.
    pub fn about(mut self, category: Category) -> Self {
        self.category = category;
        self
    }

    /// Sets the kind.
    pub fn of_kind(mut self, kind: ExtensionKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the definition, which is not parsed.
    pub fn defined_by(mut self, yaml: &str) -> Self {
        yaml.clone_into(&mut self.yaml);
        self
    }

    /// Adds a text variable. The id is derived from the definition.
    pub fn asking_for(mut self, variable: &str) -> Self {
        self.variables.push(variable.to_owned());
        self
    }

    /// Sets the time at which it was added.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the extension.
    ///
    /// # Panics
    /// If it cannot have that key or that name.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Extension {
        let owner = self.organization.map(|organization| organization.id);
        let whose = owner.map_or("the catalog".to_owned(), |id| id.to_string());
        let name = format!("extension {} of {whose}", self.key);
        let variable = |called: String| ExtensionVariable {
            id: id_of(&format!("variable {called} of {name} by {}", self.yaml)).into(),
            name: called,
            kind: VariableKind::String,
            description: "What it says".to_owned(),
            default: Some("\"world\"".to_owned()),
            is_required: true,
            pattern: "[a-z]+".to_owned(),
            created_at: self.created_at,
        };
        Extension {
            id: id_of(&name).into(),
            organization_id: owner,
            key: parsed(&self.key),
            parent: owner.map(|_| parsed("hello-note")),
            name: parsed(&self.name),
            description: self.description,
            author: self.author,
            icon: "N".to_owned(),
            category: self.category,
            kind: self.kind,
            version: "1.0.0".to_owned(),
            is_verified: owner.is_none(),
            content_hash: content_hash(&self.yaml),
            parsed: "{}".to_owned(),
            validation: Validation::Valid,
            validation_errors: "[]".to_owned(),
            variables: self.variables.into_iter().map(variable).collect(),
            yaml: self.yaml,
            created_at: self.created_at,
            updated_at: self.created_at,
            deleted_at: None,
        }
    }
}

/// The first run of [`an_extension`], requested by [`a_user`] in [`an_organization`] at [`NEW_YEAR`]. It is
/// queued, and has no steps.
pub fn an_execution() -> ExecutionBuilder {
    ExecutionBuilder {
        extension: an_extension().build(),
        organization: an_organization().build(),
        user: a_user().build(),
        number: 1,
        steps: Vec::new(),
        created_at: moment(NEW_YEAR),
    }
}

/// Builds an [`Execution`] and its steps.
#[derive(Debug, Clone)]
#[must_use]
pub struct ExecutionBuilder {
    extension: Extension,
    organization: Organization,
    user: User,
    number: u32,
    steps: Vec<(String, Phase)>,
    created_at: Timestamp,
}

impl ExecutionBuilder {
    /// Sets the extension, and so another id.
    pub fn of(mut self, extension: &Extension) -> Self {
        self.extension = extension.clone();
        self
    }

    /// Sets the organization, and so another id.
    pub fn in_organization(mut self, organization: &Organization) -> Self {
        self.organization = organization.clone();
        self
    }

    /// Sets the user who requested it.
    pub fn asked_for_by(mut self, user: &User) -> Self {
        self.user = user.clone();
        self
    }

    /// Sets the number within the extension, and so another id and job.
    pub fn numbered(mut self, number: u32) -> Self {
        self.number = number;
        self
    }

    /// Adds a step.
    pub fn with_step(mut self, name: &str, phase: Phase) -> Self {
        self.steps.push((name.to_owned(), phase));
        self
    }

    /// Sets the time of the request.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the run.
    #[must_use]
    pub fn build(self) -> Execution {
        self.with_steps().0
    }

    /// Returns the run with its steps.
    #[must_use]
    pub fn with_steps(self) -> (Execution, Vec<ExecutionStep>) {
        let name = format!("run {} of {} in {}", self.number, self.extension.id, self.organization.id);
        let id: ExecutionId = id_of(&name).into();
        let step = |(order, (called, phase)): (i32, (String, Phase))| ExecutionStep {
            id: id_of(&format!("step {order} of {name}")).into(),
            execution_id: id,
            name: called,
            order,
            phase,
            state: ExecutionState::Pending,
            exit_code: 0,
            started_at: None,
            completed_at: None,
            created_at: self.created_at,
        };
        let steps = (1..).zip(self.steps).map(step).collect();
        let execution = Execution {
            id,
            scope: Scope::of_record(self.organization.id),
            extension_id: self.extension.id,
            user_id: self.user.id,
            job_id: id_of(&format!("job of {name}")).into(),
            state: ExecutionState::Pending,
            server_hostname: String::new(),
            exit_code: 0,
            error_message: String::new(),
            shown_values: "{}".to_owned(),
            sealed_values: Sealed("sealed values".to_owned()),
            definition: self.extension.yaml,
            log_seq: 0,
            started_at: None,
            completed_at: None,
            created_at: self.created_at,
        };
        (execution, steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_of_another_key_or_organization_have_other_ids() {
        let fork = an_extension().keyed("mine").forked_by(&an_organization().build()).build();
        assert_eq!(fork.parent, Some(an_extension().build().key));
        let ids = [an_extension().build().id, an_extension().keyed("mine").build().id, fork.id];
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }

    #[test]
    fn run_ids_depend_on_number_extension_and_organization() {
        let other = an_extension().keyed("other").build();
        let elsewhere = an_organization().named("Engines").build();
        let runs = [
            an_execution(),
            an_execution().numbered(2),
            an_execution().of(&other),
            an_execution().in_organization(&elsewhere),
        ]
        .map(ExecutionBuilder::build);
        for (place, run) in runs.iter().enumerate() {
            assert!(runs[..place].iter().all(|other| other.id != run.id && other.job_id != run.job_id));
        }
    }
}
