"""One declaration of settings: every face has all of them, under the same names, with the same defaults."""

import inspect
from dataclasses import fields, replace

import pytest
from click.testing import CliRunner

import ectype as ec
from ectype.cli.copy import command
from ectype.errors import SettingError
from ectype.plan.resolve import plan_of_json, resolve, resolve_decided, settings_of_json
from ectype.plan.settings import ASK, MAKE, RUN, STOP, SharedSettings, about

SETTINGS = {part.name: part.default for part in fields(ec.Settings)}
ESTIMATORS = (ec.SequentialCopy, ec.SinglePassCopy, ec.OnlineCopy)


def test_copy_classifier_takes_every_setting():
    parameters = inspect.signature(ec.copy_classifier).parameters
    found = {name: parameter.default for name, parameter in parameters.items() if name in SETTINGS}
    assert found == SETTINGS
    assert set(parameters) - set(SETTINGS) == {"original", "space", "classes", "out", "test", "rows", "answers"}
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in SETTINGS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_take_every_setting(estimator):
    """But the method, which is what the estimator is, and the seed, which scikit-learn calls random_state."""
    found, chosen = estimator().get_params(), {part.name: part.default for part in fields(SharedSettings)}
    assert set(SETTINGS) - set(chosen) == {"method", "seed"}
    assert set(found) - set(chosen) == {"original", "space", "random_state"}
    different = {name for name, default in chosen.items() if found[name] != default}
    assert different == {"progress"} | ({"budget"} if estimator is ec.SinglePassCopy else set())


def test_the_command_takes_every_setting():
    options = {parameter.name: parameter for parameter in command.params}
    assert set(SETTINGS) <= set(options)
    for name, default in SETTINGS.items():
        found = options[name]
        assert found.opts == [f"--{name.replace('_', '-')}"]
        assert found.default == default or (found.default is None or found.multiple)
        assert found.group == about(name).group


def test_every_setting_is_documented_in_every_face():
    lines = ec.copy_classifier.__doc__
    for name in SETTINGS:
        assert f"    {name} : " in lines
        assert about(name).text.endswith(".")


def test_help_has_groups_and_examples():
    shown = CliRunner().invoke(command, ["--help"]).output
    places = [shown.index(f"{heading}:") for heading in (ASK, MAKE, STOP, RUN, "  Examples")]
    assert places == sorted(places)
    assert shown.count("  ectype copy ") == 2


@pytest.mark.parametrize("name", ["iterations", "memory", "confidence", "penalty", "schedule", "decay"])
def test_the_command_reads_what_only_python_had(name):
    text = {"memory": "0.25", "penalty": "norm"}.get(name, "0.5" if name in ("confidence", "decay") else "3")
    context = command.make_context("copy", ["m:c", "--out", "x", f"--{name}", text])
    value = context.params[name]
    assert str(value) == text
    resolve(ec.Settings(**{name: value}, delta=0.1))


def test_words_and_numbers_of_the_memory_weight_are_told_apart():
    given = {text: command.make_context("copy", ["m:c", "--out", "x", "--memory", text]) for text in ("none", "odd")}
    assert resolve(ec.Settings(memory=given["none"].params["memory"], delta=0.1)).learn.memory == "none"
    with pytest.raises(SettingError, match="memory: expected 'automatic', 'none' or a number"):
        resolve(ec.Settings(memory=given["odd"].params["memory"]))


@pytest.mark.parametrize("method", ["sequential", "pure", "one-shot", "online"])
@pytest.mark.parametrize("preset", ["default", "fast", "paper", "paper-staged"])
def test_a_plan_survives_its_json(method, preset):
    asked = ec.Settings(method=method, preset=preset, budget=700, exclude=["a"], layers=[5, 4])
    plan = resolve_decided(asked)  # pure is not told from sequential with every preset
    assert resolve_decided(settings_of_json(plan.as_json())).as_json() == plan.as_json()
    assert plan_of_json(plan.as_json(), seed=7).as_json() == {**plan.as_json(), "seed": 7}


def test_a_plan_is_made_once_and_not_from_anything_else():
    plan = resolve(ec.Settings())
    with pytest.raises(SettingError, match="settings: expected a Settings, found Plan"):
        resolve(plan)
    assert resolve(replace(plan.asked)).as_json() == plan.as_json()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"target": 0.99},
            ["active: every answer is kept", "as soon as the lower bound reaches 0.99, after 300 answers"],
        ),
        ({"max_kept": 100}, ["bounded: at most 100 points are kept", "blend, of all answers"]),
        ({"delta": 0.1}, ["sequential: points with an uncertainty below 0.1 are dropped", "the one that chose"]),
        ({"method": "online"}, ["online: every batch is used once", "then 100, 100 random as well"]),
        ({"method": "one-shot", "to": "tree"}, ["300 rows in one round: 300 random\n", "make   tree, of all answers"]),
        ({"preset": "fast"}, ["pure: every answer is kept", "then 100, 100 where the copy is least sure"]),
    ],
)
def test_a_plan_says_what_will_be_asked_and_learned(settings, expected):
    said = str(resolve(ec.Settings(budget=300, **settings)))
    assert "ask    300 rows in " in said
    assert "2,000 held out, 46 asked again: 2,346 in all" in said
    for words in expected:
        assert words in said
