-- First passwords of people whom somebody added, the audit trail, and what the secret key is told by.
-- Ids are 16 bytes, moments are microseconds since 1970, in UTC.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

CREATE TABLE password_setups (
    user_id BLOB NOT NULL,
    token_hash BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    CONSTRAINT password_setups_pkey PRIMARY KEY (user_id),
    CONSTRAINT password_setups_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX password_setups_token_hash_key ON password_setups (token_hash);

-- One row at most: something sealed with the secret key, which another key cannot open.
CREATE TABLE key_check (
    id INTEGER NOT NULL,
    sealed TEXT NOT NULL,
    CONSTRAINT key_check_pkey PRIMARY KEY (id),
    CONSTRAINT key_check_is_one CHECK (id = 1)
) STRICT;

-- Where each chain of the audit trail ends. The chain of the installation itself has the nil UUID.
CREATE TABLE audit_chains (
    chain_id BLOB NOT NULL,
    last_number INTEGER NOT NULL,
    last_hash BLOB NOT NULL,
    last_at INTEGER NOT NULL,
    CONSTRAINT audit_chains_pkey PRIMARY KEY (chain_id)
) STRICT, WITHOUT ROWID;

-- The entries refer to nothing, because they outlive what they tell of. Within a chain, numbers
-- have no gap, and moments are in their order. With a rowid, unlike the other tables: otherwise the
-- planner takes the primary key for cheaper than any other index, and walks the whole chain.
CREATE TABLE audit_entries (
    chain_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    id BLOB NOT NULL,
    actor TEXT NOT NULL,
    -- The name in lower case: what the filter compares.
    actor_key TEXT NOT NULL,
    actor_id BLOB,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    message TEXT NOT NULL,
    -- A JSON object of texts.
    metadata TEXT NOT NULL,
    request_id TEXT NOT NULL,
    address TEXT,
    at INTEGER NOT NULL,
    hash BLOB NOT NULL,
    -- What a search looks at, in lower case, one text on a line.
    search TEXT NOT NULL,
    CONSTRAINT audit_entries_pkey PRIMARY KEY (chain_id, number)
) STRICT;
CREATE UNIQUE INDEX audit_entries_id_key ON audit_entries (id);
CREATE INDEX audit_entries_chain_id_action_number_idx ON audit_entries (chain_id, action, number);
CREATE INDEX audit_entries_chain_id_resource_number_idx ON audit_entries (chain_id, resource, number);
CREATE INDEX audit_entries_chain_id_actor_key_number_idx ON audit_entries (chain_id, actor_key, number);
CREATE INDEX audit_entries_chain_id_at_idx ON audit_entries (chain_id, at);

-- Nobody changes the trail by mistake. Who does it on purpose is found out by the hashes.
CREATE TRIGGER audit_entries_only_grow_on_update BEFORE UPDATE ON audit_entries BEGIN
    SELECT RAISE(ABORT, 'the audit trail only grows');
END;
CREATE TRIGGER audit_entries_only_grow_on_delete BEFORE DELETE ON audit_entries BEGIN
    SELECT RAISE(ABORT, 'the audit trail only grows');
END;
