-- The domain of a challenge that is answered in a TLS handshake; null for one that is answered over HTTP.
-- The twin in ../../sqlite has the same columns.
ALTER TABLE acme_challenges ADD COLUMN domain TEXT;
