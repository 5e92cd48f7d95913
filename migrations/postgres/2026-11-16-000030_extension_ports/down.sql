DROP TABLE extension_ports;
