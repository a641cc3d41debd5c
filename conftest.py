"""Doctests and tests use a cache folder of their own: never the embedded database of the person who runs them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "SEARCHEVAL_CACHE" not in os.environ:
    os.environ["SEARCHEVAL_CACHE"] = tempfile.mkdtemp(prefix="searcheval-tests-")
    # Registered first, so that it runs last: after the database has been stopped.
    atexit.register(shutil.rmtree, os.environ["SEARCHEVAL_CACHE"], ignore_errors=True)
