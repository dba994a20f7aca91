"""What runs on a respondent's device: one answer sheet in, one randomized sheet out, drawn once.

The sheet is written down before it leaves. Asking again returns the same sheet: repeating the draw
would show the private answers to whoever compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.errors import FormatError, SchemaError
from discreet.local.store import FolderStore, MemoryStore, Store
from discreet.mechanisms.response import Unrelated
from discreet.privacy import Guarantee
from discreet.randomness import Random, as_random
from discreet.schema import Numeric
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.sheet import Sheet

__all__ = ["FolderStore", "MemoryStore", "Respondent", "Store", "cells_of", "randomized"]


class Respondent:
    """One person's side of a survey.

    Parameters
    ----------
    questionnaire : Questionnaire
    store : Store
        Where the sheet is kept before it leaves.
    by_hand : bool, default False
        Whether the person drew with their own device (dice, cards, a paper form) and now enters
        what they ended up answering: then nothing is drawn here.
    random_state : None, int or Random
        None is the cryptographic source; anything else is simulation.
    """

    def __init__(
        self,
        questionnaire: Questionnaire,
        store: Store,
        by_hand: bool = False,
        random_state: int | Random | None = None,
    ) -> None:
        if by_hand and questionnaire.device == "software":
            raise SchemaError(
                "this questionnaire is drawn by software; write device: either to also allow "
                "respondents to draw by hand"
            )
        if not by_hand and questionnaire.device == "hand":
            raise SchemaError("respondents of this questionnaire draw by hand: pass by_hand=True")
        self.questionnaire, self.store, self.by_hand = questionnaire, store, by_hand
        self._random = as_random(random_state)

    @property
    def guarantee(self) -> Guarantee:
        """What this person is promised."""
        return self.questionnaire.guarantee.under(simulated=self._random.simulated)

    def sheet(self, answers: Mapping[str, Any], personal: Mapping[str, Any] | None = None) -> Sheet:
        """The sheet of this person; the same one however often it is asked for.

        Parameters
        ----------
        answers : mapping of question to answer
            The true answers to all private questions; by hand, what was clicked in the end.
        personal : mapping of question to answer, optional
            The answers to the paired personal questions, where they are the person's own.
        """
        kept = self.store.read(self.questionnaire.digest)
        if kept:
            return self._kept(kept[0])
        made = self._make(answers, personal)
        if self.store.write(self.questionnaire.digest, 0, made.to_json()):
            return made
        return self._kept(self.store.read(self.questionnaire.digest)[0])

    def _kept(self, text: str) -> Sheet:
        try:
            sheet = Sheet.from_json(text)
            if sheet.questionnaire != self.questionnaire.digest:
                raise FormatError("it answers another questionnaire")
        except FormatError as error:
            raise FormatError(
                f"the sheet kept on this device is damaged ({error}); it is not drawn again, "
                "because two draws would show what is private"
            ) from None
        return sheet

    def _make(self, answers: Mapping[str, Any], personal: Mapping[str, Any] | None) -> Sheet:
        survey = self.questionnaire
        cells = cells_of(survey, answers)
        asked = [n for g in survey.groups if g.model == "unrelated" for n in g.questions]
        own: Integers | None = None
        if self.by_hand:
            if personal is not None:
                raise SchemaError("by hand the personal answers are drawn before: leave them out")
        elif survey.personal == "own" and asked:
            if personal is None:
                raise SchemaError(
                    "the personal answers of this survey are the respondent's own: pass personal="
                )
            own = cells_of(survey, personal, asked)
        elif personal is not None:
            raise SchemaError(
                "in this survey the device draws the personal answers: leave them out"
            )
        sent = cells if self.by_hand else randomized(survey, cells, self._random, own)
        identity = self._random.raw(16).tobytes().hex()
        answered = tuple(int(answer) for answer in sent[0])
        return Sheet(survey.digest, identity, answered, self._random.simulated)


def cells_of(
    questionnaire: Questionnaire, answers: Mapping[str, Any], asked: Any = None
) -> Integers:
    """Answers as one row of cell numbers, or an error that names what does not fit."""
    asked = questionnaire.names if asked is None else asked
    unknown = sorted(str(name) for name in answers.keys() - set(asked))
    if unknown:
        raise SchemaError(f"there is an answer to {', '.join(unknown)}, which no one asked for")
    row = np.zeros((1, len(questionnaire.names)), np.int64)
    for name in asked:
        cells = questionnaire.cells[name]
        if name not in answers and cells.missing is None:
            raise SchemaError(f"{name}: there is no answer")
        value = answers.get(name)
        clicked = isinstance(cells.feature, Numeric) and value in cells.labels  # "1 to 3"
        cell = cells.labels.index(value) if clicked else cells.index(value)
        row[0, questionnaire.place[name]] = cell
    return row


def randomized(
    questionnaire: Questionnaire,
    answers: Integers,
    random: Random,
    personal: Integers | None = None,
) -> Integers:
    """Randomized answers of many people at once: what one device does, vectorised.

    Group after group: one coin a person, then the personal answers from the law, drawn whether or
    not they are needed.
    """
    sent = np.empty_like(answers)
    for channel, places in zip(questionnaire.channels, questionnaire.places, strict=True):
        own = None
        if isinstance(channel, Unrelated) and personal is not None:
            own = personal[:, places]
        sent[:, places] = channel.perturb(answers[:, places], random, own)
    return sent
