//! The tables, as both databases have them. A test compares this file and its children with each of them.

mod artifact_tables;
mod certificate_tables;
mod copy_tables;
mod extension_tables;
mod image_tables;
mod installation_tables;
mod invitation_tables;
mod log_tables;
mod notification_tables;
mod preview_tables;
mod search_tables;
mod watch_tables;

use diesel::{allow_tables_to_appear_in_same_query, table};

pub(super) use self::{
    artifact_tables::{compositions, setup_token, site_archive_parts, site_archives},
    certificate_tables::{acme_accounts, acme_challenges, certificates, domain_hsts},
    copy_tables::application_replicas,
    extension_tables::{
        execution_logs, execution_steps, extension_executions, extension_installations, extension_ports,
        extension_routes, extension_variables, extensions,
    },
    image_tables::deployment_images,
    installation_tables::{catalog_version, drains, homes, installation_identity, leadership, replicas},
    invitation_tables::invitations,
    log_tables::{application_logs, deployment_log_heads, log_heads, log_usage},
    notification_tables::{
        deliveries, delivery_attempts, events, signing_secrets, smtp_configs, webhook_configs,
    },
    preview_tables::{code_host_tokens, preview_settings, previews},
    search_tables::{search_indexes, search_postings},
    watch_tables::application_watch_paths,
};

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    users (id) {
        id -> Id,
        username -> Text,
        email -> Text,
        email_key -> Text,
        avatar -> Text,
        kind -> Text,
        is_verified -> Bool,
        two_factor_enabled -> Bool,
        idp_user_id -> Text,
        created_at -> Ts,
        updated_at -> Ts,
        deleted_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    installation (id) {
        id -> Integer,
        admin_user_id -> Id,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    passwords (user_id) {
        user_id -> Id,
        hash -> Text,
        changed_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    two_factor (user_id) {
        user_id -> Id,
        secret -> Text,
        enabled_at -> Nullable<Ts>,
        last_step -> BigInt,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    recovery_codes (user_id, code_hash) {
        user_id -> Id,
        code_hash -> Binary,
        used_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    user_settings (id) {
        id -> Id,
        user_id -> Id,
        auto_update -> Bool,
        theme -> Text,
        font_family -> Text,
        font_size -> BigInt,
        language -> Text,
        created_at -> Ts,
        updated_at -> Ts,
        deleted_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    organizations (id) {
        id -> Id,
        name -> Text,
        name_key -> Text,
        description -> Text,
        created_at -> Ts,
        updated_at -> Ts,
        deleted_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    memberships (id) {
        id -> Id,
        organization_id -> Id,
        user_id -> Id,
        role -> Text,
        created_at -> Ts,
        updated_at -> Ts,
        deleted_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    sessions (id) {
        id -> Id,
        user_id -> Id,
        token_hash -> Binary,
        address -> Text,
        user_agent -> Text,
        created_at -> Ts,
        extended_at -> Ts,
        expires_at -> Ts,
        ended_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    api_tokens (id) {
        id -> Id,
        organization_id -> Id,
        user_id -> Id,
        name -> Text,
        token_hash -> Binary,
        permissions -> Text,
        expires_at -> Nullable<Ts>,
        created_at -> Ts,
        revoked_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    login_attempts (id) {
        id -> Id,
        account -> Binary,
        address -> Text,
        at -> Ts,
    }
}

table! {
    identity_epoch (id) {
        id -> Integer,
        value -> BigInt,
    }
}

table! {
    routes_epoch (id) {
        id -> Integer,
        value -> BigInt,
    }
}

table! {
    jobs_epoch (id) {
        id -> Integer,
        value -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    password_setups (user_id) {
        user_id -> Id,
        token_hash -> Binary,
        expires_at -> Ts,
    }
}

table! {
    key_check (id) {
        id -> Integer,
        sealed -> Text,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    audit_chains (chain_id) {
        chain_id -> Id,
        last_number -> BigInt,
        last_hash -> Binary,
        last_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    audit_entries (chain_id, number) {
        chain_id -> Id,
        number -> BigInt,
        id -> Id,
        actor -> Text,
        actor_key -> Text,
        actor_id -> Nullable<Id>,
        action -> Text,
        resource -> Text,
        resource_id -> Text,
        message -> Text,
        metadata -> Text,
        request_id -> Text,
        address -> Nullable<Text>,
        at -> Ts,
        hash -> Binary,
        search -> Text,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    jobs (id) {
        id -> Id,
        kind -> Text,
        organization_id -> Id,
        subject -> Id,
        replaceable -> Bool,
        payload -> Text,
        state -> Text,
        attempt -> Integer,
        excused -> Integer,
        run_at -> Ts,
        enqueued_at -> Ts,
        started_at -> Nullable<Ts>,
        finished_at -> Nullable<Ts>,
        cancel_requested_at -> Nullable<Ts>,
        superseded_by -> Nullable<Id>,
        reason -> Nullable<Text>,
        lease_instance -> Nullable<Id>,
        lease_boot -> Nullable<Id>,
        lease_worker -> Nullable<Integer>,
        lease_until -> Nullable<Ts>,
        pool -> Text,
        runs_on -> Nullable<Id>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    job_turns (organization_id) {
        organization_id -> Id,
        last_turn -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    applications (id) {
        id -> Id,
        organization_id -> Id,
        user_id -> Id,
        name -> Text,
        repository -> Text,
        branch -> Nullable<Text>,
        base_path -> Text,
        dockerfile_path -> Text,
        build_pack -> Text,
        environment -> Text,
        domain -> Nullable<Text>,
        port -> BigInt,
        pre_run_command -> Nullable<Text>,
        post_run_command -> Nullable<Text>,
        proxy_server -> Text,
        labels -> Text,
        health_check_path -> Nullable<Text>,
        auto_deploy -> Bool,
        build_variables -> Text,
        environment_variables -> Text,
        credentials -> Nullable<Text>,
        status_id -> Id,
        status -> Text,
        status_updated_at -> Ts,
        live_deployment_id -> Nullable<Id>,
        is_stopped -> Bool,
        search -> Text,
        created_at -> Ts,
        updated_at -> Ts,
        deleted_at -> Nullable<Ts>,
        automatic_host -> Text,
        further_domains -> Text,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::Id;

    hosts (host) {
        host -> Text,
        application_id -> Nullable<Id>,
        extension_route_id -> Nullable<Id>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    deployments (id) {
        id -> Id,
        application_id -> Id,
        organization_id -> Id,
        kind -> Text,
        rollback_to -> Nullable<Id>,
        job_id -> Id,
        status_id -> Id,
        status -> Text,
        status_updated_at -> Ts,
        commit_hash -> Nullable<Text>,
        image -> Nullable<Text>,
        container_id -> Nullable<Text>,
        container_name -> Nullable<Text>,
        container_state -> Nullable<Text>,
        container_address -> Nullable<Text>,
        created_at -> Ts,
        updated_at -> Ts,
        container_port -> Nullable<BigInt>,
        requested_by -> Text,
        breakdown -> Nullable<Text>,
        further_copies -> Nullable<Text>,
        no_cache -> Bool,
        source_digest -> Nullable<Text>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    idempotency_keys (organization_id, user_id, operation, name) {
        organization_id -> Id,
        user_id -> Id,
        operation -> Text,
        name -> Text,
        body_hash -> Binary,
        resource -> Id,
        answer -> Nullable<Text>,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    deploy_keys (organization_id) {
        organization_id -> Id,
        public_key -> Text,
        private_key -> Text,
        created_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    webhook_secrets (id) {
        id -> Id,
        organization_id -> Id,
        repository -> Text,
        secret -> Text,
        created_at -> Ts,
        valid_until -> Nullable<Ts>,
        confirmed_at -> Nullable<Ts>,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    webhook_deliveries (application_id, mark) {
        application_id -> Id,
        mark -> Text,
        taken_at -> Ts,
    }
}

table! {
    use diesel::sql_types::*;
    use super::super::columns::{Id, Ts};

    webhook_skips (application_id) {
        application_id -> Id,
        commit_hash -> Text,
        skipped_at -> Ts,
    }
}

allow_tables_to_appear_in_same_query!(
    users,
    passwords,
    two_factor,
    user_settings,
    organizations,
    memberships,
    invitations,
    sessions,
    api_tokens,
    password_setups,
    applications,
    hosts,
    certificates,
    deployments,
    log_heads,
    log_usage,
    deployment_log_heads,
    deploy_keys,
    webhook_secrets,
    webhook_deliveries,
    webhook_skips,
    previews,
    preview_settings,
    code_host_tokens,
    webhook_configs,
    smtp_configs,
);

allow_tables_to_appear_in_same_query!(audit_chains, audit_entries);
allow_tables_to_appear_in_same_query!(audit_chains, search_indexes);
allow_tables_to_appear_in_same_query!(log_heads, search_indexes);
allow_tables_to_appear_in_same_query!(applications, search_indexes);

allow_tables_to_appear_in_same_query!(identity_epoch, routes_epoch, jobs_epoch);

allow_tables_to_appear_in_same_query!(jobs, job_turns, homes);

allow_tables_to_appear_in_same_query!(jobs, deployments);
allow_tables_to_appear_in_same_query!(jobs, applications);
allow_tables_to_appear_in_same_query!(jobs, extension_executions);
