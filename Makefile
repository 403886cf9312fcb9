# every target works on a machine with Python 3.11 or newer, make and a package index
UV := $(or $(shell command -v uv),.uv/bin/uv)
export UV_SYSTEM_CERTS := 1
RUN := .venv/bin/

.PHONY: setup demo test check format docs client screenshots bench bench-extraction bench-phishing bench-libdocs token clean

setup: .venv/ready

.venv/ready: pyproject.toml uv.lock $(if $(findstring .uv,$(UV)),.uv/bin/uv)
	$(UV) sync --quiet --frozen --all-extras
	@touch $@

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==0.13.*"

demo: setup
	@$(RUN)centgate demo

test: setup
	$(RUN)python -m pytest -n auto

check: setup
	$(RUN)ruff format --check
	$(RUN)ruff check
	$(RUN)basedpyright

format: setup
	$(RUN)ruff format
	$(RUN)ruff check --fix

docs: setup
	$(RUN)centgate settings > docs/settings.md
	$(RUN)centgate settings --env > .env.example

client: setup
	$(RUN)python -m centgate.faces.typed_client src/centgate/client
	$(RUN)ruff format --quiet src/centgate/client/models.py src/centgate/client/services.py

screenshots: setup
	PYTHONPATH=tests/site $(RUN)python bench/screenshots.py docs/screenshots

bench: setup
	$(RUN)python bench/paid_call.py
	$(RUN)python bench/token_risk.py
	$(RUN)python bench/protocols.py

bench-extraction: setup
	$(RUN)python bench/extraction.py

bench-phishing: setup
	$(RUN)python bench/phishing.py

bench-libdocs: setup
	$(RUN)python bench/libdocs.py

clean:
	rm -rf .venv .uv
