"""What a batch says: its bytes decoded, each report validated, all of them added up."""
