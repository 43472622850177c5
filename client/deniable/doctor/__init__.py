"""`deniable doctor`: why no report arrives, and what to do. docs/doctor.md lists what it finds."""
