-- Certificates of domains, the accounts at ACME servers, and the challenges of these.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.
CREATE TABLE certificates (
    domain TEXT NOT NULL,
    -- Null for the domain of the API.
    application_id BLOB,
    source TEXT NOT NULL,
    -- PEM, or null until one was issued; so are the key, which is sealed, and the times.
    chain TEXT,
    private_key TEXT,
    not_before INTEGER,
    not_after INTEGER,
    failures INTEGER NOT NULL,
    last_error TEXT,
    -- Null for an uploaded certificate.
    next_attempt_at INTEGER,
    -- The expiry that users were warned of.
    warned_for INTEGER,
    updated_at INTEGER NOT NULL,
    CONSTRAINT certificates_pkey PRIMARY KEY (domain),
    CONSTRAINT certificates_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT;
CREATE INDEX certificates_application_id_idx ON certificates (application_id);

CREATE TABLE acme_accounts (
    directory TEXT NOT NULL,
    credentials TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT acme_accounts_pkey PRIMARY KEY (directory)
) STRICT;

CREATE TABLE acme_challenges (
    token TEXT NOT NULL,
    key_authorization TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT acme_challenges_pkey PRIMARY KEY (token)
) STRICT;

-- Front proxies get certificates and challenges together with routes.
CREATE TRIGGER certificates_change_routes_on_update AFTER UPDATE OF chain, private_key ON certificates
WHEN (OLD.chain, OLD.private_key) IS NOT (NEW.chain, NEW.private_key) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER certificates_change_routes_on_insert AFTER INSERT ON certificates
WHEN NEW.chain IS NOT NULL BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER certificates_change_routes_on_delete AFTER DELETE ON certificates
WHEN OLD.chain IS NOT NULL BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER acme_challenges_change_routes_on_insert AFTER INSERT ON acme_challenges BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER acme_challenges_change_routes_on_delete AFTER DELETE ON acme_challenges BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
