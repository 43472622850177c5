"""What an answer says, apart from where it is shown: in a terminal, on a page, or as data."""
