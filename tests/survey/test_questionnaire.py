"""A questionnaire explains itself, travels as JSON or YAML, and says what it promises."""

import json
import math
import re
from fractions import Fraction
from importlib import resources
from pathlib import Path

import pytest

from discreet import EstimationError, FormatError, PrivacyError, SchemaError
from discreet.collection.announcement import AnnouncementTexts, QuestionTexts
from discreet.errors import DiscreetError
from discreet.privacy.guarantee import format_rounded_up
from discreet.privacy.shuffling import Shuffle
from discreet.survey.form import FormTexts, list_instructions, load_texts, render_form
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
from schemas import BITS

EXAMPLE = resources.files("discreet.survey").joinpath("example.yaml").read_text("utf-8")


def changed(**fields):
    """The example as JSON text with some fields replaced; it no longer states its channels."""
    body = json.loads(Questionnaire.from_yaml(EXAMPLE).to_json())
    del body["digest"], body["channels"]
    return json.dumps(body | fields)


def test_it_is_the_same_in_json_and_in_yaml(survey):
    for one in (survey, Questionnaire.from_yaml(EXAMPLE)):
        again = Questionnaire.from_json(one.to_json())
        assert again.digest == one.digest
        assert again.to_json() == one.to_json()
        assert [c.get_parameters() for c in again.channels] == [
            c.get_parameters() for c in one.channels
        ]
    assert Questionnaire.from_json(changed()).digest == Questionnaire.from_yaml(EXAMPLE).digest


TWO = (Group(("a",), theta=0.5), Group(("b", "c"), theta=0.5))
LAWS = (PersonalLaw(("a",), (1, 3)), PersonalLaw(("b",), (1, 3)))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Group({"a", "b"}, theta=0.5), "a group: questions is a set"),
        (lambda: PersonalLaw({"a", "b"}, (1, 2, 3, 4)), "a personal law: questions is a set"),
        (lambda: PersonalLaw(("a",), {1, 3}), "a personal law: weights is a set"),
        (lambda: Questionnaire(BITS, {*TWO}), "a questionnaire: groups is a set"),
        (lambda: Questionnaire(BITS, TWO, {*LAWS}), "a questionnaire: laws is a set"),
        (lambda: Questionnaire(BITS, TWO, notes={"x", "y"}), "a questionnaire: notes is a set"),
        (lambda: Questionnaire.from_schema(BITS, groups={("a",), ("b", "c")}), "groups is a set"),
        (lambda: Questionnaire.from_schema(BITS, groups=[["a"], {"b", "c"}]), "groups is a set"),
    ],
)
def test_a_set_has_no_order_and_so_no_digest(build, says):
    """Its order changes from process to process: nobody could read again what was published."""
    with pytest.raises(SchemaError, match=says):
        build()


def test_weights_with_a_common_divisor_can_be_read_again():
    one, same = (
        Questionnaire(BITS, [Group(tuple("abc"), theta=0.5)], [PersonalLaw(("a",), weights)])
        for weights in ((2, 6), (1, 3))
    )
    assert Questionnaire.from_json(one.to_json()).digest == one.digest == same.digest


def test_the_example_is_one_to_follow():
    """Five private questions in two groups, drawn by software or dice, at an epsilon of 3."""
    one = Questionnaire.from_yaml(EXAMPLE)
    assert (len(one.names), len(one.groups), one.device) == (5, 2, "either")
    assert 2 < one.guarantee.epsilon <= 3
    assert not one.guarantee.void
    for stated, epsilon in zip(
        re.findall(r"# epsilon (\d\.\d\d)", EXAMPLE), one.epsilons, strict=True
    ):
        assert float(stated) - 0.01 < epsilon <= float(stated)  # the comments say it, rounded up
    shown = Path(__file__).parents[2] / "examples" / "survey" / "questionnaire.yaml"
    assert shown.read_text("utf-8") == EXAMPLE


