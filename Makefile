# The front door. Meson does the work behind it; every target sets up what it needs by itself.
#
#   make            build/pawl and libpawl, optimised and hardened
#   make run        see it work; until Ctrl-C with ARGS=--forever
#   make test       everything that must hold: plain, ASan+UBSan and TSan builds
#   make check      formatting, layers, linters, headers
#   make install    PREFIX=/usr/local DESTDIR=

PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
export NINJA_STATUS := [%f/%t] 

.PHONY: all run test check bench torture fuzz install clean bootstrap bootstrap-test

all: bootstrap
	@scripts/build release

bootstrap:
	@scripts/bootstrap

bootstrap-test:
	@scripts/bootstrap --test

run: all
	@scripts/run $(ARGS)

test: bootstrap-test
	@scripts/test

check: bootstrap-test
	@scripts/check

bench:
	@scripts/bootstrap --all
	@scripts/bench

torture:
	@scripts/bootstrap --all
	@scripts/torture

fuzz: bootstrap-test
	@scripts/fuzz

install: all
	@scripts/build install --prefix "$(PREFIX)" --destdir "$(DESTDIR)"

clean:
	rm -rf build build-*
