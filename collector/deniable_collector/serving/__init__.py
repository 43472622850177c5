"""Around one request: who may send, how much and how slowly, and what is answered."""
