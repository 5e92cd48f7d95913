-- Invitations of people who have an account to an organization.
-- Ids are 16 bytes, moments are microseconds since 1970, in UTC.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.
CREATE TABLE invitations (
    id BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    role TEXT NOT NULL,
    invited_by BLOB NOT NULL,
    -- The hash of the token that the invitation needs while the address of the user is not verified.
    token_hash BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    CONSTRAINT invitations_pkey PRIMARY KEY (id),
    CONSTRAINT invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT invitations_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT invitations_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES users (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX invitations_organization_id_user_id_key ON invitations (organization_id, user_id);
CREATE INDEX invitations_user_id_idx ON invitations (user_id);

-- No address was ever proved: the tokens that set it were handed out by admins.
UPDATE users SET is_verified = 0;
