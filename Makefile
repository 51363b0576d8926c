GOLANGCI_LINT_VERSION := v2.14.0
OAPI_CODEGEN_VERSION := v2.8.1
SCHEMATHESIS_VERSION := 4.32.5

cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quern
export QUERN_STACK_DIR := $(abspath $(or $(QUERN_STACK_DIR),$(cache)/stack))
export QUERN_TOOLS_DIR := $(abspath $(or $(QUERN_TOOLS_DIR),$(cache)/tools))

# Each tool lies in a folder named by its version, so a new version is a new target.
GOLANGCI_LINT := $(QUERN_TOOLS_DIR)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
OAPI_CODEGEN := $(QUERN_TOOLS_DIR)/oapi-codegen-$(OAPI_CODEGEN_VERSION)/oapi-codegen
VERSITYGW_VERSION := $(shell sed -n 's/^VERSION=//p' stack/versitygw)
VERSITYGW := $(QUERN_TOOLS_DIR)/versitygw-$(VERSITYGW_VERSION)/versitygw
SCHEMATHESIS := $(QUERN_TOOLS_DIR)/schemathesis-$(SCHEMATHESIS_VERSION)/bin/st

# What `make generate` writes.
GENERATED := '*.gen.*' docs/configuration.md
# Everything but the black-box tests and the measures.
UNIT = $$(go list ./... | grep -vE '/(e2e|bench)$$')
TEST_FLAGS := -race -shuffle=on
FUZZ_TIME := 60

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: build $(VERSITYGW) ## Try it: the server with all that it needs, on http://127.0.0.1:8080; docs/dev.md
	ln -sf $(VERSITYGW) bin/
	exec bin/quernd dev $(DEV_FLAGS)

.PHONY: serve
serve: stack build ## Run the server on http://127.0.0.1:8080 against the stack
	set -a; . "$(QUERN_STACK_DIR)/env"; set +a
	bin/quernd migrate
	exec bin/quernd serve

.PHONY: stack
stack: ## Install and start the servers that tests and dev need, on loopback
	@stack/up

.PHONY: stack-down
stack-down: ## End the servers that `make stack` started; their data stays
	@stack/down

.PHONY: build
build: ## Build the programs into bin/
	go build -trimpath -o bin/ ./cmd/quernd
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/quern

.PHONY: test
test: ## Run the package tests, quickly
	go test $(UNIT)

.PHONY: race
race: ## Run the package tests with the race detector, in random order
	go test $(TEST_FLAGS) $(UNIT)

.PHONY: e2e
e2e: ## Run the black-box tests against the real servers, those that match RUN; docs/testing.md
	go run ./e2e/runner -run '$(or $(RUN),^Test)' $(E2E_FLAGS)

.PHONY: quickstart
quickstart: ## From a clean clone by the printed commands to an answer, with empty caches (COLD=no: with the machine's) and again
	e2e/quickstart.sh

# Trino takes a gigabyte of memory, so it does not stay.
.PHONY: e2e-trino
e2e-trino: ## Let Trino read the tables; fetches it first, half a gigabyte
	stack/up trino
	trap 'stack/trino down' EXIT
	go test -tags trino -count=1 -timeout 15m -run '^TestTrino$$' -v ./e2e/...

# The kit is in no registry: TCK_DIR is a copy of a2aproject/a2a-tck, with what it needs installed in its folder venv.
.PHONY: conformance
conformance: ## Let the conformance kit of A2A in TCK_DIR judge the transport and the log
	TCK_DIR='$(abspath $(TCK_DIR))' go test -tags conformance -count=1 -run '^TestConformance$$' -v ./internal/a2a

.PHONY: torture
torture: ## Run for hours: long loops in full, the service built with the race detector, guided fuzzing
	export QUERN_TEST_LOOPS=full
	go test $(TEST_FLAGS) -count=1 -timeout 6h ./internal/catalog/... ./internal/engine/duckdb/... ./internal/lake/... ./internal/values/...
	QUERN_TEST_RACE=yes go run ./e2e/runner -race -timeout 6h
	$(MAKE) --no-print-directory fuzz FUZZ_TIME=1800 FUZZ_GUIDED=yes

