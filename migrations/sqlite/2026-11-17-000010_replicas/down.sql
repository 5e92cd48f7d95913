DROP TABLE catalog_version;
DROP TABLE drains;
DROP TABLE leadership;
DROP TABLE replicas;
