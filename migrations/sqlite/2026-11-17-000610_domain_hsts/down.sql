DROP TABLE domain_hsts;
