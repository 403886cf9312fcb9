"""Writing systems in which a word may stand inside a run of letters."""

from __future__ import annotations

import re

UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""Runs of letters of languages that are written without spaces: Thai to Khmer, Kana and Han."""
HANGUL = re.compile("[\uac00-\ud7a3]+")
"""Runs of Korean syllables: particles and endings are attached to words, and compounds have no spaces."""
