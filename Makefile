# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# Two targets are for everybody: `make demo` and `make test`. They need Go, git, make and bash, and neither root nor packages: the servers
# are built on the first run, with progress, and kept outside the work tree. `make test-system` is for root: it says which packages it
# installs before it does.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

GO ?= go
# Each module is built by itself, as its users build it; go.work is for editors.
export GOWORK := off
# The build cache serves every clone: what is compiled does not hold the directory that it was compiled in.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)
# Race detector: auto, on or off. auto runs packages that start control planes without it. Where there is no C compiler,
# it runs all of them without it, and says so.
RACE ?= auto
# Tests of real servers wait more than they compute, so that more of them run at a time than there are processors: two
# packages of the library, beside two of the other modules; and as many of either that start no servers. The longest
# packages begin, so that no long one is alone in the end.
OVERLAP := -p 2 -parallel 8
BESIDE := 2
LONGEST := rollout/kube internal/drainproof drain/draintest internal/rolloutproof configsync/kube identity internal/testenv drain/kube machine/kube identity/nodeauth internal/testenv/cmd/controlplane machine/provider/ssh machine/provider/local rollout/controller rollout/nodeagent machine/controller checkpoint lkg/lkgtest drain rollout machine/machinetest configsync machine/provider/providertest internal/archtest machine/provider/exec examples/demo examples/internal/fleetproof examples/agent/app examples/drain/app examples/controller/app examples/kubectl-belay/app examples/demo/internal/fleet examples/internal/copies examples/manager
# How many nodes the rollouts of the demo go over.
NODES ?= 50
# Further arguments of go test, of the demo and its second part, and of the long benchmarks.
TESTARGS ?=
DEMOARGS ?=
FLEETARGS ?=
BENCHARGS ?=

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/belay
TOOLS := $(CACHE)/tools/$(shell cat tools/go.mod tools/go.sum | sha256sum | cut -c1-16)-$(shell $(GO) env GOVERSION)

# The library, and each module beside it that has sources of its own: those of internal/controlplane and tools only pin versions.
MODULES = . $(shell find . -mindepth 2 -name go.mod -not -path './internal/controlplane/*' -not -path './tools/*' -printf '%P\n' | sort | xargs -n 1 dirname)

# The version that make release-check VERSION=v0.1.0 asks about.
VERSION_ASKED := $(VERSION)

# The agent keeps what it believes about configs apart by version: every build that make makes has one, also outside of git.
override VERSION = v0.0.0-$(or $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null),$(shell find . -name '*.go' -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-12))
LDFLAGS = -X k8s.io/component-base/version.gitVersion=$(VERSION)

# What the tests of the system tier need: how to see that it is there, the Debian packages, and what is said where they can't be installed.
SYSTEM_DEPS := KUBELET SSH QEMU BROWSER SYSTEMD FAULT
KUBELET_PACKAGES := containerd runc containernetworking-plugins iptables
KUBELET_CHECK = command -v containerd && command -v runc && command -v iptables && test -x /usr/lib/cni/bridge
CC_PACKAGES := gcc libc6-dev
CC_CHECK = command -v "$$($(GO) env CC | cut -d' ' -f1)"
SSH_PACKAGES := openssh-server openssh-client
SSH_CHECK = test -x /usr/sbin/sshd && command -v ssh
QEMU_PACKAGES := qemu-system-x86 e2fsprogs
QEMU_CHECK = command -v qemu-system-x86_64 && command -v mkfs.ext4
BROWSER_PACKAGES := chromium fonts-dejavu-core
BROWSER_CHECK = command -v "$${BELAY_CHROMIUM:-chromium}"
SYSTEMD_PACKAGES := systemd
SYSTEMD_CHECK = test -x /usr/lib/systemd/systemd && command -v systemctl
FAULT_PACKAGES := e2fsprogs xfsprogs btrfs-progs
FAULT_CHECK = command -v mkfs.ext4 && command -v mkfs.xfs && command -v mkfs.btrfs

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' Makefile

# The servers are compiled without cgo, and of the same modules: what both have is compiled once.
DEMO_BUILD = cd examples && CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o ../bin/
CONTROLPLANE := github.com/belayproject/belay/internal/testenv/cmd/controlplane

