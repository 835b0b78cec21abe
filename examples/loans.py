"""A table of loans and a model that decides about them: what the tutorial copies, and stands for what you have.

    python loans.py

It writes `loans.csv`, 3000 past decisions; `rows.csv`, 500 rows that nobody has decided about; and `model.skops`, a
boosted pipeline fitted to the decisions. The table is made up: numbers, words, flags, an order, and gaps.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

LABEL, WORDS = "decision", ["purpose", "grade"]


def table(n: int, seed: int = 0) -> pd.DataFrame:
    """Loans, each with the decision that a person might have made."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 75, n)
    years = np.minimum(rng.poisson(6, n), age - 17)
    income = np.round(rng.lognormal(10.4, 0.5, n) * (1 + years / 40), -2)
    amount = np.round(income * rng.uniform(0.05, 1.5, n), -2)
    frame = pd.DataFrame(
        {
            "age": age,
            "years_employed": years,
            "income": np.where(rng.random(n) < 0.06, np.nan, income),
            "amount": amount,
            "purpose": rng.choice(["car", "home", "business", "other"], n, p=[0.4, 0.3, 0.1, 0.2]),
            "grade": rng.choice(list("ABCD"), n, p=[0.3, 0.35, 0.25, 0.1]),
            "owner": rng.random(n) < 0.2 + age / 150,
        }
    )
    frame.loc[rng.random(n) < 0.05, "purpose"] = None
    worth = (
        1.4 * frame["owner"]
        + 0.12 * years
        - 3 * amount / income
        + frame["grade"].map({"A": 2, "B": 1, "C": 0, "D": -2})
    )
    doubt = np.where(frame["purpose"] == "business", 1.0, 0.0) + frame["income"].isna()
    frame[LABEL] = np.where(worth - doubt + rng.normal(0, 0.6, n) > 0, "yes", "no")
    return frame


def fitted(frame: pd.DataFrame) -> Pipeline:
    """A boosted pipeline, fitted to the decisions in a table."""
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((codes, WORDS), remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=80, random_state=0))
    return model.fit(frame.drop(columns=LABEL), frame[LABEL])


if __name__ == "__main__":
    loans = table(3000)
    loans.to_csv("loans.csv", index=False)
    table(500, seed=1).drop(columns=LABEL).to_csv("rows.csv", index=False)
    skops.io.dump(fitted(pd.read_csv("loans.csv")), "model.skops")
    print("loans.csv: 3000 decisions, rows.csv: 500 rows without one, model.skops: the model")