def test_words_of_yaml_stay_words():
    one = Questionnaire.from_yaml(EXAMPLE)
    assert one.schema.classes == ("no", "yes")  # YAML 1.1 would read False and True
    with pytest.raises(FormatError, match="references"):
        Questionnaire.from_yaml("a: &x 1\nb: *x")
    with pytest.raises(FormatError, match="YAML"):
        Questionnaire.from_yaml("a: [1")
    with pytest.raises(FormatError):
        Questionnaire.from_yaml("just words")


def test_devices_draw_with_integers_over_two_to_the_64(survey):
    body = json.loads(survey.to_json())
    assert body["channels"][0]["theta"] == str(math.floor(Fraction(6, 10) * 2**64))
    assert body["channels"][0]["laws"][0] == {"places": [0], "weights": [1, 3]}
    body["channels"][0]["theta"] = str(2**64 - 1)
    del body["digest"]
    with pytest.raises(PrivacyError, match="otherwise than promised"):
        Questionnaire.from_json(json.dumps(body))


SHUFFLED = {
    "two groups": [Group(("a", "b"), epsilon="shuffled"), Group(("c",), epsilon="shuffled")],
    "uneven": [Group(("a", "b"), epsilon="shuffled"), Group(("c",), theta="1/10")],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHUFFLED)
def test_a_shuffled_questionnaire_keeps_the_channels_that_were_published(name, monkeypatch):
    """An earlier version computed less closely what the shuffle allows; its sheets still count."""
    laws = [PersonalLaw(("a",), (1, 3))] if name == "uneven" else []
    shuffle = Shuffle(1.0, 1e-6, 3_000)
    with monkeypatch.context() as earlier:
        earlier.setattr(Questionnaire, "_compute_sheet_blanket", lambda self: None)
        published = Questionnaire(BITS, SHUFFLED[name], laws, shuffled=shuffle)
        text, alone = published.to_json(), published.guarantee.unshuffled_epsilon
    now = Questionnaire(BITS, SHUFFLED[name], laws, shuffled=shuffle)
    assert now.guarantee.unshuffled_epsilon > alone
    again = Questionnaire.from_json(text)
    assert (again.digest, again.to_json()) == (published.digest, text)
    assert again.guarantee.unshuffled_epsilon == alone
    assert (
        again.channels[0].threshold == published.channels[0].threshold < now.channels[0].threshold
    )
    assert Questionnaire.from_json(again.encode_canonical()).digest == published.digest
    # twins: a theta that breaks the promise, that estimates nothing, that is none
    most = now.channels[0].threshold
    for theta in (str(most + 1), str(2**64), "9" * 20, "0", "a", "-1"):
        body = json.loads(text)
        body["channels"][0]["theta"] = theta
        del body["digest"]
        with pytest.raises((PrivacyError, EstimationError)):
            Questionnaire.from_json(json.dumps(body))
    if name == "uneven":  # the theta of the second group is written in the group
        body = json.loads(text)
        body["channels"][1]["theta"] = "1844674407370955160"
        del body["digest"]
        with pytest.raises(PrivacyError, match="otherwise than promised"):
            Questionnaire.from_json(json.dumps(body))


def test_a_published_channel_that_reveals_more_is_refused():
    """Warner's model with a small theta says the opposite of the truth, nearly always."""
    groups = [
        Group(("a",), model="related", epsilon="shuffled"),
        Group(("b", "c"), theta="1/10"),
    ]
    body = json.loads(Questionnaire(BITS, groups, shuffled=Shuffle(1.0, 1e-6, 3_000)).to_json())
    body["channels"][0]["theta"] = str(2**50)
    del body["digest"]
    with pytest.raises(PrivacyError, match="let each reveal less"):
        Questionnaire.from_json(json.dumps(body))


