"""`deniable dev`: a collector, a dashboard and a live page on this machine, for developers."""
