"""`deniable doctor`: why no report arrives, and what to do. docs/how-to/debug.md has its codes."""
