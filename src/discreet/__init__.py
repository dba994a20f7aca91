"""Naive Bayes classifiers trained under differential privacy: central, local, survey, federated.

The public names; each is imported when it is first used, so that ``import discreet`` stays quick.
"""

from discreet.exports import attach_stub

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__)
__all__ += ["__version__"]
