"""What rides in an app: values become reports, which are kept, charged and sent."""