def test_damage_and_future_versions_are_found(survey):
    text = survey.to_json()
    with pytest.raises(FormatError, match="changed or damaged"):
        Questionnaire.from_json(text.replace('"sick"', '"ill"'))
    with pytest.raises(FormatError, match="version 2"):
        Questionnaire.from_json(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(FormatError, match="incomplete"):
        Questionnaire.from_json(text[:100])
    with pytest.raises(FormatError, match="invalid at colour"):
        Questionnaire.from_json(changed(colour="red"))


QUESTION = {"name": "burnout", "answers": ["no", "yes"]}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"target": "weight"}, "not one of the questions"),
        ({"questions": [QUESTION, QUESTION]}, "two questions are named"),
        ({"questions": [QUESTION, {"name": "a"}]}, "list its answers"),
        (
            {"questions": [QUESTION, {"name": "a", "answers": [1], "lower": 0}]},
            "answers and bounds",
        ),
        ({"personal": "nobody"}, "device or own"),
        ({"device": "pigeon"}, "software or hand or either"),
        ({"groups": [{"questions": ["burnout"], "theta": 0.5}]}, "in no group"),
        ({"groups": []}, "in no group"),
        ({"groups": [{"questions": [], "theta": 0.5}]}, "no questions"),
        ({"groups": [{"questions": ["weight"], "theta": 0.5}]}, "'weight'"),
        ({"groups": [{"questions": ["sleep", "sleep"], "theta": 0.5}]}, "twice"),
        ({"groups": [{"questions": ["sleep"]}]}, "exactly one of theta"),
        ({"groups": [{"questions": ["sleep"], "theta": 0.5, "epsilon": 1}]}, "theta and epsilon"),
        ({"joint": [{"questions": ["sleep", "overtime"], "law": [1] * 4}]}, "different groups"),
        ({"joint": [{"questions": ["burnout", "sleep"], "law": [1] * 4}]}, "two personal laws"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(fields, words):
    with pytest.raises(DiscreetError, match=words):
        Questionnaire.from_json(changed(**fields))


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ([0.5, 0.6], "add up to 1.1"),
        ([1], "1 weights, the answers need 2: n, y"),
        ([0, 0], "not all zero"),
        ([-1, 2], "0 or more"),
        (["x", 1], "write a number"),
        ([1, 2**60], "beyond 2\\^53"),
    ],
)
def test_a_law_that_is_none_is_refused(law, words):
    body = json.loads(Questionnaire.from_schema(BITS, 0.5).to_json())
    del body["digest"], body["channels"]
    body["questions"][0]["personal"]["law"] = law
    with pytest.raises(DiscreetError, match=words):
        Questionnaire.from_json(json.dumps(body))


@pytest.mark.parametrize(
    ("group", "error", "words"),
    [
        ({"theta": 0}, EstimationError, "theta is 0"),
        ({"theta": 1.2}, PrivacyError, "0 to 1"),
        ({"theta": "1e999999999"}, PrivacyError, "write a number such as 0.7"),
        ({"theta": 10**5000}, PrivacyError, "theta is beyond 10"),
        ({"theta": "9" * 9000}, PrivacyError, "write a number such as 0.7"),
        ({"theta": 0.5, "model": "related"}, EstimationError, "theta is 1/2"),
        ({"epsilon": 1, "model": "related"}, PrivacyError, "infinite epsilon"),
        ({"epsilon": -1}, PrivacyError, "above 0"),
        ({"belief": (0.5, 0.4)}, PrivacyError, "0 < prior < posterior < 1"),
        ({"belief": (0.1, 1)}, PrivacyError, "0 < prior < posterior < 1"),
        ({"theta": 0.5, "model": "guess"}, SchemaError, "unrelated or related"),
    ],
)
def test_theta_is_checked_where_it_is_written(group, error, words):
    with pytest.raises(error, match=words):
        Questionnaire(BITS, [Group(("a", "b", "c"), **group)])


