-- The HSTS policies of domains.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.
CREATE TABLE domain_hsts (
    domain TEXT NOT NULL,
    -- In seconds.
    max_age INTEGER NOT NULL,
    CONSTRAINT domain_hsts_pkey PRIMARY KEY (domain),
    -- A policy goes with its domain.
    CONSTRAINT domain_hsts_domain_fkey FOREIGN KEY (domain) REFERENCES hosts (host) ON DELETE CASCADE
);

-- Front proxies get them together with routes.
CREATE CONSTRAINT TRIGGER domain_hsts_change_routes
    AFTER INSERT OR DELETE ON domain_hsts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER domain_hsts_change_routes_on_update
    AFTER UPDATE ON domain_hsts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.max_age IS DISTINCT FROM NEW.max_age)
    EXECUTE FUNCTION advance_routes_epoch();
