"""Mark of the tests that render pages in a browser."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from centgate.web.browser.executable import EXECUTABLE_NAMES

needs_renderer = pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None or not any(map(shutil.which, EXECUTABLE_NAMES)),
    reason="the extra `render` is not installed, or there is no Chromium on the PATH",
)
