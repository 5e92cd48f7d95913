-- First passwords of people whom somebody added, the audit trail, and what the secret key is told by.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

CREATE TABLE password_setups (
    user_id UUID NOT NULL,
    token_hash BYTEA NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT password_setups_pkey PRIMARY KEY (user_id),
    CONSTRAINT password_setups_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX password_setups_token_hash_key ON password_setups (token_hash);

-- One row at most: something sealed with the secret key, which another key cannot open.
CREATE TABLE key_check (
    id INTEGER NOT NULL,
    sealed TEXT NOT NULL,
    CONSTRAINT key_check_pkey PRIMARY KEY (id),
    CONSTRAINT key_check_is_one CHECK (id = 1)
);

-- Where each chain of the audit trail ends. The chain of the installation itself has the nil UUID.
CREATE TABLE audit_chains (
    chain_id UUID NOT NULL,
    last_number BIGINT NOT NULL,
    last_hash BYTEA NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT audit_chains_pkey PRIMARY KEY (chain_id)
);

-- The entries refer to nothing, because they outlive what they tell of. Within a chain, numbers
-- have no gap, and moments are in their order.
CREATE TABLE audit_entries (
    chain_id UUID NOT NULL,
    number BIGINT NOT NULL,
    id UUID NOT NULL,
    actor TEXT NOT NULL,
    -- The name in lower case: what the filter compares.
    actor_key TEXT NOT NULL,
    actor_id UUID,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    message TEXT NOT NULL,
    -- A JSON object of texts. No jsonb, which would not keep it as it was written.
    metadata TEXT NOT NULL,
    request_id TEXT NOT NULL,
    address TEXT,
    at TIMESTAMPTZ NOT NULL,
    hash BYTEA NOT NULL,
    -- What a search looks at, in lower case, one text on a line.
    search TEXT NOT NULL,
    CONSTRAINT audit_entries_pkey PRIMARY KEY (chain_id, number)
);
CREATE UNIQUE INDEX audit_entries_id_key ON audit_entries (id);
CREATE INDEX audit_entries_chain_id_action_number_idx ON audit_entries (chain_id, action, number);
CREATE INDEX audit_entries_chain_id_resource_number_idx ON audit_entries (chain_id, resource, number);
CREATE INDEX audit_entries_chain_id_actor_key_number_idx ON audit_entries (chain_id, actor_key, number);
CREATE INDEX audit_entries_chain_id_at_idx ON audit_entries (chain_id, at);

CREATE FUNCTION refuse_to_change_audit_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail only grows';
END
$$;

-- Nobody changes the trail by mistake. Who does it on purpose is found out by the hashes.
CREATE TRIGGER audit_entries_only_grow
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit_entries();
