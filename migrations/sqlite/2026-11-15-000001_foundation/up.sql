-- Users, organizations, sessions and everything that a login is checked against.
-- Ids are 16 bytes, moments are microseconds since 1970, in UTC.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

CREATE TABLE users (
    id BLOB NOT NULL,
    username TEXT NOT NULL,
    email TEXT NOT NULL,
    -- The address in lower case: what makes it unique.
    email_key TEXT NOT NULL,
    avatar TEXT NOT NULL,
    kind TEXT NOT NULL,
    is_verified INTEGER NOT NULL,
    two_factor_enabled INTEGER NOT NULL,
    idp_user_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT users_pkey PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX users_email_key ON users (email_key) WHERE deleted_at IS NULL;

-- One row at most: the claim of the first administrator.
CREATE TABLE installation (
    id INTEGER NOT NULL,
    admin_user_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (id),
    CONSTRAINT installation_is_one CHECK (id = 1),
    CONSTRAINT installation_admin_user_id_fkey FOREIGN KEY (admin_user_id) REFERENCES users (id)
) STRICT;

CREATE TABLE passwords (
    user_id BLOB NOT NULL,
    hash TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    CONSTRAINT passwords_pkey PRIMARY KEY (user_id),
    CONSTRAINT passwords_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE two_factor (
    user_id BLOB NOT NULL,
    secret TEXT NOT NULL,
    -- Absent while the second factor is being set up.
    enabled_at INTEGER,
    -- The time step of the last code that was used.
    last_step INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    CONSTRAINT two_factor_pkey PRIMARY KEY (user_id),
    CONSTRAINT two_factor_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE recovery_codes (
    user_id BLOB NOT NULL,
    code_hash BLOB NOT NULL,
    used_at INTEGER,
    CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, code_hash),
    CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE user_settings (
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    auto_update INTEGER NOT NULL,
    theme TEXT NOT NULL,
    font_family TEXT NOT NULL,
    font_size INTEGER NOT NULL,
    language TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT user_settings_pkey PRIMARY KEY (id),
    CONSTRAINT user_settings_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX user_settings_user_id_key ON user_settings (user_id);

CREATE TABLE organizations (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    -- The name in lower case: what makes it unique.
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT organizations_pkey PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX organizations_name_key ON organizations (name_key) WHERE deleted_at IS NULL;

CREATE TABLE memberships (
    id BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT memberships_pkey PRIMARY KEY (id),
    CONSTRAINT memberships_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX memberships_organization_id_user_id_key ON memberships (organization_id, user_id)
    WHERE deleted_at IS NULL;
CREATE INDEX memberships_user_id_idx ON memberships (user_id);

CREATE TABLE sessions (
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    token_hash BLOB NOT NULL,
    address TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    extended_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_token_hash_key ON sessions (token_hash);
CREATE INDEX sessions_user_id_idx ON sessions (user_id);

CREATE TABLE api_tokens (
    id BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    name TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    -- The names of the permissions, with a space between two.
    permissions TEXT NOT NULL,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    CONSTRAINT api_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT api_tokens_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT api_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_tokens_token_hash_key ON api_tokens (token_hash);
CREATE UNIQUE INDEX api_tokens_organization_id_user_id_name_key ON api_tokens (organization_id, user_id, name)
    WHERE revoked_at IS NULL;
CREATE INDEX api_tokens_user_id_idx ON api_tokens (user_id);

-- Tries to log in that failed, or are not yet known to have succeeded.
CREATE TABLE login_attempts (
    id BLOB NOT NULL,
    account BLOB NOT NULL,
    address TEXT NOT NULL,
    at INTEGER NOT NULL,
    CONSTRAINT login_attempts_pkey PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX login_attempts_account_at_idx ON login_attempts (account, at);
CREATE INDEX login_attempts_address_at_idx ON login_attempts (address, at);
CREATE INDEX login_attempts_at_idx ON login_attempts (at);

-- Moves whenever something changes that a cached identity was made of. Triggers move it, so that
-- no writer can forget to, and a statement typed by hand counts as well.
CREATE TABLE identity_epoch (
    id INTEGER NOT NULL,
    value INTEGER NOT NULL,
    CONSTRAINT identity_epoch_pkey PRIMARY KEY (id),
    CONSTRAINT identity_epoch_is_one CHECK (id = 1)
) STRICT;
INSERT INTO identity_epoch (id, value) VALUES (1, 1);

CREATE TRIGGER users_change_identities_on_update AFTER UPDATE ON users BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER users_change_identities_on_delete AFTER DELETE ON users BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER user_settings_change_identities_on_insert AFTER INSERT ON user_settings BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER user_settings_change_identities_on_update AFTER UPDATE ON user_settings BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER user_settings_change_identities_on_delete AFTER DELETE ON user_settings BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER memberships_change_identities_on_insert AFTER INSERT ON memberships BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER memberships_change_identities_on_update AFTER UPDATE ON memberships BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER memberships_change_identities_on_delete AFTER DELETE ON memberships BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER organizations_change_identities_on_update AFTER UPDATE ON organizations BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER organizations_change_identities_on_delete AFTER DELETE ON organizations BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
-- A session that is extended stays who it was.
CREATE TRIGGER sessions_change_identities_on_update AFTER UPDATE OF user_id, token_hash, ended_at ON sessions BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER sessions_change_identities_on_delete AFTER DELETE ON sessions BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER api_tokens_change_identities_on_update AFTER UPDATE ON api_tokens BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER api_tokens_change_identities_on_delete AFTER DELETE ON api_tokens BEGIN
    UPDATE identity_epoch SET value = value + 1 WHERE id = 1;
END;
