//! Development-only tools: machines in virtual time, lossy links, vector loader.
