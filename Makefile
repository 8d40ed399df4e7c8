# The commands of the tree. What they do is in tools/; this file only names it.
.DEFAULT_GOAL := help
.PHONY: deb help build tuned run test quick soak fuzz bench profile tsan debug format tidy clean

ARGS ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

build: ## a release binary at bin/cadenza; installs what is missing
	@tools/setup build
	@tools/build release

tuned: ## a faster binary at build/tuned/bin/cadenza, compiled by what a load showed; two minutes more
	@tools/setup build
	@tools/tune

run: build ## starts a server with its data in ./data; more flags by ARGS="--grpc ..."
	@exec bin/cadenza server --data ./data $(ARGS)

test: ## installs what tests need, builds, runs all of them; ends with a line of counts
	@tools/test

quick: ## tidy and the ASan tests only
	@tools/test quick

tsan: ## the tests that use threads, under ThreadSanitizer
	@tools/setup test
	@tools/build tsan tests_tsan
	@tools/ctest tsan -L tsan

soak: ## many seeds, and every injected fault has to be found; SEEDS=200 WHAT=program or fault
	@tools/setup test
	@tools/soak $(or $(SEEDS),200) $(WHAT)

fuzz: ## every fuzzer for a minute; FUZZ_SECONDS=60
	@tools/setup test
	@tools/fuzz $(or $(FUZZ_SECONDS),60)

bench: ## measures the tuned binary, writes docs/bench.md and the table of docs/performance.md
	@tools/setup test
	@tools/tune
	@tools/bench $(ARGS)
	@tools/budgets

profile: ## a flame graph of the server under load: build/profile.svg; needs perf
	@tools/setup build
	@tools/build release
	@tools/profile

deb: tuned ## a Debian package in build/
	@tools/package build build/tuned/bin/cadenza

debug: ## an unoptimised binary with symbols at build/debug/bin/cadenza
	@tools/setup build
	@tools/build debug

tidy: ## the rules of the tree: layers, banned calls, sizes, format
	@tools/tidy

format: ## lays out all C files with clang-format
	@find src tests -name '*.[ch]' -print0 | xargs -0 clang-format-14 -i

clean: ## removes what was built, keeps ./data and the clients of the tests
	@rm -rf bin $(filter-out build/clients,$(wildcard build/*))
