-- The time at which the ACME server is asked again when a certificate should be renewed; null if it never was.
-- The twin in ../../sqlite has the same columns.
ALTER TABLE certificates ADD COLUMN renewal_check_at TIMESTAMPTZ;
