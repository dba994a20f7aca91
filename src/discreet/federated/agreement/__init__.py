"""What all parties sign before they start, and who they are."""