.PHONY: demo
demo: ## run the main job on several nodes, then rollouts over NODES, 50 if it is not set; DEMO_KUBECONFIG=FILE plays the first on that cluster, and no more
	@mkdir -p bin
	$(DEMO_BUILD) ./agent ./demo $(if $(DEMO_KUBECONFIG),,$(CONTROLPLANE))
	bin/demo $(or $(DEMO_KUBECONFIG:%=--kubeconfig=%),'--control-plane=bin/controlplane -stdin -wait') $(DEMOARGS)
	$(if $(DEMO_KUBECONFIG),,$(DEMO_BUILD) ./controller)
	$(if $(DEMO_KUBECONFIG),,bin/demo fleet --nodes=$(NODES) '--control-plane=bin/controlplane -stdin -fleet -with=kube-controller-manager,kube-scheduler,kwok' $(FLEETARGS))

# PKG names the packages to test, by their paths inside the repository: make test PKG="drain examples/drain".
PKG ?=
GOTEST = $(GO) run ./internal/archtest/cmd/gotest -allow .ci/skips.txt -first "$(LONGEST)" -only "$(PKG)"
GOTEST_ARGS = -timeout 30m -ldflags=-s $(OVERLAP) $(TESTARGS)

.PHONY: test
test: servers ## run the tests that need no root and no packages of the system, those without servers with the race detector; long searches and proofs in part
	$(GOTEST) -race $(RACE) -beside $(BESIDE) -args "$(GOTEST_ARGS)" $(MODULES)

.PHONY: test-system
test-system: is-root system-plan binaries system-deps ## run the tests that need root, a kubelet, qemu, sshd, systemd or a browser; says what it installs
	$(GOTEST) -race $(SYSTEM_RACE) -system -args "$(GOTEST_ARGS)" $(MODULES)

.PHONY: proofs
proofs: servers ## run in whole the long tests of real servers that make test runs in part, or leaves out: more nodes, kills, seeds and cases; PKG names packages
	$(GOTEST) -race $(RACE) -proofs -args "$(GOTEST_ARGS)" $(MODULES)

.PHONY: proofs-plan
proofs-plan: ## list the tests that make proofs runs
	@$(GO) run ./internal/archtest/cmd/gotest -proofs -list

# What is under test there are programs that the tests start, most of them not ours.
SYSTEM_RACE ?= off

.PHONY: is-root
is-root:
	@[ "$$(id -u)" = 0 ] || { echo "make test-system needs root; make test needs neither root nor packages" >&2; exit 1; }

.PHONY: system-plan
system-plan: ## list the tests that make test-system runs, and the packages that it installs where they are missing
	@echo "make test-system runs:"; $(GO) run ./internal/archtest/cmd/gotest -list | sed 's/^/  /'
	@echo "It installs by apt-get what is missing of:"
	@$(foreach d,$(SYSTEM_DEPS),$(call plan-packages,$($(d)_CHECK),$($(d)_PACKAGES));)

.PHONY: searches
searches: servers compiler ## run the tests without the race detector: long searches in whole; about 20 minutes
	$(MAKE) test RACE=off

.PHONY: race
race: servers compiler ## run every test of make test, long searches in whole, with the race detector; about an hour
	BELAY_RACE=all $(MAKE) test RACE=on

.PHONY: mutants
mutants: $(if $(PKG),,binaries) ## run every hand-written mutant; PKG=./drain [RUN=regexp] [MAX=n] [SEED=s] [FUNC=name] [PARALLEL=n]: break that package by operators and print which mutants its tests kill
	$(GO) run ./internal/mutate/cmd/mutants $(if $(PKG),$(RUN:%=-run '%') $(MAX:%=-max %) $(SEED:%=-seed %) $(PARALLEL:%=-parallel %) $(FUNC:%=-func '%') '$(PKG)')

# MATRIXARGS='-only "0.35 runtime-0.23 gains"' names lines; SKEWARGS='-releases 1.35 drain/kube' releases and packages.
MATRIXARGS ?=
SKEWARGS ?=

.PHONY: matrix
matrix: ## build, vet and unit-test the library with each supported release of the k8s.io modules; beside controller-runtime; examples/manager with it; what embedders gain; an hour
	$(GO) run ./internal/skew/cmd/matrix $(MATRIXARGS)

.PHONY: skew
skew: ## run the suites that have a real API server on each supported release of Kubernetes; hours
	$(GO) run ./internal/skew/cmd/servers $(SKEWARGS)

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## run the linters
	@for m in $(MODULES); do echo "golangci-lint in $$m"; (cd "$$m" && "$<" run --config "$(CURDIR)/.golangci.yml" ./...); done

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint ## format the sources
	@for m in $(MODULES); do (cd "$$m" && "$<" fmt --config "$(CURDIR)/.golangci.yml" ./...); done

