# A newcomer needs `make demo` and `make test`; `make help` lists the rest.

GO       ?= go
CORPUS   ?=
BENCH    ?= .
BENCHTIME ?= 1s
FUZZTIME ?= 10m
RACETEST ?= . ./cmd/etrun/internal/daemon ./cmd/etrun/internal/load ./cmd/etrun/internal/output ./cmd/etrun/internal/session ./delegate/delegatetest \
	./delegate/ethosu ./delegate/lowering ./delegate/xnnpack ./delegate/xnnpack/internal/goengine/... ./delegate/xnnpack/internal/native \
	./hal/cpu ./hal/ethosu ./runtime/exec ./runtime/metrics ./runtime/prepare ./runtime/trace ./serve/... ./text/...
# Tests of one goroutine that take long under the race detector, of the source, and of allocations, which are more there.
RACESKIP := Rows Elements ClampsAfter CallsBefore SpecialNumbers Utilization BatchAllocatesNothing ArgumentsThatRefer LongRows
# Tests of whole programs on several threads, or of methods that share state.
RACEPROGRAMS := Sizes SizedCases SharedState CopyState
# Tests that run a part of their cases, and their packages.
CASETESTS    := Rows Elements CreationFails CallsBefore SpecialNumbers Guard LowerLevels Random EstimatesAreUpperBounds \
	StatesThroughViews EqualOperands ModulesWithLostUpdates ElidedViewsFollow Programs ProgramBytes Graphs Payloads Rewrites \
	RandomLoweredFiles LoweredRandomPrograms (Input|Data|Bundle|Checked|Lowered|Quantized|Written)Files Mutants Mutated RandomSessions \
	MixedSchemas ManyClients Attack
CASEPACKAGES := ./delegate/xnnpack/... ./internal/simd ./kernels/... ./runtime/lower \
	./media/picture ./cmd/etrun ./cmd/etrun/internal/daemon ./delegate/ethosu ./internal/grammar ./internal/integration ./runtime/compile \
	./serve/openai ./text ./text/tokenizer
# A pattern of any of some words.
empty :=
any = $(subst $(empty) $(empty),|,$(strip $(1)))
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS  := -s -w -X main.release=$(VERSION)
# What go run and go test start is not beside the folder lib.
export ETRUN_XNNPACK ?= $(shell test ! -e lib/.complete || echo '$(CURDIR)/lib')
# All builds, tests and scripts share what is compiled, without tables for debuggers: executables are stripped of them anyway.
export GOFLAGS += -trimpath -gcflags=all=-dwarf=false
# Tests are analysed once, by vet. One package more than processors, because some tests wait.
TEST     := $(GO) test -vet=off -p $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

.PHONY: help deps demo build libetrun test check format vet staticcheck cases levels arm64 machines race conformance check-schemas recordings texts docs choice firstruns memorylimits loweredfiles bench fuzz firmware dist reproduce deb goinstall size tidy vuln clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## fetch libXNNPACK into lib/; install compilers, qemu and clients for tests where they are missing
	scripts/deps.sh
	scripts/tools.sh
	scripts/npm.sh

# The demo and the tests do without libXNNPACK, on the engine in Go, where it cannot be fetched.
lib/.complete:
	@scripts/deps.sh || echo "deps: without libXNNPACK, XNNPACK programs run on the engine in Go"

demo: lib/.complete build ## build, and classify handwritten digits on every engine
	$(GO) build -o bin/digits ./examples/digits
	bin/digits

build: ## build bin/etrun
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/etrun ./cmd/etrun

libetrun: lib/.complete ## build bin/libetrun.so, the library for C and other languages, and its header
	$(GO) build -buildmode=c-shared -ldflags "$(LDFLAGS) -extldflags '-Wl,-soname,libetrun.so.2'" \
		-o bin/libetrun.so.2 ./cbindings/libetrun
	rm bin/libetrun.so.h # cgo's, without const
	ln -sf libetrun.so.2 bin/libetrun.so
	cp cbindings/libetrun/etrun.h bin/

test: lib/.complete ## run the tests
	$(TEST) ./...

check: format vet staticcheck cases levels arm64 machines ## format, vet, staticcheck, all cases of tests, tests at lower vector levels, arm64 build run under qemu, other machines

format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi

vet:
	$(GO) vet ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./... # all that is without cgo, too
	$(GO) vet -tags purego ./internal/simd/...

staticcheck:
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

cases: lib/.complete ## run all cases of tests of which "make test" runs a part, and those of the library for C and Python
	ETRUN_ALL_CASES=1 $(TEST) $(CASEPACKAGES) -run '^Test($(call any,$(CASETESTS)))$$'
	$(TEST) ./cbindings/libetrun -build

