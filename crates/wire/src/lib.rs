//! Bytes and meaning: TLPs, DLLPs, flits, CRCs, the NetTLP header
