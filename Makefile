GOLANGCI_LINT_VERSION := v2.14.0
OAPI_CODEGEN_VERSION := v2.8.1
SCHEMATHESIS_VERSION := 4.32.5
HELM_VERSION := v4.3.1
KUBERNETES_VALIDATE_VERSION := 1.37.0
TOXIPROXY_VERSION := v2.5.0
KUBERNETES_VERSION := $(shell sed -n 's/.*k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' deploy/helm/apiserver/go.mod)

cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quern
export QUERN_STACK_DIR := $(abspath $(or $(QUERN_STACK_DIR),$(cache)/stack))
export QUERN_TOOLS_DIR := $(abspath $(or $(QUERN_TOOLS_DIR),$(cache)/tools))
# One way to compile for all targets: without it, every library is compiled once more, and a clone in another folder compiles everything.
export GOFLAGS := -trimpath $(GOFLAGS)

# Each tool is in a folder with its version in the name, so a new version is a new target.
GOLANGCI_LINT := $(QUERN_TOOLS_DIR)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
OAPI_CODEGEN := $(QUERN_TOOLS_DIR)/oapi-codegen-$(OAPI_CODEGEN_VERSION)/oapi-codegen
VERSITYGW_VERSION := $(shell sed -n 's/^VERSION=//p' stack/versitygw)
VERSITYGW := $(QUERN_TOOLS_DIR)/versitygw-$(VERSITYGW_VERSION)/versitygw
SCHEMATHESIS := $(QUERN_TOOLS_DIR)/schemathesis-$(SCHEMATHESIS_VERSION)/bin/st
HELM := $(QUERN_TOOLS_DIR)/helm-$(HELM_VERSION)/helm
TOXIPROXY := $(QUERN_TOOLS_DIR)/toxiproxy-$(TOXIPROXY_VERSION)/server
KUBE_APISERVER := $(QUERN_TOOLS_DIR)/kube-apiserver-$(KUBERNETES_VERSION)/kube-apiserver
KUBERNETES_VALIDATE := $(QUERN_TOOLS_DIR)/kubernetes-validate-$(KUBERNETES_VALIDATE_VERSION)/bin/kubernetes-validate

# The files that `make generate` writes.
GENERATED := '*.gen.*' docs/configuration.md
# All packages except the black-box tests and the benchmarks.
UNIT = $$(go list ./... | grep -vE '/(e2e|bench(/[a-z]+)?)$$')
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

# The console is built again only if one of its files changed. Everything but its own files would make builds slow or never end.
CONSOLE := web/dist/index.html
CONSOLE_FILES := $(shell find web internal/dev/sample/orders.csv -type f -not -path '*/node_modules/*' -not -path 'web/dist/*' -not -path 'web/placeholder/*' -not -name '*.go' -not -name '*.test.ts*')

.PHONY: dev
dev: web-if-npm build $(VERSITYGW) ## Run the server with everything that it needs on http://127.0.0.1:8080, to try it; docs/dev.md
	ln -sf $(VERSITYGW) bin/
	exec bin/quernd dev $(DEV_FLAGS)

.PHONY: serve
serve: stack web-if-npm build ## Run the server on http://127.0.0.1:8080 against the stack
	set -a; . "$(QUERN_STACK_DIR)/env"; set +a
	bin/quernd migrate
	bin/quernd store cors "$$QUERN_PUBLIC_URL"
	exec bin/quernd serve

.PHONY: stack
stack: ## Install and start the servers that tests and development need, on loopback
	@stack/up

.PHONY: stack-down
stack-down: ## Stop the servers that `make stack` started; keep their data
	@stack/down

.PHONY: build
build: ## Build the programs into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/quernd ./cmd/quern
	go build -trimpath -o bin/ ./cmd/quern-engine

.PHONY: web
web: $(CONSOLE) ## Build the console into web/dist, with npm; then `make build` builds it into quernd
	@echo 'The console is in web/dist. `make build` builds it into quernd.'

# Vite removes all files of web/dist, also the one that lets quernd compile without the console.
$(CONSOLE): web/node_modules/.package-lock.json $(CONSOLE_FILES)
	trap 'mkdir -p web/dist && touch web/dist/.gitkeep' EXIT
	(cd web && npm run build)