# A quarter of the time is for requests to all operations, the rest is shared by the parsers. Guidance needs every library to be compiled
# again with counters, which takes longer than a short run gains. Go sometimes reports the end of the time itself as a failure, without an
# input (go.dev/issue/75804); that is none.
.PHONY: fuzz
fuzz: ## Fuzz every target, FUZZ_TIME seconds (60) in all; FUZZ_GUIDED=yes lets coverage guide it
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT
	count=$$(grep -rhoE --include='*_test.go' '^func Fuzz\w+' . | wc -l)
	share() { awk -v all=$(FUZZ_TIME) -v count="$$count" -v name="$$1" 'BEGIN { printf "%.1fs", name == "FuzzOperations" ? all / 4 : all * 3 / 4 / (count - 1) }'; }
	for folder in $$(grep -rlE --include='*_test.go' '^func Fuzz\w+' . | xargs -n1 dirname | sort -u); do
		go test -c $(if $(FUZZ_GUIDED),-fuzz .) -o "$$dir/fuzz.test" "$$folder"
		for name in $$(grep -hoE '^func Fuzz\w+' "$$folder"/*_test.go | cut -c6-); do
			(cd "$$folder" && "$$dir/fuzz.test" -test.run '^$$' -test.fuzz "^$$name$$" -test.fuzztime "$$(share "$$name")" -test.fuzzcachedir "$$dir/cache") >"$$dir/log" 2>&1 ||
				{ grep -q 'context deadline exceeded' "$$dir/log" && ! grep -q 'Failing input' "$$dir/log"; } ||
				{ cat "$$dir/log"; echo "fuzz: $$folder $$name failed" >&2; exit 1; }
			grep -qE '^fuzz: .*execs' "$$dir/log" || { cat "$$dir/log"; echo "fuzz: $$folder $$name did not run" >&2; exit 1; }
			grep -E '^fuzz: .*execs' "$$dir/log" | tail -n 1 | sed "s|^fuzz:|fuzz $$folder $$name:|"
		done
	done

.PHONY: bench
bench: ## Measure beside the bare twin, all or NAME=read|size|load|search|upload|prepare|pickup|ingest|append|commit|compacted|query|query-small|query-parallel|query-cold|query-many|wide|link|ask|context|planner|streams|runs|a2a; BENCH_FLAGS=-small as CI does
	go run ./bench $(BENCH_FLAGS) $(NAME)

# The folder of the sets comes from EVAL_DIR. Without it the small set of the repository is asked.
.PHONY: eval
eval: ## Say how good the answers are: SUITE=all SPLIT=dev|held-out AGENT=nl2ql|assistant MODEL=…, EVAL_FLAGS='-compare REPORT'; docs/quality.md
	go run ./eval -suite "$(or $(SUITE),all)" -split "$(or $(SPLIT),dev)" -agent "$(or $(AGENT),nl2ql)" -model "$(MODEL)" $(EVAL_FLAGS)

.PHONY: schemathesis
schemathesis: $(SCHEMATHESIS) ## Let schemathesis look for undocumented answers
	SCHEMATHESIS=$(SCHEMATHESIS) e2e/schemathesis.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters
	$(GOLANGCI_LINT) run ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the code
	$(GOLANGCI_LINT) fmt ./...

.PHONY: generate
generate: $(OAPI_CODEGEN) ## Write the generated files anew
	PATH="$(dir $(OAPI_CODEGEN)):$$PATH" go generate ./...

# Compares contents and not with the last commit, so that it can be run before committing.
.PHONY: verify
verify: ## Check that generated files, go.mod and go.sum are current
	state() { git ls-files -co --exclude-standard -- $(GENERATED) | sort | xargs -d '\n' -r sha256sum; }
	before=$$(state)
	$(MAKE) --no-print-directory generate
	diff <(echo "$$before") <(state) || { echo 'these generated files were not current: commit what `make generate` wrote'; exit 1; }
	go mod tidy -diff

.PHONY: check
check: lint verify build race e2e fuzz schemathesis ## Everything that must hold before a change is done
	$(MAKE) --no-print-directory bench BENCH_FLAGS=-small

.PHONY: tools
tools: $(GOLANGCI_LINT) $(OAPI_CODEGEN) $(SCHEMATHESIS) ## Install the tools that the other targets use
	for peer in js python; do e2e/peers/install $$peer >/dev/null; done

.PHONY: release
release: ## Build what is handed out into dist/: archives, contents, checksums; VERSION=v1.2.3, ONLY=quern_linux_amd64
	go run ./release -version "$(VERSION)" -only "$(ONLY)"

.PHONY: clean
clean: ## Remove what was built; the stack's data and the tools lie elsewhere and stay
	rm -rf bin dist

$(GOLANGCI_LINT):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(OAPI_CODEGEN):
	GOBIN=$(@D) go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$(OAPI_CODEGEN_VERSION)

$(VERSITYGW):
	GOBIN=$(@D) go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)

$(SCHEMATHESIS):
	python3 -m venv --clear $(dir $(@D))
	$(@D)/pip install -q --disable-pip-version-check schemathesis==$(SCHEMATHESIS_VERSION)
