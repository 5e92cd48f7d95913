DROP TABLE site_archive_parts;
DROP TABLE site_archives;
DROP TABLE compositions;
DROP TABLE setup_token;
