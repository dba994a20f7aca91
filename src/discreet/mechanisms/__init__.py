"""Mechanisms that randomize one answer or one number, one family per module.

A mechanism is a small frozen value that the respondent, the collector and the accountant all read.
It does not depend on Naive Bayes.
"""
