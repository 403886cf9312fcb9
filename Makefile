# every target works on a machine with Python 3.11 or newer, make and a package index
UV := $(or $(shell command -v uv),.uv/bin/uv)
export UV_SYSTEM_CERTS := 1
RUN := .venv/bin/
# tests wait for servers more than they compute
TESTERS := $(shell expr 2 \* $$(nproc 2>/dev/null || echo 2))

.PHONY: setup demo test check format docs client screenshots bench bench-journal bench-extraction bench-phishing bench-libdocs token siege clean

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
	$(RUN)python -m pytest -n $(TESTERS)

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
	$(RUN)python -m centgate.metrics.page > docs/metrics.md
	$(RUN)python -m centgate.payments.settle_reasons_page > docs/facilitator-reasons.md
	$(RUN)python -m centgate.payments.settlement_outcomes_page > docs/settlement-outcomes.md
	$(RUN)python tools/services_docs.py
	$(RUN)python tools/operating_docs.py
	$(RUN)python tools/demo_docs.py

client: setup
	$(RUN)python -m generate_client src/centgate/client
	$(RUN)ruff format --quiet src/centgate/client/_generated/models.py src/centgate/client/_generated/methods.py

screenshots: setup
	PYTHONPATH=tests/site $(RUN)python bench/screenshots.py docs/screenshots

bench: setup
	PYTHONPATH=tests $(RUN)python bench/paid_call.py
	$(RUN)python bench/facilitator_clients.py
	$(RUN)python bench/token_risk.py
	$(RUN)python bench/protocols.py

bench-journal: setup
	PYTHONPATH=tests $(RUN)python bench/large_journal.py

bench-extraction: setup
	$(RUN)python bench/extraction.py

bench-phishing: setup
	$(RUN)python bench/phishing.py

bench-libdocs: setup
	$(RUN)python bench/libdocs.py

siege: setup
	PYTHONPATH=tests:tests/payments $(RUN)python bench/random_kills.py
	MONEY_MODEL_STEPS=24000 $(RUN)python -m pytest tests/payments/test_money_model.py

clean:
	rm -rf .venv .uv