# The lock file lists only the binary packages of the platform that wrote it, which `npm ci` refuses. `npm install` takes all other versions from it.
web/node_modules/.package-lock.json: $(wildcard web/package-lock.json)
	cd web && npm install --no-save --no-audit --no-fund
	touch node_modules/.package-lock.json

# A machine without npm, or without the packages, can still run everything else.
.PHONY: web-if-npm
web-if-npm:
	@if ! command -v npm >/dev/null; then
		echo 'npm is not installed, so the console is not built. Everything else works.'
	else
		$(MAKE) --no-print-directory web || echo 'The console could not be built (see above). Everything else works.'
	fi

.PHONY: test
test: ## Run the package tests without the race detector
	go test $(UNIT)

.PHONY: race
race: ## Run the package tests with the race detector, in random order
	go test $(TEST_FLAGS) -timeout 20m $(filter-out %/internal/engine/document,$(shell go list ./... | grep -vE '/(e2e|bench(/[a-z]+)?)$$'))
	# The race detector makes the compiler of PDFium much slower.
	go test -shuffle=on ./internal/engine/document
	go test -run '^(TestHostileDocuments|TestPages)$$' ./internal/engine/duckdb

.PHONY: e2e
e2e: ## Run the black-box tests that match RUN (default: all) against the real servers; docs/testing.md
	go run ./e2e/runner -run '$(or $(RUN),^Test)' $(E2E_FLAGS)

.PHONY: e2e-pgbouncer
e2e-pgbouncer: export QUERN_TEST_PGBOUNCER_ALL := yes
e2e-pgbouncer: e2e ## Run the black-box tests with PgBouncer in front of PostgreSQL, for all services that use the stack's

.PHONY: web-test
web-test: web ## Check types and tests of the console, and that its types of the API are current
	cd web
	npm run --silent check
	npm test --silent
	npm run --silent types
	git diff --exit-code src/api/schema.gen.ts

.PHONY: e2e-web
e2e-web: web ## Test the console in Chromium against the real servers; WEB_FLAGS=--project=main for the main path alone
	e2e/web/run $(or $(WEB_FLAGS),--project=main --project=more)

.PHONY: screenshots
screenshots: web ## Take pictures of all screens of the console into SHOTS_DIR (default: e2e/web/test-results/shots); SHOTS_TOUR=yes for those of docs/tour.md
	e2e/web/run --project=screenshots

.PHONY: quickstart
quickstart: ## Test the quick start from a clean clone, with empty caches (COLD=no: with those of the machine) and again with full ones
	e2e/quickstart.sh

# Trino takes two gigabytes of memory, so it is stopped after the test.
.PHONY: e2e-trino
e2e-trino: ## Test what needs Trino; download Trino first (half a gigabyte)
	stack/up trino
	trap 'stack/trino down' EXIT
	go test -tags trino -count=1 -timeout 15m -run '^TestTrino' -v ./internal/icebergrest
	go test -tags trino -count=1 -timeout 15m -run '^(TestTrino.*|TestEnginesAgree)$$' -v ./e2e/...

# The kit is not in a registry. TCK_DIR is a copy of a2aproject/a2a-tck with its dependencies installed in its folder venv.
.PHONY: conformance
conformance: ## Run the A2A conformance kit in TCK_DIR against a test agent that does all that the kit knows, and against the agents
	export TCK_DIR='$(abspath $(TCK_DIR))'
	go test -tags conformance -count=1 -run '^TestConformance$$' -v ./internal/a2a
	go test -tags conformance,scripted -count=1 -timeout 30m -run '^TestShippedConformance$$' -v ./e2e

# The runner replaces the shell, so that a signal reaches it and it can end what its tests have started.
.PHONY: torture
torture: ## Run the long tests that match RUN for TORTURE_TIME (default 150m), and the next time go on: kill loops (until TORTURE_KILLS), full loops, race detector, guided fuzzing; docs/testing.md
	go build -o bin/e2e-runner ./e2e/runner
	exec bin/e2e-runner -torture '$(cache)/torture/outcomes.jsonl' -run '$(RUN)' -time $(or $(TORTURE_TIME),150m) -kills $(or $(TORTURE_KILLS),0) -share $(or $(TORTURE_LOOPS),full) -timeout 6h

