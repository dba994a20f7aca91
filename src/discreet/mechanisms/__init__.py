"""Mechanisms: what randomizes one answer or one number, a family a module.

A mechanism is a small frozen value that the respondent, the collector and the accountant all read.
It knows nothing of Naive Bayes.
"""
