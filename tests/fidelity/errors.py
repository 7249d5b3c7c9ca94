# SPDX-License-Identifier: Apache-2.0
"""Why a row has no prediction."""


class Unpredictable(Exception):
    """The row cannot be predicted; the text says what is missing."""
