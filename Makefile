# every target works on a machine with Python 3.11 or newer, make and a package index
UV := $(or $(shell command -v uv),.uv/bin/uv)
export UV_SYSTEM_CERTS := 1
# without cached bytecode, each test worker and each server would compile everything again; `setup` compiles once
unexport PYTHONDONTWRITEBYTECODE
RUN := .venv/bin/
# tests wait for servers more than they compute
WORKERS := $(shell expr 2 \* $$(nproc 2>/dev/null || echo 2))
PYTEST := $(RUN)python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help setup demo demo-crypto test test-all test-browser test-npm test-crash check check-ecosystem format docs client contracts screenshots social clean \
  bench bench-journal bench-extraction bench-phishing bench-libdocs

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-18s %s\n", $$1, $$2 }'

setup: .venv/ready ## Install the environment from the lock

.venv/ready: pyproject.toml uv.lock $(if $(findstring .uv,$(UV)),.uv/bin/uv)
	$(UV) sync --quiet --frozen --compile-bytecode --extra dev --extra render --extra vectors
	@# Hypothesis keeps its table of characters in .hypothesis; without it each test worker would compute one
	@$(RUN)python -c "from hypothesis import strategies; strategies.text().validate()"
	@touch $@

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==0.13.*"

demo: setup ## Buy answers on a development chain, from terms to receipt
	@$(RUN)centgate demo

demo-crypto: setup ## Buy crypto verdicts on a development chain, without any third-party source
	@$(RUN)centgate demo --crypto

test: setup ## Run the fast tests: everything that matters once
	$(PYTEST) -p no:schemathesis -m "not extended and not crash" --hypothesis-profile quick

test-all: setup ## Run every test but the crash tests, and print the 40 slowest
	$(PYTEST) -m "not crash" --durations=40

test-browser: setup ## Run the tests that need Chromium
	$(PYTEST) -m browser

test-npm: setup ## Run the tests that need npm
	$(PYTEST) -m npm

test-crash: setup ## Kill servers at random moments, and run the payment model for 24,000 steps
	$(PYTEST) -m crash
	PYTHONPATH=tests:tests/payments $(RUN)python bench/random_kills.py
	MONEY_MODEL_STEPS=24000 $(RUN)python -m pytest tests/payments/test_money_model.py

check: setup ## Check format, lint, types, import layers, language and generated pages' limits
	$(RUN)ruff format --check
	$(RUN)ruff check
	$(RUN)basedpyright
	$(RUN)lint-imports
	$(RUN)python tools/check_language.py

check-ecosystem: setup ## Run the tools of other people on a development deployment (a quarter of an hour)
	$(RUN)python tests/ecosystem/check_ecosystem.py $(if $(ONLY),--only '$(ONLY)')

format: setup ## Format the code, and fix what the linter can fix
	$(RUN)ruff format
	$(RUN)ruff check --fix

docs: setup ## Generate the pages of docs/ and the table of README.md
	$(RUN)centgate settings > docs/settings.md
	$(RUN)centgate settings --env > .env.example
	$(RUN)python tools/metrics_docs.py > docs/metrics.md
	$(RUN)python tools/facilitator_reasons_docs.py > docs/facilitator-reasons.md
	$(RUN)python tools/settlement_outcomes_docs.py > docs/settlement-outcomes.md
	$(RUN)python tools/services_docs.py
	$(RUN)python tools/operating_docs.py
	$(RUN)python tools/demo_docs.py

client: setup ## Generate the Python and TypeScript clients from the services
	$(RUN)python tools/generate_client.py src/centgate/client/_generated
	$(RUN)ruff format --quiet src/centgate/client/_generated
	$(RUN)python tools/generate_typescript.py clients/typescript/src/generated

contracts: setup ## Compile the Solidity sources
	$(RUN)python tools/compile_contracts.py

screenshots: setup ## Take the pictures of docs/screenshots
	PYTHONPATH=tests:tests/console $(RUN)python bench/screenshots.py docs/screenshots

social: setup ## Take the pictures of the pages for previews in chats
	$(RUN)python tools/social_pictures.py

bench: setup ## Compare a paid call with other implementations, side by side
	PYTHONPATH=tests $(RUN)python bench/paid_call.py
	$(RUN)python bench/facilitator_clients.py
	$(RUN)python bench/token_risk.py
	$(RUN)python bench/protocols.py

bench-journal: setup ## Measure a journal of ten million payments
	PYTHONPATH=tests $(RUN)python bench/large_journal.py

bench-extraction: setup ## Compare page extraction with other libraries
	$(RUN)python bench/extraction.py

bench-phishing: setup ## Measure the phishing check
	$(RUN)python bench/phishing.py

bench-libdocs: setup ## Measure library documentation search
	$(RUN)python bench/libdocs.py
	$(RUN)python bench/libdocs_hit_rate.py

clean: ## Remove the environment
	rm -rf .venv .uv