levels: ## run the tests of what has vector loops at lower instruction sets, and without assembly
	scripts/levels.sh

arm64:
	scripts/arm64.sh

machines: ## vet and build for the machines of the second tier, test 32 bits, run linux/arm and WASI builds
	scripts/machines.sh

race: lib/.complete ## run the tests of what is concurrent under the race detector, and of the library for C under the address sanitizer
	$(TEST) -race -short -timeout 20m -skip '^Test($(call any,$(RACESKIP)))$$' $(RACETEST)
	$(TEST) -race -short -run '^Test($(call any,$(RACEPROGRAMS)))$$' ./internal/integration
	$(TEST) ./cbindings/libetrun -run '^TestAddressSanitizer$$' -sanitize

conformance: lib/.complete ## run a corpus of programs with expected outputs: CORPUS=folder
	$(GO) run ./cmd/conformance -table -corpus '$(CORPUS)'

check-schemas: lib/.complete ## check the answers of models with random weights to 10,000 random schemas by another implementation
	ETRUN_SCHEMAS=10000 $(GO) test -count 1 -timeout 60m -run '^Test(Random|Mixed)Schemas$$' ./internal/grammar ./text

recordings: lib/.complete ## transcribe the recordings of a corpus and compare the texts with PyTorch's: CORPUS=folder
	CORPUS='$(abspath $(CORPUS))' $(GO) test -count 1 -run TestCorpusMedia -v ./speech

texts: lib/.complete ## compare the texts of a trained model with PyTorch's, also quantized: CORPUS=folder
	CORPUS='$(abspath $(CORPUS))' $(GO) test -count 1 -run 'Corpus|QuantizeText' -v ./text ./cmd/etrun

docs: ## write the generated pages of docs
	$(GO) run ./cmd/opsdoc
	$(GO) test ./serve/openai/internal/requests -run '^TestMembersPage$$' -update
	$(GO) test ./cmd/etrun -run '^(TestJSONPage|TestCommandPages)$$' -update

choice: lib/.complete ## measure XNNPACK programs on both engines, to check the rule that chooses: CORPUS=folder
	$(GO) test ./delegate/xnnpack -count 1 -run '^TestChoice$$' -measure-choice '$(abspath $(CORPUS))/models:$(abspath $(CORPUS))/fresh:$(abspath $(CORPUS))/fresh2' -v

firstruns: lib/.complete ## measure the processor time of loads, first runs and later runs of XNNPACK programs: CORPUS=folder
	$(GO) test ./internal/integration -count 1 -run '^TestFirstRuns$$' -timeout 30m -first-runs '$(abspath $(CORPUS))/models:$(abspath $(CORPUS))/fresh'

memorylimits: lib/.complete ## run the programs of a corpus under limits of memory from one to five times their files: CORPUS=folder
	ETRUN_CAMPAIGN_CORPUS='$(abspath $(CORPUS))' $(GO) test ./delegate/xnnpack -count 1 -run '^TestMemoryLimits$$' -timeout 60m -v

loweredfiles: lib/.complete ## lower the programs of a corpus to files: results, sizes, planned memory and times beside those of lowering at load: CORPUS=folder
	ETRUN_CAMPAIGN_CORPUS='$(abspath $(CORPUS))/models:$(abspath $(CORPUS))/fresh' $(GO) test ./internal/integration -count 1 -run '^TestLoweredFile(s|Times)$$' -timeout 60m -v -lowered-times

bench: lib/.complete ## run the benchmarks: BENCH=regexp BENCHTIME=1s
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

fuzz: ## fuzz every target, as many at once as there are processors: FUZZTIME=10m each
	scripts/fuzz.sh $(FUZZTIME)

dist: ## build a release in dist/: archives, packages, bill of materials, checksums
	scripts/dist.sh

reproduce: ## build a release again, elsewhere, and compare it with the one in dist/
	scripts/reproduce.sh

deb: ## install, run and remove the package of dist/ in a bare root
	scripts/deb.sh

goinstall: ## install the commit as go install does a published version
	scripts/goinstall.sh

size: ## compare the sizes of executables with their limits
	scripts/size.sh

tidy: ## check that go.mod and go.sum are tidy
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff

vuln: ## look for known vulnerabilities; without the network it only warns
	scripts/vuln.sh

firmware: ## build the firmware for Arm's Ethos-U models, with gcc-arm-none-eabi
	$(MAKE) -C hal/ethosu/fvp/firmware sums

clean: ## remove what was built and fetched
	rm -rf bin dist lib .deps
