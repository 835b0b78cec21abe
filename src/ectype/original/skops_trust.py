"""What a skops file may contain beyond what skops itself trusts: the types in skops_trust.txt, with sound numbers.

skops leaves out trees because compiled code follows the numbers in them unchecked; those numbers are checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.neighbors import BallTree, KDTree
    from sklearn.tree._tree import Tree

_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
TRUSTED = frozenset(line for line in _LINES if line and not line.startswith("#"))

# What linear models, networks, support vector machines, discriminants and naive Bayes compute with. Other attributes of
# estimators hold NaN for what is not known, as scores of searches do.
NUMBERS = (
    "coef_", "intercept_", "coefs_", "intercepts_", "dual_coef_", "_dual_coef_", "_intercept_", "support_vectors_",
    "means_", "scalings_", "rotations_", "theta_", "var_", "centroids_", "a_", "b_", "_gamma", "_probA", "_probB",
    "X_min_", "X_max_", "X_thresholds_", "y_thresholds_",
)  # fmt: skip
# What neighbours and scalers compute with. A stranger's model may have seen gaps, where these are NaN; no copy has.
OF_COPIES = (
    "_fit_X", "mean_", "scale_", "center_", "min_", "components_", "quantiles_", "priors_", "class_prior_",
)  # fmt: skip
# Those that are infinite at both ends of a column with one value.
EDGES = ("bin_edges_",)


def check_model(model: object) -> None:
    """Refuse, by ValueError, trees in which compiled code would walk out of bounds or in circles, and numbers that are
    infinite or none where a model computes with them.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> check_model(DecisionTreeClassifier().fit([[0], [1]], [0, 1]))
    """
    from sklearn.neighbors import BallTree, KDTree

    for part in _parts(model):
        if isinstance(part, (BallTree, KDTree)) and not _sound_search_tree(part):
            raise ValueError("a search tree whose nodes lead nowhere, or hold no numbers")
        for tree, width in _trees(part):
            sound = _sound_predictor(tree, width) if hasattr(tree, "nodes") else _sound_tree(tree, width)
            if not sound:
                raise ValueError("a decision tree whose nodes lead nowhere, or hold no numbers")
        _refuse_not_finite(part, NUMBERS)


def check_copy(model: object) -> None:
    """Refuse, by ValueError, numbers that are infinite or none where a classifier computes that saw rows without gaps.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> check_copy(KNeighborsClassifier(1).fit([[0], [1]], [0, 1]))
    """
    for part in _parts(model):
        _refuse_not_finite(part, OF_COPIES)
        for name in EDGES:
            if any(np.isnan(edges).any() for edges in getattr(part, "__dict__", {}).get(name, ())):
                raise ValueError(f"{type(part).__name__}.{name} with numbers that are none")


def _refuse_not_finite(part: object, names: tuple[str, ...]) -> None:
    for name in names:
        if not _numbers(getattr(part, "__dict__", {}).get(name, 0.0)):
            raise ValueError(f"{type(part).__name__}.{name} with numbers that are infinite or none")


def _parts(root: object) -> Iterator[object]:
    """An object and everything it is made of, each once."""
    waiting, seen = [root], {id(root)}
    while waiting:
        part = waiting.pop()
        yield part
        for inner in _inside(part):
            if id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)


def _inside(part: object) -> list[object]:
    attributes = [] if isinstance(part, type) else list(getattr(part, "__dict__", {}).values())
    if isinstance(part, dict):
        return [*attributes, *part.values()]
    if isinstance(part, (list, tuple, set)) or (isinstance(part, np.ndarray) and part.dtype == object):
        return [*attributes, *(part.flat if isinstance(part, np.ndarray) else part)]
    return attributes


def _trees(part: object) -> Iterator[tuple[Tree | TreePredictor, int]]:
    """The trees that an estimator hands its own rows to, with the width of those rows."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting

    own = {} if isinstance(part, type) else getattr(part, "__dict__", {})
    width = own.get("n_features_in_", 0)
    if "tree_" in own:
        yield own["tree_"], width
    if isinstance(part, (BaseForest, BaseGradientBoosting)):
        yield from ((member.tree_, width) for member in np.array(own.get("estimators_", []), dtype=object).flat)
    yield from ((tree, width) for round_ in own.get("_predictors", ()) for tree in round_)


def _sound_tree(tree: Tree, width: int) -> bool:
    inner = np.flatnonzero(tree.children_left != -1)
    return (
        min(tree.node_count, tree.n_outputs, tree.max_n_classes) > 0
        and _leads_on(inner, tree.children_left, tree.children_right, tree.node_count)
        and _below(tree.feature[inner], width)
        and not np.isnan(tree.threshold[inner]).any()
        and bool(np.isfinite(tree.value).all())
    )


def _sound_predictor(tree: TreePredictor, width: int) -> bool:
    nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    categorical = nodes[inner][nodes["is_categorical"][inner] != 0]
    return (
        len(nodes) > 0
        and _leads_on(inner, nodes["left"], nodes["right"], len(nodes))
        and _below(nodes["feature_idx"][inner], width)
        and _below(categorical["bitset_idx"], len(sets))
        and not np.isnan(nodes["num_threshold"][inner]).any()
        and bool(np.isfinite(nodes["value"]).all())
    )


def _sound_search_tree(tree: BallTree | KDTree) -> bool:
    data, order, nodes, bounds, _, _, count, *_ = tree.__getstate__()
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    return (
        len(nodes) == count > 0
        and all(bool(np.isfinite(part).all()) for part in (data, bounds, nodes["radius"]))
        and bounds.shape[1:] == (count, data.shape[1])
        and len(order) == len(data)
        and _below(order, len(data))
        and bool((nodes["idx_start"] >= 0).all() and (nodes["idx_start"] <= nodes["idx_end"]).all())
        and _below(nodes["idx_end"], len(data) + 1)
        and _below(2 * inner + 2, count)
    )


def _leads_on(inner: np.ndarray, left: np.ndarray, right: np.ndarray, count: int) -> bool:
    """Whether both children of every inner node come after it, as scikit-learn numbers them, and are no other's."""
    below = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    after = bool((below > np.tile(inner, 2)).all()) and _below(below, count)
    return after and len(np.unique(below)) == len(below)


def _numbers(found: object) -> bool:
    """Whether numbers, arrays of them, and lists of arrays, are all finite; what is no number is not judged here."""
    if isinstance(found, (list, tuple)):
        return all(map(_numbers, found))
    found = getattr(found, "data", found) if hasattr(found, "tocsr") else found  # sparse
    numbers = isinstance(found, (float, np.ndarray, np.floating)) and np.asarray(found).dtype.kind == "f"
    return not numbers or bool(np.isfinite(np.asarray(found, float)).all())


def _below(numbers: np.ndarray, end: int) -> bool:
    return bool((numbers >= 0).all() and (numbers < end).all())
