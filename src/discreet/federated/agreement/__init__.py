"""Identities of the parties, and the documents that all of them sign before a round."""
