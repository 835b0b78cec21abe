"""What version 0.1 wrote, when the package was called understudy: it is read, and never written."""
