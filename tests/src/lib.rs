//! Black-box tests of the binary (`api`, `cli`) and tests of the project's rules (`architecture`).