# All three use the stack. The soak and the alerts also use Prometheus, which deploy/prometheus/promtool installs.
.PHONY: soak
soak: export QUERN_TEST_TOXIPROXY := $(TOXIPROXY)
soak: $(TOXIPROXY) ## Run two replicas of each role with 50 users and a fault every 30 s, for SOAK_TIME (default 60m); SOAK_SEED repeats a run
	go test -tags scripted,soak -count=1 -timeout 0 -run '^TestSoak$$' -v ./e2e

.PHONY: rolling
rolling: export QUERN_TEST_TOXIPROXY := $(TOXIPROXY)
rolling: $(TOXIPROXY) ## Upgrade two replicas of each role from the commit ROLLING_FROM (default: before the newest migration) to this version under load; docs/upgrading.md
	go test -tags scripted,soak -count=1 -timeout 30m -run '^TestRollingUpgrade$$' -v ./e2e

.PHONY: alerts
alerts: export QUERN_TEST_TOXIPROXY := $(TOXIPROXY)
alerts: $(TOXIPROXY) ## Let the alerts fire by real faults, in a real Prometheus
	go test -tags scripted,soak -count=1 -timeout 30m -run '^TestAlertsFire$$' -parallel $(or $(ALERTS_PARALLEL),3) -v ./e2e