@pytest.mark.parametrize(("prior", "posterior"), [("0.1", "0.5"), ("0.01", "0.02"), ("1/2", "0.9")])
def test_theta_by_belief_is_the_largest_that_keeps_it(prior, posterior):
    """The worst statement is a whole answer of the group, whose decoy is rarest."""
    made = Questionnaire(
        BITS,
        [Group(("a", "b", "c"), belief=(prior, posterior))],
        [PersonalLaw(("a",), (1, 4))],
    )
    channel, prior, posterior = made.channels[0], Fraction(prior), Fraction(posterior)

    def belief(channel):
        rarest = min(channel.outputs(), key=channel.compute_personal_probability)
        true = channel.likelihood(rarest, rarest)
        false = channel.likelihood([1 - v for v in rarest], rarest)
        return prior * true / (prior * true + (1 - prior) * false)

    assert belief(channel) <= posterior
    assert float(belief(channel)) == pytest.approx(float(posterior), rel=1e-12)
    odds = posterior * (1 - prior) / prior / (1 - posterior)
    assert channel.compute_exact_epsilon() == pytest.approx(math.log(odds))


def likeliest_belief(channels, prior, statement):
    """The largest belief that a sheet creates in one of two equally known truths about a person."""
    ratio = Fraction(1)
    for channel in channels:
        one, other = statement[: channel.width], [1 - v for v in statement[: channel.width]]
        ratio *= max(
            channel.likelihood(one, sheet) / channel.likelihood(other, sheet)
            for sheet in channel.outputs()
        )
    return prior * ratio / (prior * ratio + 1 - prior)


def test_a_belief_holds_over_groups_whose_answers_are_the_same_secret():
    """Somebody knows that all answers are alike, so every group tells the same thing again."""
    groups = [Group((name,), belief=("0.1", "0.5")) for name in "abc"]
    survey, prior = Questionnaire(BITS, groups), Fraction(1, 10)
    found = likeliest_belief(survey.channels, prior, [1])
    assert found <= Fraction(1, 2)
    assert float(found) == pytest.approx(0.5, rel=1e-12)
    assert survey.guarantee.epsilon == pytest.approx(math.log(9))
    alone = [group.make_channel(survey) for group in groups[:2]]  # the twin: each group by itself
    assert float(likeliest_belief(alone, prior, [1])) > 0.899


def test_a_belief_leaves_room_for_what_other_groups_reveal():
    groups = [
        Group(("a",), theta="0.5"),  # odds times 3
        Group(("b",), belief=("0.1", "0.5")),
        Group(("c",), belief=("0.2", "0.9"), model="related"),
    ]
    survey = Questionnaire(BITS, groups)
    assert float(likeliest_belief(survey.channels, Fraction(1, 10), [1])) == pytest.approx(0.5)
    assert survey.epsilons[1] == pytest.approx(math.log(3) / 2)
    assert Questionnaire.from_json(survey.to_json()).digest == survey.digest
    for theta, model in (("0.8", "unrelated"), ("0.95", "unrelated"), (1, "unrelated")):
        with pytest.raises(PrivacyError, match=r"group a: .* may be related; lower its theta"):
            Questionnaire(BITS, [Group(("a",), theta=theta, model=model), *groups[1:]])
    own = [Group(("a", "b", "c"), belief=("0.1", "0.5"))]
    with pytest.raises(PrivacyError, match="respondents' own"):
        Questionnaire(BITS, own, personal="own")


@pytest.mark.slow
def test_the_promise_says_what_it_rests_on(schema):
    groups = Questionnaire.from_schema(schema, 0.5, bins=3)
    options = {"cuts": groups.cuts}
    software = Questionnaire(schema, groups.groups, **options)
    hand = Questionnaire(schema, groups.groups, device="hand", **options)
    own = Questionnaire(schema, groups.groups, personal="own", **options)
    open_ = Questionnaire.from_schema(schema, 1, bins=3)
    assert software.guarantee.epsilon == hand.guarantee.epsilon  # the same channel
    assert "own randomization device" in str(hand.guarantee)
    assert "own randomization device" not in str(software.guarantee)
    assert math.isinf(own.guarantee.epsilon)
    assert "no epsilon" in own.sentence
    assert "not protected" in open_.sentence
    assert f"epsilon {format_rounded_up(software.guarantee.epsilon, 3)}" in software.sentence
    assert software.guarantee.epsilon == pytest.approx(sum(software.epsilons))
    for one in (software, hand, own, open_):
        assert one.sentence.count(". ") == 0
        assert one.sentence.endswith(".")


