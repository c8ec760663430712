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

.PHONY: all run test check bench torture fuzz install clean bootstrap

all: bootstrap
	@scripts/build release

bootstrap:
	@scripts/bootstrap

run: all
	@scripts/run $(ARGS)

test: bootstrap
	@scripts/test

check: bootstrap
	@scripts/check

bench: bootstrap
	@scripts/bootstrap --all
	@scripts/bench

torture: bootstrap
	@scripts/bootstrap --all
	@scripts/torture

fuzz: bootstrap
	@scripts/fuzz

install: all
	@scripts/build install --prefix "$(PREFIX)" --destdir "$(DESTDIR)"

clean:
	rm -rf build build-*