.PHONY: bench
bench: ## run the benchmarks beside their peers
	@if [ ! -e examples/internal/bench/go.mod ]; then echo "there are no benchmarks yet"; exit 0; fi; \
	cd examples/internal/bench; mains=$$($(GO) list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./...); \
	short=; for m in $$mains; do \
	  case "$$m" in */bench/config|*/bench/drain|*/bench/fleet|*/bench/fleet/*|*/bench/identity|*/bench/machine|*/bench/rollout) continue;; esac; \
	  $(GO) run "$$m" || short="$$short $$m"; \
	done; \
	if [ -n "$$short" ]; then echo "short of their bound:$$short" >&2; exit 1; fi

.PHONY: bench-checkpoint
bench-checkpoint: ## run checkpoint beside the raw write protocol on the same disk, for a minute; BENCHARGS=-dir=PATH names the disk
	cd examples/internal/bench && $(GO) run ./checkpoint $(BENCHARGS)

.PHONY: bench-config
bench-config: binaries ## run adoption and rollback of configs beside their physical limit, on a real API server and a child process, for 2 minutes; BENCHARGS=-quick: 30 s
	cd examples/internal/bench && $(GO) run ./config $(BENCHARGS)

.PHONY: bench-drain
bench-drain: binaries ## run drain beside kubectl's library on a real control plane, for about two hours; BENCHARGS=-quick: 25 minutes
	cd examples/internal/bench && $(GO) run ./drain $(BENCHARGS)

.PHONY: bench-operators
bench-operators: binaries ## print what drain and kubectl's library do beside operators, for 5 minutes
	cd examples/internal/bench && $(GO) run ./operators $(BENCHARGS)

.PHONY: bench-identity
bench-identity: binaries ## run identity beside component-helpers and leader election on a real API server, for 35 minutes; BENCHARGS=-quick: 4 minutes
	cd examples/internal/bench && $(GO) run ./identity $(BENCHARGS)

.PHONY: bench-rollout
bench-rollout: binaries ## run rollouts beside a loop around kubectl's library, on real control planes, for about 45 minutes; BENCHARGS=-quick: 12 minutes
	cd examples/internal/bench && $(GO) run ./rollout $(BENCHARGS)

.PHONY: bench-machine
bench-machine: binaries ## count what 1,000 machines cost an API server and a provider, for about 15 minutes; BENCHARGS=-quick: 3 minutes
	cd examples/internal/bench && $(GO) run ./machine $(BENCHARGS)

.PHONY: bench-fleet
bench-fleet: binaries ## run 1,000 agents, one agent, and a controller with 5,000 nodes beside their bare limits, and count the requests of a rollout, for 30 minutes; BENCHARGS=-quick: 7 minutes
	@mkdir -p bin/fleet
	cd examples && $(GO) build -ldflags '$(LDFLAGS)' -o ../bin/fleet/ ./agent ./controller
	cd examples/internal/bench && $(GO) build -o ../../../bin/fleet/ ./fleet/bare
	cd examples/internal/bench; failed=; \
	$(GO) run ./fleet -agent ../../../bin/fleet/agent -controller ../../../bin/fleet/controller -bare ../../../bin/fleet/bare $(BENCHARGS) || failed="$$failed fleet"; \
	$(GO) run ./rollout -scenario R1,R1.config $(BENCHARGS) || failed="$$failed rollout"; \
	if [ -n "$$failed" ]; then echo "short of their bound, or not measured:$$failed" >&2; exit 1; fi

.PHONY: config-proof
config-proof: binaries ## let every call that a sync makes of the API server fail in each of eight ways: the same end; 4 minutes
	BELAY_CONFIG_FAULTS=all $(GO) test -count=1 -timeout 30m -v -run '^TestEveryCallOfASyncMayFail$$' ./configsync/kube

# The packages that read a node's config and its records. Each target begins with its corpus, which is committed.
FUZZED := checkpoint configsync/... lkg
FUZZTIME ?= 20s

