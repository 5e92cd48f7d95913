-- Deliveries are recognised by their id, or by their body if the code host sends none, and no longer by both.
-- The public code hosts ignore the case of owners and repositories, so their repositories are stored in lower case.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

CREATE TABLE webhook_deliveries_by_mark (
    application_id BLOB NOT NULL,
    -- `id:` and the id, or `body:` and the hash of the body.
    mark TEXT NOT NULL,
    taken_at INTEGER NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (application_id, mark),
    CONSTRAINT webhook_deliveries_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT;
INSERT INTO webhook_deliveries_by_mark (application_id, mark, taken_at)
    SELECT application_id, coalesce('id:' || delivery_id, 'body:' || lower(hex(body_hash))), taken_at
    FROM webhook_deliveries;
DROP INDEX webhook_deliveries_application_id_delivery_id_key;
DROP TABLE webhook_deliveries;
ALTER TABLE webhook_deliveries_by_mark RENAME TO webhook_deliveries;
CREATE INDEX webhook_deliveries_taken_at_idx ON webhook_deliveries (taken_at);

-- Of two secrets of one repository the older one stays valid, without being the one to tell the code host.
UPDATE webhook_secrets SET valid_until = 253402300799000000
    WHERE valid_until IS NULL AND substr(repository, 1, instr(repository, '/') - 1)
        IN ('github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com') AND EXISTS (
        SELECT 1 FROM webhook_secrets AS newer
        WHERE newer.organization_id = webhook_secrets.organization_id
            AND newer.valid_until IS NULL
            AND lower(newer.repository) = lower(webhook_secrets.repository)
            AND (newer.created_at, newer.id) > (webhook_secrets.created_at, webhook_secrets.id)
    );
UPDATE webhook_secrets SET repository = lower(repository)
    WHERE substr(repository, 1, instr(repository, '/') - 1)
        IN ('github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com');
