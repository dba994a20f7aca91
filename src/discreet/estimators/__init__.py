"""scikit-learn estimators, one per trust model; all of them predict in the same way."""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
