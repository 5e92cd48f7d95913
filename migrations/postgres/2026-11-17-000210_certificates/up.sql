-- Certificates of domains, the accounts at ACME servers, and the challenges of these.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.
CREATE TABLE certificates (
    domain TEXT NOT NULL,
    -- Null for the domain of the API.
    application_id UUID,
    source TEXT NOT NULL,
    -- PEM, or null until one was issued; so are the key, which is sealed, and the times.
    chain TEXT,
    private_key TEXT,
    not_before TIMESTAMPTZ,
    not_after TIMESTAMPTZ,
    failures INTEGER NOT NULL,
    last_error TEXT,
    -- Null for an uploaded certificate.
    next_attempt_at TIMESTAMPTZ,
    -- The expiry that users were warned of.
    warned_for TIMESTAMPTZ,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT certificates_pkey PRIMARY KEY (domain),
    CONSTRAINT certificates_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);
CREATE INDEX certificates_application_id_idx ON certificates (application_id);

CREATE TABLE acme_accounts (
    directory TEXT NOT NULL,
    credentials TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT acme_accounts_pkey PRIMARY KEY (directory)
);

CREATE TABLE acme_challenges (
    token TEXT NOT NULL,
    key_authorization TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT acme_challenges_pkey PRIMARY KEY (token)
);

-- Front proxies get certificates and challenges together with routes.
CREATE CONSTRAINT TRIGGER certificates_change_routes
    AFTER UPDATE OF chain, private_key ON certificates
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
        (OLD.chain, OLD.private_key) IS DISTINCT FROM (NEW.chain, NEW.private_key)
    )
    EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER certificates_change_routes_on_insert
    AFTER INSERT ON certificates
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.chain IS NOT NULL)
    EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER certificates_change_routes_on_delete
    AFTER DELETE ON certificates
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.chain IS NOT NULL)
    EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER acme_challenges_change_routes
    AFTER INSERT OR DELETE ON acme_challenges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_routes_epoch();
