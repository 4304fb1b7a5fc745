#!/usr/bin/env bash
# `npm run test:all`: builds, then checks everything that a change must keep: lint, types, all tests, the documents, the package, dependencies, a short
# bench, and most unit tests once more on Node 22 and 24. A failed step does not stop the others; the exit code is 1 then.
# The last line of the output is the number of tests, for programs: `N passed, N failed` (and `, N skipped`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
export CI=true

work="$(mktemp -d)"
failed=()
times=()

finish() {
  local status=$?
  if ((${#failed[@]} > 0)); then
    # Repeated at the end, for readers who see only that.
    local name
    for name in "${failed[@]}"; do printf '\n== what ended "%s"\n' "$name" && tail -n 40 "$work/$name.log"; done
    printf '\nfailed: %s\n' "${failed[*]}"
    status=1
  fi
  printf '\nseconds of each step: %s\n' "${times[*]}"
  local report reports=("$work/tests.json") again=() version
  # One that is missing counts as a failure.
  for report in slow-unit slow sim chaos; do reports+=("$work/$report.json"); done
  [[ ! -e $work/containers.json ]] || reports+=("$work/containers.json")
  for version in 22 24; do [[ -d $work/node$version ]] && again+=("$work/node$version.json"); done
  printf '\n'
  node scripts/count-tests.mjs "${reports[@]}" --again "${again[@]}" || status=1
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

step() {
  local name=$1
  shift
  printf '\n== %s\n' "$name"
  local began=$SECONDS
  # Not piped into tee: a step may change PATH.
  local log
  exec {log}> >(tee "$work/$name.log")
  local tee=$!
  "$@" >&"$log" 2>&1 || failed+=("$name")
  exec {log}>&-
  wait "$tee"
  printf '== %s: %s s\n' "$name" "$((SECONDS - began))"
  times+=("$name $((SECONDS - began)),")
}

# Two commands, words apart by spaces: each keeps one core busy.
side_by_side() {
  local status=0
  $1 &
  local first=$!
  $2 || status=1
  wait "$first" || status=1
  return "$status"
}

types_and_files() {
  npm run typecheck && npm run lint:files
}

# Another Node that is supported, and the unit tests that Node could make fail: properties, documents, bench, sandbox, and what only computes in
# virtual time, or does not depend on Node, are left out.
# npm's package of that name brings the program. Native modules are loaded
# from the same node_modules, as they are by someone who changes the version of Node. One worker: the other version has the other core.
on_node() {
  local version=$1
  mkdir "$work/node$version"
  npm install --prefix "$work/node$version" --no-save --no-audit "node@$version" || return 1
  local PATH="$work/node$version/node_modules/node/bin:$PATH"
  printf 'Node %s\n' "$(node --version)"
  [[ $(node --version) == v"$version".* ]] || return 1
  TEST_REPORT="$work/node$version.json" TEST_WORKERS=1 node node_modules/vitest/vitest.mjs run --project node-all
}

# Debian's Prometheus, unpacked and not installed: nothing is started. Without it the tests of the alerts say
# that they are skipped.
get_prometheus() {
  command -v prometheus >/dev/null && return
  command -v apt-get >/dev/null || { printf 'no apt-get: the alerts are not tried out\n'; return; }
  mkdir "$work/prometheus"
  (
    cd "$work/prometheus"
    apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }
    dpkg -x prometheus_*.deb .
  ) && PATH="$work/prometheus/usr/bin:$PATH" || printf 'no Prometheus to be had: the alerts are not tried out\n'
}

# run_projects REPORT [SETTING=VALUE...] PROJECT...: projects of vitest that are not in `npm test`.
run_projects() {
  local report=$1 settings=() projects=()
  shift
  while [[ ${1-} == *=* ]]; do settings+=("$1") && shift; done
  for project in "$@"; do projects+=(--project "$project"); done
  env "${settings[@]}" TEST_REPORT="$work/$report.json" node node_modules/vitest/vitest.mjs run "${projects[@]}"
}

# Debian's kcat with its libraries, unpacked and not installed. Without it the test of what other clients read says that
# librdkafka is left out.
get_kcat() {
  command -v kcat >/dev/null && return
  command -v apt-get >/dev/null || { printf 'no apt-get: nothing is shown to librdkafka\n'; return; }
  mkdir -p "$work/kcat/bin"
  (
    cd "$work/kcat"
    packages=(kcat librdkafka1 libyajl2)
    apt-get download -qq "${packages[@]}" 2>/dev/null || { apt-get update -qq && apt-get download -qq "${packages[@]}"; }
    for package in ./*.deb; do dpkg -x "$package" .; done
    libraries=(usr/lib/*/librdkafka.so.1)
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$PWD/${libraries[0]%/*}" "$PWD/usr/bin/kcat" >bin/kcat
    chmod +x bin/kcat
    bin/kcat -V >/dev/null
  ) && PATH="$work/kcat/bin:$PATH" || printf 'no kcat to be had: nothing is shown to librdkafka\n'
}

# Debian's PostgreSQL with what it lacks here, unpacked and not installed: one that is started by a test has no port. Without it
# the test of the recipes says that this one is skipped.
get_postgresql() {
  local initdb=(/usr/lib/postgresql/*/bin/initdb)
  { command -v initdb >/dev/null || [[ -x ${initdb[0]} ]]; } && return
  command -v apt-get >/dev/null || { printf 'no apt-get: the recipe for PostgreSQL is not tried out\n'; return; }
  mkdir -p "$work/postgresql/partial" "$work/postgresql/bin"
  (
    cd "$work/postgresql"
    get=(apt-get install -qq --yes --no-install-recommends --download-only -o Dir::Cache::archives="$PWD" postgresql)
    "${get[@]}" 2>/dev/null || { apt-get update -qq && "${get[@]}"; }
    for package in ./*.deb; do dpkg -x "$package" .; done
    libraries=(usr/lib/*/libpq.so.5)
    programs=(usr/lib/postgresql/*/bin)
    for program in initdb postgres; do
      printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$PWD/$(dirname "${libraries[0]}")" "$PWD/${programs[0]}/$program" >"bin/$program"
    done
    chmod +x bin/*
    chmod 711 "$work" # it refuses root, and another user has to come in
    bin/initdb --version >/dev/null
  ) && PATH="$work/postgresql/bin:$PATH" || printf 'no PostgreSQL to be had: the recipe for it is not tried out\n'
}

# Any known vulnerability ends it. A registry that knows no audits (a mirror), or that can't be reached, does not: nothing was found out then.
audit() {
  npm audit --omit=dev 2>&1 | tee "$work/npm-audit" && return
  grep -qiE '^npm warn audit ((404|405|501) |.*(ECONN(REFUSED|RESET)|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|TIMEDOUT|network timeout))' "$work/npm-audit" &&
    printf 'WARNING: NOTHING WAS AUDITED: run "npm audit --omit=dev" where the registry answers before a release\n'
}

# The short form of `npm run test:docker`. Making images takes too long for the gate.
containers() {
  if ! docker info >/dev/null 2>&1 && [[ ! -d ${XDG_CACHE_HOME:-$HOME/.cache}/cellarstream/docker ]]; then
    printf 'NOT RUN: no Docker engine answers, and there are no cached images; `npm run test:docker` makes them\n'
    return
  fi
  local status=0
  TEST_REPORT="$work/containers.json" scripts/test-docker.sh --short || status=$?
  ((status != 3)) || { printf 'NOT RUN: there is no Docker engine\n' && status=0; }
  return "$status"
}

step 'build' npm run build # first: the examples import the package by its name, and so its types from dist
# What `npm run typecheck` and `npm run lint` check, in two halves that take about as long.
step 'lint and types' side_by_side 'npx eslint .' types_and_files
step 'Prometheus' get_prometheus
step 'kcat' get_kcat
step 'PostgreSQL' get_postgresql
step 'npm test' env TEST_REPORT="$work/tests.json" npm test
step 'slow unit tests' run_projects slow-unit slow-unit-all
step 'slow tests' run_projects slow slow-all alone-all
step 'simulation' run_projects sim SIM_SEEDS=100 FLEET_SEEDS=30 sim-all
# Three brokers that are restarted and killed, and whose leaders move.
step 'chaos' run_projects chaos CHAOS_SECONDS=60 CHAOS_BROKERS=3 chaos-all
step 'containers' containers
step 'docs and package' side_by_side 'node scripts/check-docs.mjs' 'node scripts/check-package.mjs'
step 'audit' audit
# One short run: bench/bounds.mjs has limits of about twice the usual figures, beyond the noise of such sizes.
step 'bench' node bench/bench.mjs --short --check --runs 1 --json "$work/bench.json"
step 'Node 22 and 24' side_by_side 'on_node 22' 'on_node 24'
