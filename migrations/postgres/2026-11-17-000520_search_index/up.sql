-- The index of texts by their trigrams, for searches in audit logs and in logs of applications.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.
-- Both tables start empty: servers fill them in the background, and scan what is not indexed yet. They are derived from
-- other tables, and are not part of backups.

-- The block that is indexed next, of each log that has one.
CREATE TABLE search_indexes (
    kind TEXT NOT NULL,
    -- The chain of an audit log, or an application.
    owner_id UUID NOT NULL,
    next_block BIGINT NOT NULL,
    CONSTRAINT search_indexes_pkey PRIMARY KEY (kind, owner_id)
);

-- The rows of a block that contain the trigrams of a bucket. Bucket -1 is empty, and in every indexed block.
CREATE TABLE search_postings (
    kind TEXT NOT NULL,
    owner_id UUID NOT NULL,
    block BIGINT NOT NULL,
    bucket INTEGER NOT NULL,
    postings BYTEA NOT NULL,
    CONSTRAINT search_postings_pkey PRIMARY KEY (kind, owner_id, block, bucket)
);
-- They do not compress.
ALTER TABLE search_postings ALTER COLUMN postings SET STORAGE EXTERNAL;