.PHONY: fuzz
fuzz: ## fuzz what reads a node's config and its records, each target for FUZZTIME, 20s if it is not set
	@for p in $$($(GO) list $(addprefix ./,$(FUZZED))); do \
	  for f in $$($(GO) test -list '^Fuzz' "$$p" | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$p" | tail -n 3; \
	  done; \
	done

.PHONY: drain-proof
drain-proof: binaries ## kill drains before and after each write, and compare plans of 200 clusters with the server's answers, in whole; 6 minutes
	BELAY_DRAIN_PROOF=1 $(GO) test -count=1 -timeout 30m -v -run 'Killed|Die|Agree' ./internal/drainproof

.PHONY: drain-hold
drain-hold: binaries ## prove that a held node outlives its kubelet at the default settings of the controller manager; 13 minutes
	BELAY_DRAIN_HOLD=1 $(GO) test -count=1 -timeout 30m -v -run '^TestHeldNodeKeepsItsPodsForFiveMinutes$$' ./internal/drainproof

.PHONY: identity-outage
identity-outage: binaries ## stop the API server for five minutes under a member that holds its Lease; 6 minutes
	BELAY_IDENTITY_OUTAGE=5m $(GO) test -count=1 -timeout 15m -v -run '^TestOutageOfTheAPIServer$$' ./identity

.PHONY: identity-proof
identity-proof: ## play 10,000 worlds of clocks that lie: no living member is collected, no name has two holders; 2 minutes
	BELAY_IDENTITY_SEEDS=10000 GOGC=400 $(GO) test -count=1 -timeout 30m -v -run '^TestNobodyAliveIsCollected$$' ./identity

.PHONY: lkg-proof
lkg-proof: ## play 100,000 lives of nodes that crash, restart, reboot and lose their clocks, and 100,000 with outages below every config, under belay's rule, the one before it and the kubelet's: figures side by side; an hour
	BELAY_LKG_HISTORIES=100000 GOGC=400 $(GO) test -count=1 -timeout 180m -v -run '^TestHistories(WithOutages)?$$' ./lkg/lkgtest

.PHONY: kubelet-proof
kubelet-proof: is-root binaries kubelet-deps ## run the real kubelet on each of 348 documents, and compare it with what the prover says of each; root; 25 minutes
	BELAY_TIER=system BELAY_REQUIRE_KUBELET=1 BELAY_ALL_DOCUMENTS=1 $(GO) test -count=1 -timeout 60m -v -run '^TestProverAgreesWithTheKubelet$$' ./configsync/kubelet

.PHONY: rollout-proof
rollout-proof: ## walk a million states of the rollout's protocol by themselves, and every state of its largest world, 4.6 million: no rule is broken; 3 minutes
	$(GO) test -count=1 -timeout 30m -v -run '^TestAMillionStates$$' ./rollout/rollouttest
	BELAY_ROLLOUT_WORLD=1 GOGC=200 $(GO) test -count=1 -timeout 30m -v -run '^TestTheLargestWorld$$' ./rollout/rollouttest

.PHONY: rollout-fleet
rollout-fleet: binaries ## kill and freeze the controllers of rollouts over 50 nodes, at each write, one and two at a time, and see 100 nodes through a fatal revision and an abort
	BELAY_KILLS=all $(GO) test -count=1 -timeout 60m -v -run '^TestKilledAtEveryWrite$$' ./rollout/controller
	BELAY_ROLLOUT_NODES=50 $(GO) test -count=1 -timeout 120m -v -run 'Killed|Frozen|AtRandom' ./internal/rolloutproof
	BELAY_ROLLOUT_NODES=100 $(GO) test -count=1 -timeout 60m -v -run 'Life' ./internal/rolloutproof

.PHONY: rights-proof
rights-proof: binaries ## hold the audit log of two controllers and fifty agents, with the objects of the manifests, against their roles, and that of machines; 3 minutes
	cd examples/internal/manifestproof && BELAY_AUDIT_NODES=50 $(GO) test -count=1 -timeout 30m -v -run 'RightsAlone|Denials|AuditFinds' .

# How many nodes, and for how long faults strike.
soak: NODES = 1000
SOAK ?= 10m

.PHONY: soak
soak: binaries ## let a fleet of NODES, 1000 if it is not set, live through faults for SOAK, 10m if it is not set, then through a proxy that cuts idle connections and an API server that lets too little in
	BELAY_SOAK=$(SOAK) BELAY_SOAK_NODES=$(NODES) $(GO) test -C examples -count=1 -timeout 12h -v -run '^TestFleetLivesThroughFaults$$' ./internal/fleetproof

.PHONY: machine-proof
machine-proof: binaries ssh-deps qemu-deps ## kill the controllers of machines a hundred times, on a cloud and on local processes; the suite of providers over sshd and qemu; 15 minutes
	BELAY_MACHINE_KILLS=100 $(GO) test -count=1 -timeout 60m -v ./internal/machineproof
	BELAY_TIER=system BELAY_MACHINE_SSHD=1 $(GO) test -count=1 -timeout 60m -v -run SSHD ./machine/provider/ssh
	BELAY_TIER=system BELAY_MACHINE_QEMU=1 $(GO) test -count=1 -timeout 60m -v -run Conformance ./internal/machineqemu

.PHONY: faults
faults: fault-deps ## crash, starve and break the disks under checkpoint, and checkpoint itself: crash states, power cuts, kills, mutants; 10 minutes; LONG=1: hours
	@lines() { grep -vE '^ *(=== |--- PASS|PASS)' | sed -E 's/^ *[a-z_]+_test\.go:[0-9]+: fault /fault /'; }; \
	export BELAY_TIER=system BELAY_FAULTS=$(if $(LONG),long,1) GOGC=400; \
	$(GO) test -count=1 -timeout $(if $(LONG),24h,15m) -p 1 -v -run '^Test(Fault|Protocols)' ./checkpoint/... | lines; \
	(cd internal/faultproof && $(GO) test -count=1 -timeout $(if $(LONG),24h,15m) -v ./...) | lines; \
	BELAY_MUTANTS=all $(GO) test -count=1 -timeout 30m -v -run '^TestIncidents$$' ./checkpoint | lines

.PHONY: page-shots
page-shots: browser-deps ## write the pictures of the fleet page that the docs show
	cd examples/internal/browser && BELAY_TIER=system BELAY_REQUIRE_BROWSER=1 BELAY_SHOTS="$(CURDIR)/docs" $(GO) test -count=1 .

.PHONY: generate
generate: $(TOOLS)/controller-gen ## write generated code, manifests and the last column of docs/requirements.md
	for m in $(MODULES); do PATH="$(TOOLS):$$PATH" $(GO) generate -C "$$m" ./...; done
	$(GO) run ./internal/archtest/cmd/requirements
	$(GO) run ./internal/badinput/cmd/generate
	$(GO) run ./internal/archtest/cmd/api
	$(GO) run ./internal/archtest/cmd/ratchets

.PHONY: ratchets
ratchets: ## lower the figures of internal/archtest/ratchets.txt that have shrunk; it raises none
	$(GO) run ./internal/archtest/cmd/ratchets

.PHONY: api
api: ## write the listings of the exported API below docs/api; the test TestAPI of internal/archtest compares them
	$(GO) run ./internal/badinput/cmd/generate
	$(GO) run ./internal/archtest/cmd/api

.PHONY: verify
verify: ## fail if generate changes anything
	@state() { git status --porcelain; git diff HEAD | sha256sum; }; \
	before=$$(state); $(MAKE) generate; after=$$(state); \
	if [ "$$before" != "$$after" ]; then git status --short; echo "generated files are not up to date: commit what make generate writes" >&2; exit 1; fi

# The modules that embedders import: each builds with the Go release that its go.mod names.
FLOORS := . configsync/restart/systemd examples/metrics

.PHONY: release-prepare
release-prepare: version-asked ## write VERSION, such as v0.1.0, into each go.mod, and with the date into the CHANGELOG
	$(GO) run ./internal/releasecheck/cmd/releasecheck -write $(VERSION_ASKED)

.PHONY: release-check
release-check: version-asked verify ## say what stands between the work tree and the release VERSION; see RELEASE.md
	$(GO) run ./internal/releasecheck/cmd/releasecheck $(VERSION_ASKED)
	$(GO) test -count=1 ./internal/releasecheck ./internal/skew
	$(GO) run ./internal/skew/cmd/matrix -only gains
	@for m in $(FLOORS); do \
	  floor=$$($(GO) -C "$$m" list -m -f '{{.GoVersion}}'); echo "building $$m with Go $$floor"; \
	  GOTOOLCHAIN=go$$floor $(GO) build -C "$$m" ./...; \
	done
	@mkdir -p bin/release
	cd examples && $(GO) build -trimpath -ldflags '-X k8s.io/component-base/version.gitVersion=$(VERSION_ASKED)' -o ../bin/release/ ./agent ./controller ./drain ./kubectl-belay
	@for p in bin/release/*; do "$$p" --version | grep -F -- "$(VERSION_ASKED)" || { echo "$$p does not say $(VERSION_ASKED)" >&2; exit 1; }; done

.PHONY: version-asked
version-asked:
	@[ -n "$(filter v%,$(VERSION_ASKED))" ] || { echo "say which version, such as VERSION=v0.1.0" >&2; exit 2; }

.PHONY: servers
servers: ## build etcd and the Kubernetes servers that make test runs
	@$(GO) run ./internal/testenv/cmd/binaries reaper etcd kube-apiserver kube-controller-manager kube-scheduler kwok

.PHONY: binaries
binaries: ## build what all tests run: the servers, kubelets and containerd
	@$(GO) run ./internal/testenv/cmd/binaries

.PHONY: tools
tools: $(TOOLS)/golangci-lint $(TOOLS)/controller-gen ## build the linters and generators of tools/go.mod
	@ls "$(TOOLS)"

$(TOOLS)/golangci-lint:
	@$(call build-tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

$(TOOLS)/controller-gen:
	@$(call build-tool,sigs.k8s.io/controller-tools/cmd/controller-gen)

# build-tool compiles a program of tools/go.mod and moves it into place when it is complete. go build -v prints a line for each
# package that it compiles and module that it downloads: those are counted, everything else is shown.
define build-tool
echo "building $(@F) from tools/go.mod; the first time this takes minutes"; mkdir -p "$(@D)"; \
(cd tools && $(GO) build -v -trimpath -o "$@.$$$$" $(1) 2>&1) | { n=0; while IFS= read -r line; do \
  case "$$line" in "go: downloading "*) ;; *" "*|*:*) echo "$$line"; continue;; esac; \
  n=$$((n+1)); [ $$((n % 200)) != 0 ] || echo "  $(@F): $$n modules and packages, $$SECONDS s"; \
done; }; \
mv "$@.$$$$" "$@"; echo "  $(@F): done in $$SECONDS s"
endef

# install-packages installs the Debian packages of $(1), such as KUBELET, where their check fails, and says so before. Without root, apt
# or a network it only says so, with $(2).
define install-packages
if ! { $($(1)_CHECK); } >/dev/null 2>&1; then \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "installing $($(1)_PACKAGES)"; \
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $($(1)_PACKAGES) >/dev/null; } || echo "$(2)"; \
  else echo "$(2)"; fi; fi
endef

# plan-packages says whether the check $(1) finds the packages $(2).
plan-packages = if { $(1); } >/dev/null 2>&1; then echo "  there:   $(2)"; else echo "  missing: $(2)"; fi

.PHONY: system-deps
system-deps: kubelet-deps ssh-deps qemu-deps browser-deps systemd-deps fault-deps

.PHONY: kubelet-deps
kubelet-deps: ## install what a real kubelet needs (Debian, root; else it only says what is missing)
	@$(call install-packages,KUBELET,the tests with a real kubelet are skipped: they need root and $(KUBELET_PACKAGES))

.PHONY: ssh-deps
ssh-deps:
	@$(call install-packages,SSH,the tests with a real sshd are skipped: they need $(SSH_PACKAGES))

# The kernels are fetched, not installed: they lie in the user's cache. The archive's list is there where the packages were installed just now.
.PHONY: qemu-deps
qemu-deps:
	@$(call install-packages,QEMU,the tests with virtual machines are skipped: they need $(QEMU_PACKAGES))
	@if command -v qemu-system-x86_64 >/dev/null && command -v apt-get >/dev/null; then \
	  $(GO) run ./internal/machineqemu/cmd/kernels || { [ "$$(id -u)" = 0 ] && apt-get update -qq && $(GO) run ./internal/machineqemu/cmd/kernels; } || \
	  echo "the tests with virtual machines are skipped: they need two kernels from Debian's archive"; fi

.PHONY: browser-deps
browser-deps:
	@$(call install-packages,BROWSER,the tests of the fleet page in a browser are skipped: they need $(BROWSER_PACKAGES))

.PHONY: systemd-deps
systemd-deps:
	@$(call install-packages,SYSTEMD,the tests under a real systemd are skipped: they need root and $(SYSTEMD_PACKAGES))

.PHONY: fault-deps
fault-deps:
	@$(call install-packages,FAULT,the tests on real file systems are skipped: they need root and $(FAULT_PACKAGES))

.PHONY: compiler
compiler:
	@$(call install-packages,CC,there is no C compiler: the race detector stays off)

.PHONY: clean
clean: ## remove what was built in the work tree; compiled tools and servers stay in the user's cache
	rm -rf bin .cache
	find . -name '*.test' -not -path './.git/*' -delete
	$(GO) clean -testcache
