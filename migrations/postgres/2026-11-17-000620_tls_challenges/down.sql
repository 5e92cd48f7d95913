ALTER TABLE acme_challenges DROP COLUMN domain;
