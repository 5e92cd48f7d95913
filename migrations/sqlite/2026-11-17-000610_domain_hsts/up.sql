-- The HSTS policies of domains.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.
CREATE TABLE domain_hsts (
    domain TEXT NOT NULL,
    -- In seconds.
    max_age INTEGER NOT NULL,
    CONSTRAINT domain_hsts_pkey PRIMARY KEY (domain),
    -- A policy goes with its domain.
    CONSTRAINT domain_hsts_domain_fkey FOREIGN KEY (domain) REFERENCES hosts (host) ON DELETE CASCADE
) STRICT;

-- Front proxies get them together with routes.
CREATE TRIGGER domain_hsts_change_routes_on_insert AFTER INSERT ON domain_hsts BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER domain_hsts_change_routes_on_update AFTER UPDATE ON domain_hsts
WHEN OLD.max_age IS NOT NEW.max_age BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER domain_hsts_change_routes_on_delete AFTER DELETE ON domain_hsts BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
