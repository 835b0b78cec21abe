"""How model files of other libraries are loaded, in the process that runs them.

This file is run by its path in that process and imports nothing of ectype. `load` gives what the model says about
itself, and the function that answers: from inputs by name to a code for each row and a table of scores.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    Frame = pd.DataFrame

Feeds = dict[str, np.ndarray]
Ask = Callable[[Feeds], list[np.ndarray]]
Loaded = tuple[dict[str, Any], Ask]


def load(model: bytes, setting: dict[str, Any]) -> Loaded:
    """The model in a file, loaded by the library that is named."""
    # Their interfaces for scikit-learn are not needed, and importing that takes three times as long as all the rest.
    sys.modules["sklearn"] = None  # type: ignore[assignment]
    loaders = {"lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost, "pypmml": _pmml}
    return loaders[setting["library"]](model)


def _table(feeds: Feeds) -> Any:
    """Rows as the libraries take them: a matrix, or a data frame of columns by name."""
    if list(feeds) == [""]:
        return feeds[""]
    import pandas as pd

    return pd.DataFrame({name: pd.Series(values) for name, values in feeds.items()})


def _words(rows: Frame) -> list[str]:
    """The columns that hold words."""
    from pandas.api.types import is_numeric_dtype

    return [name for name in rows.columns if not is_numeric_dtype(rows[name])]


def _codes(scores: np.ndarray) -> list[np.ndarray]:
    """The class with the highest score beside the scores; the first, where several have it."""
    return [scores.argmax(axis=1), scores]


def _beside(second: np.ndarray) -> np.ndarray:
    """Two columns from the probability of the second class."""
    return np.column_stack([1.0 - second, second])


# --- LightGBM ---------------------------------------------------------------------------------------------------------


def _lightgbm(model: bytes) -> Loaded:
    import lightgbm

    text = model.decode()
    booster = lightgbm.Booster(model_str=text, params={"verbosity": -1})
    said = {name: re.search(rf"^{name}=(.*)$", text, re.MULTILINE) for name in ("objective", "feature_infos")}
    objective, infos = (match[1] if match else "" for match in said.values())
    kind = objective.partition(" ")[0]
    k = {"binary": 2, "cross_entropy": 2, "xentropy": 2}.get(kind) or (
        booster.num_model_per_iteration() if kind.startswith("multiclass") else 0
    )
    grouped = [name for name, info in zip(booster.feature_name(), infos.split(), strict=False) if info[0] not in "[n"]

    def ask(feeds: Feeds) -> list[np.ndarray]:
        rows = _table(feeds)
        if not isinstance(rows, np.ndarray):
            rows = rows.astype(dict.fromkeys(grouped, "category"))
        found = np.asarray(booster.predict(rows, num_threads=1))
        return _codes(_beside(found) if k == 2 else found) if k else [found, found]

    names = booster.feature_name()
    usual = [f"Column_{j}" for j in range(len(names))]
    return {"d": len(names), "names": None if names == usual else names, "classes": list(range(k))}, ask


# --- XGBoost ----------------------------------------------------------------------------------------------------------


def _xgboost(model: bytes) -> Loaded:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(bytearray(model))
    booster.set_param({"nthread": 1})
    learner = json.loads(booster.save_config())["learner"]
    kind, k = learner["objective"]["name"], int(learner["learner_model_param"]["num_class"])
    best = booster.attributes().get("best_iteration")  # where training stopped early; scikit-learn's interface heeds it
    until = (0, 0 if best is None else int(best) + 1)

    def ask(feeds: Feeds) -> list[np.ndarray]:
        rows = _table(feeds)
        if not isinstance(rows, np.ndarray):
            rows = _categories(booster, rows)
        matrix = xgboost.DMatrix(rows, feature_names=booster.feature_names, enable_categorical=True, nthread=1)
        found = np.asarray(booster.predict(matrix, iteration_range=until))
        if kind in ("multi:softmax", "binary:hinge"):  # labels, not scores
            return [found.astype(np.int64), np.zeros((len(found), 0))]
        if kind == "binary:logistic":
            return _codes(_beside(found.astype(np.float64)))
        return _codes(found) if kind == "multi:softprob" else [found, found]

    classes = k if kind.startswith("multi:") else 2 if kind in ("binary:logistic", "binary:hinge") else 0
    return {"d": booster.num_features(), "names": booster.feature_names, "classes": list(range(classes))}, ask


def _categories(booster: Any, rows: Frame) -> Frame:
    """Words as categories, if the file says which number stands for which."""
    words = _words(rows)
    if words and booster.get_categories().empty():
        raise ValueError(f"words in {words[0]!r}, and a file that does not say which numbers stand for them")
    return rows.astype(dict.fromkeys(words, "category"))


# --- CatBoost ---------------------------------------------------------------------------------------------------------


def _catboost(model: bytes) -> Loaded:
    import catboost

    booster = catboost.CatBoost()
    booster.load_model(blob=model)
    names, grouped = list(booster.feature_names_), booster.get_cat_feature_indices()
    classes = np.asarray(booster.classes_).tolist()

    def ask(feeds: Feeds) -> list[np.ndarray]:
        rows = _table(feeds)
        if isinstance(rows, np.ndarray) and grouped:
            raise ValueError("rows of numbers alone, and a model with columns of words: describe the space by columns")
        if not isinstance(rows, np.ndarray):
            words = _words(rows)
            rows = rows.astype({names[j]: str for j in grouped if names[j] not in words})
        if not classes:
            found = np.asarray(booster.predict(rows, thread_count=1))
            return [found, found]
        labels = np.asarray(booster.predict(rows, prediction_type="Class", thread_count=1)).reshape(len(rows))
        codes = np.array([classes.index(_alike(label, classes)) for label in labels.tolist()])
        return [codes, np.asarray(booster.predict(rows, prediction_type="Probability", thread_count=1))]

    usual = names == [str(j) for j in range(len(names))]
    return {"d": len(names), "names": None if usual else names, "classes": classes}, ask


def _alike(label: Any, classes: list[Any]) -> Any:
    """A label in the type of the classes: CatBoost gives booleans back as words."""
    return label if label in classes else {str(value): value for value in classes}[str(label)]


# --- PMML -------------------------------------------------------------------------------------------------------------


def _pmml(model: bytes) -> Loaded:
    """By PMML4S, in a JVM inside of this process: it is started once, and ends with the process."""
    import pandas as pd
    from pypmml import Model, PMMLContext

    PMMLContext.getOrCreate(gateway="jpype")
    found = Model.fromBytes(model)
    found.setSupplementOutput(True)  # also where the file names other outputs
    names, classes = [str(name) for name in found.inputNames], list(found.classes or [])
    fields = [(str(field.feature), str(field.value), str(field.name)) for field in found.outputFields]
    label = next((name for feature, _, name in fields if feature == "predictedValue"), f"predicted_{found.targetName}")
    by_class = {value: name for feature, value, name in fields if feature == "probability"}
    scores = [by_class.get(str(value), "") for value in classes]

    def ask(feeds: Feeds) -> list[np.ndarray]:
        rows = _table(feeds)
        said = found.predict(pd.DataFrame(rows, columns=names) if isinstance(rows, np.ndarray) else rows)
        gone = said[label].isna().to_numpy()
        if gone.any():
            raise ValueError(f"no answer to row {int(gone.argmax())}: it has a gap, or a value the model does not know")
        if not classes:
            column = said[label].to_numpy(dtype=float)
            return [column, column]
        codes = np.array([classes.index(_alike(value, classes)) for value in said[label].tolist()])
        table = said[scores] if set(scores) <= set(said.columns) else said[[]]
        return [codes, table.to_numpy(dtype=float)]

    return {"d": len(names), "names": names, "classes": classes}, ask