def test_the_paper_form_draws_the_same_channel():
    one = Questionnaire.from_yaml(EXAMPLE)
    steps = list_instructions(one)[0]
    assert steps[:3] == [
        "Draw a whole number from 1 to 5 so that nobody sees it: "
        "with dice, cards or slips of paper.",
        "1 to 2: tick your true answers to all questions of this part.",
        "3 to 5: tick what the following draws say, whatever is true.",
    ]
    assert "For “medication” draw from 1 to 2. 1: no. 2: yes." in steps
    skewed = Questionnaire(BITS, [Group(("a", "b", "c"), theta=0.5)], [PersonalLaw(("a",), (7, 3))])
    assert "For “a” draw from 1 to 10. 1 to 7: n. 8 to 10: y." in list_instructions(skewed)[0]
    page = render_form(one)
    assert one.digest in page
    assert "<script" not in page
    warner = Questionnaire(BITS, [Group(("a", "b", "c"), theta="2/3", model="related")])
    assert "opposite" in list_instructions(warner)[0][-1]
    with pytest.raises(PrivacyError, match="dice"):
        render_form(Questionnaire(BITS, [Group(("a", "b", "c"), epsilon=1.0)]))
    evil = Questionnaire(BITS, [Group(("a", "b", "c"), theta=0.5)], title="<b>&")
    assert "&lt;b&gt;&amp;" in render_form(evil)


def test_the_paper_form_lists_draws_in_the_order_of_the_questions():
    laws = [PersonalLaw(("c",), (1, 1)), PersonalLaw(("a",), (7, 3))]
    for some in (laws, laws[::-1]):
        one = Questionnaire(BITS, [Group(("a", "b", "c"), theta=0.5)], some)
        draws = [step for step in list_instructions(one)[0] if step.startswith("For ")]
        assert [step.split("”")[0][-1] for step in draws] == ["a", "b", "c"]


def test_the_paper_form_speaks_other_languages(tmp_path):
    one = Questionnaire.from_yaml(EXAMPLE)
    words = AnnouncementTexts(
        "Gesund im Büro",
        "Bitte lesen.",
        questions={"medication": QuestionTexts("Nehmen Sie Beruhigungsmittel?", ("nein", "ja"))},
    )
    page = render_form(one, FormTexts("de", words, load_texts("de")))
    assert '<html lang="de" dir="ltr">' in page
    assert "Ziehen Sie eine ganze Zahl von 1 bis 5" in page
    assert "Für „Nehmen Sie Beruhigungsmittel?“ ziehen Sie von 1 bis 2. 1: nein. 2: ja." in page
    assert "☐ nein" in page
    assert "Epsilon" in page
    assert format_rounded_up(sum(one.epsilons), 3) in page
    for english in ("Draw ", "tick ", "Whoever", "That rests", "Questionnaire "):
        assert english not in page
    with pytest.raises(FormatError, match="no texts in 'fr'; there are en, de"):
        load_texts("fr")
    (tmp_path / "fr.json").write_text("{}")
    with pytest.raises(FormatError, match=r"lacks the text 'direction'; add it"):
        load_texts("fr", str(tmp_path / "fr.json"))
    french = {**load_texts("de"), "hand.truth": "Cochez vos vraies réponses.", "direction": "ltr"}
    (tmp_path / "french.json").write_text(json.dumps(french))
    own = Questionnaire(BITS, [Group(("a", "b", "c"), theta=1)])
    assert "vraies" in render_form(
        own, FormTexts("fr", None, load_texts("fr", str(tmp_path / "french.json")))
    )
