-- Users, organizations, sessions and everything that a login is checked against.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

CREATE TABLE users (
    id UUID NOT NULL,
    username TEXT NOT NULL,
    email TEXT NOT NULL,
    -- The address in lower case: what makes it unique.
    email_key TEXT NOT NULL,
    avatar TEXT NOT NULL,
    kind TEXT NOT NULL,
    is_verified BOOLEAN NOT NULL,
    two_factor_enabled BOOLEAN NOT NULL,
    idp_user_id TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    CONSTRAINT users_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX users_email_key ON users (email_key) WHERE deleted_at IS NULL;

-- One row at most: the claim of the first administrator.
CREATE TABLE installation (
    id INTEGER NOT NULL,
    admin_user_id UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (id),
    CONSTRAINT installation_is_one CHECK (id = 1),
    CONSTRAINT installation_admin_user_id_fkey FOREIGN KEY (admin_user_id) REFERENCES users (id)
);

CREATE TABLE passwords (
    user_id UUID NOT NULL,
    hash TEXT NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT passwords_pkey PRIMARY KEY (user_id),
    CONSTRAINT passwords_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE TABLE two_factor (
    user_id UUID NOT NULL,
    secret TEXT NOT NULL,
    -- Absent while the second factor is being set up.
    enabled_at TIMESTAMPTZ,
    -- The time step of the last code that was used.
    last_step BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT two_factor_pkey PRIMARY KEY (user_id),
    CONSTRAINT two_factor_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE TABLE recovery_codes (
    user_id UUID NOT NULL,
    code_hash BYTEA NOT NULL,
    used_at TIMESTAMPTZ,
    CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, code_hash),
    CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE TABLE user_settings (
    id UUID NOT NULL,
    user_id UUID NOT NULL,
    auto_update BOOLEAN NOT NULL,
    theme TEXT NOT NULL,
    font_family TEXT NOT NULL,
    font_size BIGINT NOT NULL,
    language TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    CONSTRAINT user_settings_pkey PRIMARY KEY (id),
    CONSTRAINT user_settings_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX user_settings_user_id_key ON user_settings (user_id);

CREATE TABLE organizations (
    id UUID NOT NULL,
    name TEXT NOT NULL,
    -- The name in lower case: what makes it unique.
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    CONSTRAINT organizations_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX organizations_name_key ON organizations (name_key) WHERE deleted_at IS NULL;

CREATE TABLE memberships (
    id UUID NOT NULL,
    organization_id UUID NOT NULL,
    user_id UUID NOT NULL,
    role TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    CONSTRAINT memberships_pkey PRIMARY KEY (id),
    CONSTRAINT memberships_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX memberships_organization_id_user_id_key ON memberships (organization_id, user_id)
    WHERE deleted_at IS NULL;
CREATE INDEX memberships_user_id_idx ON memberships (user_id);

CREATE TABLE sessions (
    id UUID NOT NULL,
    user_id UUID NOT NULL,
    token_hash BYTEA NOT NULL,
    address TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    extended_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX sessions_token_hash_key ON sessions (token_hash);
CREATE INDEX sessions_user_id_idx ON sessions (user_id);

CREATE TABLE api_tokens (
    id UUID NOT NULL,
    organization_id UUID NOT NULL,
    user_id UUID NOT NULL,
    name TEXT NOT NULL,
    token_hash BYTEA NOT NULL,
    -- The names of the permissions, with a space between two.
    permissions TEXT NOT NULL,
    expires_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ,
    CONSTRAINT api_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT api_tokens_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT api_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX api_tokens_token_hash_key ON api_tokens (token_hash);
CREATE UNIQUE INDEX api_tokens_organization_id_user_id_name_key ON api_tokens (organization_id, user_id, name)
    WHERE revoked_at IS NULL;
CREATE INDEX api_tokens_user_id_idx ON api_tokens (user_id);

-- Tries to log in that failed, or are not yet known to have succeeded.
CREATE TABLE login_attempts (
    id UUID NOT NULL,
    account BYTEA NOT NULL,
    address TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    CONSTRAINT login_attempts_pkey PRIMARY KEY (id)
);
CREATE INDEX login_attempts_account_at_idx ON login_attempts (account, at);
CREATE INDEX login_attempts_address_at_idx ON login_attempts (address, at);
CREATE INDEX login_attempts_at_idx ON login_attempts (at);

-- Moves whenever something changes that a cached identity was made of. Triggers move it, so that
-- no writer can forget to, and a statement typed by hand counts as well.
CREATE TABLE identity_epoch (
    id INTEGER NOT NULL,
    value BIGINT NOT NULL,
    CONSTRAINT identity_epoch_pkey PRIMARY KEY (id),
    CONSTRAINT identity_epoch_is_one CHECK (id = 1)
);
INSERT INTO identity_epoch (id, value) VALUES (1, 1);

CREATE FUNCTION advance_identity_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
    RETURN NULL;
END
$$;

-- Deferred to the end of the transaction: the one row that everybody locks is locked last and
-- briefly, and two transactions cannot wait for each other over it.
CREATE CONSTRAINT TRIGGER users_change_identities
    AFTER UPDATE OR DELETE ON users
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_identity_epoch();
CREATE CONSTRAINT TRIGGER user_settings_change_identities
    AFTER INSERT OR UPDATE OR DELETE ON user_settings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_identity_epoch();
CREATE CONSTRAINT TRIGGER memberships_change_identities
    AFTER INSERT OR UPDATE OR DELETE ON memberships
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_identity_epoch();
CREATE CONSTRAINT TRIGGER organizations_change_identities
    AFTER UPDATE OR DELETE ON organizations
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_identity_epoch();
-- A session that is extended stays who it was.
CREATE CONSTRAINT TRIGGER sessions_change_identities
    AFTER UPDATE OF user_id, token_hash, ended_at OR DELETE ON sessions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_identity_epoch();
CREATE CONSTRAINT TRIGGER api_tokens_change_identities
    AFTER UPDATE OR DELETE ON api_tokens
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_identity_epoch();