# FuzzOperations, which sends requests to all operations, gets a quarter of the time; the other targets share the rest. Guided fuzzing
# compiles every library again with counters, which costs more time than a short run gains. Go sometimes reports the end of the time as a
# failure without an input (go.dev/issue/75804); this is not treated as a failure.
.PHONY: fuzz
fuzz: ## Fuzz all targets for FUZZ_TIME seconds in total (default 60); FUZZ_GUIDED=yes uses coverage guidance
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT
	count=$$(grep -rhoE --include='*_test.go' '^func Fuzz\w+' . | wc -l)
	share() { awk -v all=$(FUZZ_TIME) -v count="$$count" -v name="$$1" 'BEGIN { printf "%.1fs", name == "FuzzOperations" ? all / 4 : all * 3 / 4 / (count - 1) }'; }
	folders=$$(grep -rlE --include='*_test.go' '^func Fuzz\w+' . | xargs -n1 dirname | sort -u)
	# Linking is most of the work and uses one core, so all programs are built at once. Go builds guided ones one by one only.
	printf '%s\n' $$folders | xargs $(if $(FUZZ_GUIDED),-n 1) go test -c $(if $(FUZZ_GUIDED),-fuzz .) -o "$$dir/"
	for folder in $$folders; do
		for name in $$(grep -hoE '^func Fuzz\w+' "$$folder"/*_test.go | cut -c6-); do
			(cd "$$folder" && "$$dir/$$(basename "$$folder").test" -test.run '^$$' -test.fuzz "^$$name$$" -test.fuzztime "$$(share "$$name")" -test.fuzzcachedir "$$dir/cache") >"$$dir/log" 2>&1 ||
				{ grep -q 'context deadline exceeded' "$$dir/log" && ! grep -q 'Failing input' "$$dir/log"; } ||
				{ cat "$$dir/log"; echo "fuzz: $$folder $$name failed" >&2; exit 1; }
			grep -qE '^fuzz: .*execs' "$$dir/log" || { cat "$$dir/log"; echo "fuzz: $$folder $$name did not run" >&2; exit 1; }
			grep -E '^fuzz: .*execs' "$$dir/log" | tail -n 1 | sed "s|^fuzz:|fuzz $$folder $$name:|"
		done
	done

.PHONY: bench
bench: ## Measure performance next to a minimal program for comparison, all or NAME=read|size|load|search|upload|prepare|pickup|ingest|ingest-many|documents|append|merge|source|commit|compacted|result|query|query-small|query-parallel|query-cold|query-many|wide|python|link|ask|context|growth|planner|verified|streams|runs|a2a|mcp, or by name alone trino|trino-cross; BENCH_FLAGS=-small as in CI
	go run ./bench $(BENCH_FLAGS) $(NAME)

# EVAL_DIR is the folder with the question sets. Without it, the small set of the repository is used.
.PHONY: eval
eval: ## Measure the quality of answers: SUITE=all SPLIT=dev|held-out AGENT=nl2ql|assistant MODEL=…, EVAL_FLAGS='-compare REPORT'; SUITE=documents for records of documents; docs/quality.md
	go run ./eval -suite "$(or $(SUITE),all)" -split "$(or $(SPLIT),dev)" -agent "$(or $(AGENT),nl2ql)" -model "$(MODEL)" $(EVAL_FLAGS)

.PHONY: test-python
test-python: ## Test the Python package against real services, with the oldest and the newest Python
	clients/python/test

.PHONY: schemathesis
schemathesis: $(SCHEMATHESIS) ## Search for undocumented responses with schemathesis
	SCHEMATHESIS=$(SCHEMATHESIS) e2e/schemathesis.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters
	$(GOLANGCI_LINT) run ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the code
	$(GOLANGCI_LINT) fmt ./...

.PHONY: generate
generate: $(OAPI_CODEGEN) ## Write all generated files again
	PATH="$(dir $(OAPI_CODEGEN)):$$PATH" go generate ./...

# Compares the contents before and after generation, and not with the last commit, so that it can run before committing.
.PHONY: verify
verify: ## Check that generated files, go.mod and go.sum are up to date
	state() { git ls-files -co --exclude-standard -- $(GENERATED) | sort | xargs -d '\n' -r sha256sum; }
	before=$$(state)
	$(MAKE) --no-print-directory generate
	diff <(echo "$$before") <(state) || { echo 'these generated files were not current: commit what `make generate` wrote'; exit 1; }
	go mod tidy -diff

.PHONY: check
check: lint verify build race e2e web-test e2e-web test-python fuzz schemathesis ## Run all checks that must pass before a change is done
	$(MAKE) --no-print-directory bench BENCH_FLAGS=-small

.PHONY: tools
tools: $(GOLANGCI_LINT) $(OAPI_CODEGEN) $(SCHEMATHESIS) ## Install the tools that the other targets use
	for peer in js python typescript openapi-python-client openapi-generator; do e2e/peers/install $$peer >/dev/null; done
	CGO_ENABLED=0 go build -C release/tool -trimpath -o /dev/null github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

.PHONY: helm
helm: $(HELM) $(KUBERNETES_VALIDATE) ## Check the Helm chart; the first run compiles helm, which takes minutes
	HELM=$(HELM) KUBERNETES_VALIDATE=$(KUBERNETES_VALIDATE) deploy/helm/check

.PHONY: helm-cluster
helm-cluster: $(HELM) $(KUBE_APISERVER) ## Install, upgrade and roll back the chart on a kube-apiserver; the first run compiles it, which takes 10 minutes and more
	HELM=$(HELM) KUBE_APISERVER=$(KUBE_APISERVER) deploy/helm/cluster

.PHONY: image
image: stack web-if-npm ## Build the image with buildah and answer a question in it with podman; needs root, and Debian for its packages
	deploy/image

.PHONY: release
release: $(if $(filter quern_%,$(ONLY)),,web) ## Build the release files into dist/: archives, contents, checksums; VERSION=v1.2.3, ONLY=quern_linux_amd64
	go run ./release -version "$(VERSION)" -only "$(ONLY)"

.PHONY: clean
clean: ## Remove bin/ and dist/; keep the stack's data and the tools, which are elsewhere
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

$(HELM):
	GOBIN=$(@D) go install helm.sh/helm/v4/cmd/helm@$(HELM_VERSION)

$(KUBERNETES_VALIDATE):
	python3 -m venv --clear $(dir $(@D))
	$(@D)/pip install -q --disable-pip-version-check kubernetes-validate==$(KUBERNETES_VALIDATE_VERSION)

$(TOXIPROXY):
	GOBIN=$(@D) go install github.com/Shopify/toxiproxy/v2/cmd/server@$(TOXIPROXY_VERSION)

# The version is that of the API. Without it, the chart, which names the versions that it supports, is refused.
$(KUBE_APISERVER): version := -X k8s.io/component-base/version
$(KUBE_APISERVER): numbers := $(subst ., ,$(KUBERNETES_VERSION:v%=%))
$(KUBE_APISERVER): flags = $(version).gitVersion=$(KUBERNETES_VERSION) $(version).gitMajor=$(word 1,$(numbers)) $(version).gitMinor=$(word 2,$(numbers))
$(KUBE_APISERVER):
	CGO_ENABLED=0 go build -C deploy/helm/apiserver -p 2 -ldflags '-s -w $(flags)' -o $@ k8s.io/kubernetes/cmd/kube-apiserver
