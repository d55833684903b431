# The programs that this calls are fetched or built on first use, into bin/. `make clean` forgets them, which is what a new
# version in tools/ wants.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The embedded cluster, and its directory in bin/.
export CLUSTER ?= cluster

GENERATED := api/v1alpha1/zz_generated.deepcopy.go applyconfigurations config/crd/bases config/rbac/role.yaml

##@ To see it work

demo: build ## Bring up the embedded cluster and the operator, and take a tour. Leaves both up.
	@tools/demo.sh

run: build ## Run the operator in the foreground on the current kubeconfig.
	bin/manager --metrics-bind-address=0 --health-probe-bind-address=0

cluster-up: ## Bring up the embedded cluster.
	@tools/cluster.sh up

cluster-down: ## Remove the embedded cluster, with the demo's operator.
	@tools/cluster.sh down

##@ To change it

build: ## Build the operator and the kubectl plugin.
	go build -o bin/ ./cmd/...

generate: bin/controller-gen ## Generate deepcopy functions and apply configurations from api/.
	bin/controller-gen object applyconfiguration paths=./api/...

manifests: bin/controller-gen ## Generate the CRD from api/, and the operator's role from the markers in the code.
	bin/controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	bin/controller-gen rbac:roleName=myproxy-operator paths='./controller/...;./cmd/...' output:rbac:dir=config/rbac

fmt: bin/golangci-lint ## Format the code.
	bin/golangci-lint fmt

lint: bin/golangci-lint ## Lint the code and its format, and the API's conventions.
	bin/golangci-lint run

test: ## Run the unit tests, and those against a real etcd and API server.
	@tools/programs.sh etcd kube-apiserver kubectl
	KUBEBUILDER_ASSETS=$(CURDIR)/bin/k8s go test $(if $(CI),-race) ./...

##@ To be sure

# The demo of `verify` has a cluster of its own, and leaves nothing.
verify: CLUSTER := verify-cluster
verify: ## Everything that CI runs.
	@for step in verify-generated verify-modules lint test verify-demo; do \
	  echo "=== $$step" && start=$$SECONDS; \
	  $(MAKE) $$step; \
	  echo "=== $$step took $$((SECONDS - start)) s"; \
	done

verify-generated:
	@sums() { find $(GENERATED) -type f -exec sha256sum {} + | sort -k2; }; \
	before=$$(sums); \
	$(MAKE) generate manifests; \
	diff <(echo "$$before") <(sums) || { echo "Generated files were out of date, and are not any more: commit them."; exit 1; }

verify-modules:
	go mod tidy -diff

verify-demo:
	@trap '$(MAKE) cluster-down' EXIT; $(MAKE) demo

clean: cluster-down ## Remove all that was built.
	rm -rf bin

##@ The rest

help: ## Print this.
	@awk -F ':.*## ' '/^##@/ { print "\n" substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bin/controller-gen: package := sigs.k8s.io/controller-tools/cmd/controller-gen
bin/golangci-lint: package := ./golangci-lint
bin/controller-gen bin/golangci-lint: tools/go.mod $(wildcard tools/golangci-lint/*)
	go -C tools build -trimpath -o ../$@ $(package)
	@touch $@

.PHONY: demo run cluster-up cluster-down build generate manifests fmt lint test verify verify-generated verify-modules verify-demo clean help
