//! Black-box tests of the binary (`api`) and tests of the house rules (`architecture`).
