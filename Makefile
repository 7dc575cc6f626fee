# Countersign's commands. `make` alone lists them.

PYTHON_BIN := .venv/bin/python
# What `manage.py check --deploy` looks at is a deployment behind TLS, in a place of its own.
DEPLOY_ENV = COUNTERSIGN_DATA_DIR=$(CHECK_DIR) COUNTERSIGN_HTTPS=1 ALLOWED_HOSTS=countersign.example \
	DATABASE_URL= REDIS_URL= DEBUG=0
CHECK_DIR := $(or $(TMPDIR),/tmp)/countersign-check-$(shell id -u)

.DEFAULT_GOAL := help
.PHONY: help run test check format coverage bench clean venv venv-dev

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: venv ## Serve on http://127.0.0.1:8000/ with Sir's account and the demo project
	@$(PYTHON_BIN) manage.py serve

test: venv-dev ## Run all tests, on SQLite and on private PostgreSQL and Redis servers
	@$(PYTHON_BIN) -m tests.run_all

check: venv-dev ## Lint, types, layers, templates, migrations, deployment and the OpenAPI file
	$(PYTHON_BIN) -m ruff format --check .
	$(PYTHON_BIN) -m ruff check --output-format concise .
	@find templates -name '*.html' -exec .venv/bin/djade --check --target-version 5.2 {} +
	$(DEPLOY_ENV) $(PYTHON_BIN) -m mypy
	.venv/bin/lint-imports
	$(DEPLOY_ENV) $(PYTHON_BIN) manage.py check --deploy --fail-level WARNING
	$(DEPLOY_ENV) $(PYTHON_BIN) manage.py makemigrations --check --dry-run
	$(DEPLOY_ENV) $(PYTHON_BIN) manage.py spectacular --validate --fail-on-warn \
		--file $(CHECK_DIR)/openapi.yaml
	@diff -u docs/openapi.yaml $(CHECK_DIR)/openapi.yaml || \
		{ echo "docs/openapi.yaml is not what the code says: make format writes it"; exit 1; }

format: venv-dev ## Format the code and write docs/openapi.yaml anew
	$(PYTHON_BIN) -m ruff format .
	$(PYTHON_BIN) -m ruff check --fix .
	@find templates -name '*.html' -exec .venv/bin/djade --target-version 5.2 {} +
	$(DEPLOY_ENV) $(PYTHON_BIN) manage.py spectacular --validate --file docs/openapi.yaml

coverage: venv-dev ## Report the lines that the tests on SQLite never reach
	$(PYTHON_BIN) -m coverage run -m pytest -q -m "not postgres and not browser and not faults"
	$(PYTHON_BIN) -m coverage report

bench: venv-dev ## Measure the speed, then play five large simulations; write both into docs/
	@$(PYTHON_BIN) -m tests.bench
	@$(PYTHON_BIN) -m tests.bench simulation

clean: ## Remove the caches; the data in var/ stays
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

venv:
	@config/make_venv.sh requirements.txt

venv-dev:
	@config/make_venv.sh requirements-dev.txt
