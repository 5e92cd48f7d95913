-- Deliveries are recognised by their id, or by their body if the code host sends none, and no longer by both.
-- The public code hosts ignore the case of owners and repositories, so their repositories are stored in lower case.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

DROP INDEX webhook_deliveries_application_id_delivery_id_key;
DROP INDEX webhook_deliveries_taken_at_idx;
ALTER TABLE webhook_deliveries RENAME TO webhook_deliveries_by_body;
ALTER TABLE webhook_deliveries_by_body RENAME CONSTRAINT webhook_deliveries_pkey TO webhook_deliveries_by_body_pkey;
ALTER TABLE webhook_deliveries_by_body
    RENAME CONSTRAINT webhook_deliveries_application_id_fkey TO webhook_deliveries_by_body_fkey;
CREATE TABLE webhook_deliveries (
    application_id UUID NOT NULL,
    -- `id:` and the id, or `body:` and the hash of the body.
    mark TEXT NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (application_id, mark),
    CONSTRAINT webhook_deliveries_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);
INSERT INTO webhook_deliveries (application_id, mark, taken_at)
    SELECT application_id, coalesce('id:' || delivery_id, 'body:' || encode(body_hash, 'hex')), taken_at
    FROM webhook_deliveries_by_body;
DROP TABLE webhook_deliveries_by_body;
CREATE INDEX webhook_deliveries_taken_at_idx ON webhook_deliveries (taken_at);

-- Of two secrets of one repository the older one stays valid, without being the one to tell the code host.
UPDATE webhook_secrets SET valid_until = '9999-12-31 23:59:59+00'
    WHERE valid_until IS NULL AND split_part(repository, '/', 1)
        IN ('github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com') AND EXISTS (
        SELECT 1 FROM webhook_secrets AS newer
        WHERE newer.organization_id = webhook_secrets.organization_id
            AND newer.valid_until IS NULL
            AND lower(newer.repository COLLATE "C") = lower(webhook_secrets.repository COLLATE "C")
            AND (newer.created_at, newer.id) > (webhook_secrets.created_at, webhook_secrets.id)
    );
UPDATE webhook_secrets SET repository = lower(repository COLLATE "C")
    WHERE split_part(repository, '/', 1)
        IN ('github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com');
