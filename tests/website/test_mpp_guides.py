"""MPP on the website: named if the API accepts it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpp_buyer import MPP_SECRET
from pydantic import SecretStr
from site_fixtures import open_site_fixture

from centgate.website.skill import SKILL_PATH

pytestmark = pytest.mark.extended

PATHS = ("/llms.txt", "/paying.md", SKILL_PATH)


@pytest.mark.parametrize("accepted", [True, False])
def test_agent_texts_name_mpp_only_if_accepted(tmp_path: Path, *, accepted: bool) -> None:
    changes = {"mpp_enabled": accepted, "mpp_secret": SecretStr(MPP_SECRET)}
    with open_site_fixture(tmp_path, **changes) as site:
        for path in PATHS:
            assert ("Authorization: Payment" in site.text(path)) is accepted, path
