"""BM25F: the arithmetic alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def bm25f_score(
    tf: ArrayLike,
    length: ArrayLike,
    average: ArrayLike,
    df: ArrayLike,
    n: int,
    weight: ArrayLike,
    *,
    k1: float = 1.2,
    b: float = 0.75,
) -> NDArray[np.float64]:
    r"""Score D documents of F fields for T query terms.

    .. math:: \sum_t idf_t \frac{(k_1 + 1) w_t}{k_1 + w_t},
       \quad w_t = \sum_f weight_f \frac{tf_{ft}}{1 - b + b\, length_f / average_f},
       \quad idf_t = \ln\left(1 + \frac{n - df_t + 0.5}{df_t + 0.5}\right)

    Parameters
    ----------
    tf : array (D, F, T)
        How often each term occurs in each field.
    length : array (D, F)
        Tokens in each field. Only fields that hold a term count, so 0 will do for the others.
    average : array (F,)
        Mean length of each field over the whole collection.
    df : array (T,)
        Documents of the whole collection that hold the term in any field.
    n : int
        Documents in the whole collection.
    weight : array (F,)
        What one occurrence in each field counts, before saturation.
    k1 : float, default 1.2
        How soon more of the same term stops to matter.
    b : float, default 0.75
        How far a longer field is discounted, from 0 (not at all) to 1.

    Returns
    -------
    float64 array (D,)

    References
    ----------
    Robertson, Zaragoza, Taylor (2004), "Simple BM25 extension to multiple weighted fields", CIKM. The idf is Lucene's:
    never negative.

    Examples
    --------
    One term, once, in a field of length 1 (average 1.5) of weight 3; 2 of 100 documents hold it:

    >>> bm25f_score([[[1]]], [[1]], [1.5], [2], 100, [3]).round(4).tolist()
    [6.2596]

    Two terms of 80 documents each, in a field of length 2:

    >>> bm25f_score([[[1, 1]]], [[2]], [1.5], [80, 80], 100, [3]).round(4).tolist()
    [0.6655]
    """
    tf, length, average = np.asarray(tf, float), np.asarray(length, float), np.asarray(average, float)
    df, weight = np.asarray(df, float), np.asarray(weight, float)
    documents, fields, terms = tf.shape
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    # Sums run in loops, one array a step: numpy's own sums add in an order that depends on the shape, and then two
    # equal documents need not tie.
    w = np.zeros((documents, terms))
    for f in range(fields):
        if average[f] > 0:  # a field that is empty everywhere holds no term
            w += weight[f] * tf[:, f] / (1 - b + b * length[:, f, None] / average[f])
    score = np.zeros(documents)
    for t in range(terms):
        score += idf[t] * (k1 + 1) * w[:, t] / (k1 + w[:, t])
    return score
