#!/usr/bin/env bash
# `npm run test:docker`: the image, both Compose files and the demo in containers, then the integration tests on testcontainers.
# `--short` leaves out the latter and what takes minutes: the gate runs that.
# Uses the Docker engine that answers, with its images. Where none does, root on Debian gets one: docker.io of apt, on a socket of its own with its
# data in the cache of the demo, and stopped at the end. Images that it cannot pull are made from packages (test/docker/stand-ins).
# Exit code 3: there is no engine, and none can be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

is_short=false
[[ ${1-} != --short ]] || is_short=true
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cellarstream
work=$(mktemp -d)
engine=
finish() {
  local status=$?
  if [[ $engine ]]; then
    kill "$engine" && wait "$engine" || true
  fi
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

answers() { docker info >/dev/null 2>&1; }

# until_it ANSWERS SECONDS
until_it() {
  local deadline=$((SECONDS + $2))
  until "$1"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.5
  done
}

install() {
  apt-get install -qq --yes --no-install-recommends "$@" >/dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -qq --yes --no-install-recommends "$@" >/dev/null; }
}

start_engine() {
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    printf 'no Docker engine answers, and only root on Debian gets one here\n'
    exit 3
  fi
  command -v dockerd >/dev/null || install docker.io || { printf 'docker.io cannot be installed\n'; exit 3; }
  local mtu
  mtu=$(cat "/sys/class/net/$(ip route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p;q')/mtu")
  export DOCKER_HOST=unix://$work/docker.sock
  dockerd --host "$DOCKER_HOST" --data-root "$cache/docker" --exec-root "$work/exec" --pidfile "$work/pid" --mtu "$mtu" \
    >"$work/dockerd.log" 2>&1 &
  engine=$!
  until_it answers 60 || { tail -n 5 "$work/dockerd.log"; printf 'the Docker engine does not start\n'; exit 3; }
}

# `docker compose` of Debian 13, as a plugin of the client: Debian 12 has version 1 only, which knows no `up --wait`.
get_compose() {
  docker compose version >/dev/null 2>&1 && return
  local apt=$work/apt plugins=$work/docker-config/cli-plugins
  mkdir -p "$apt"/{lists,cache/archives}/partial "$plugins"
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n' >"$apt/sources.list"
  local options=(-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache")
  apt-get update -qq "${options[@]}" 2>/dev/null
  (cd "$apt" && apt-get download -qq "${options[@]}" docker-compose 2>/dev/null && dpkg-deb -x docker-compose_*.deb .)
  cp "$apt/usr/libexec/docker/cli-plugins/docker-compose" "$plugins/"
  export DOCKER_CONFIG=$work/docker-config
  docker compose version
}

answers || start_engine
get_compose || { printf 'Docker Compose 2 cannot be had\n'; exit 3; }
# Stand-ins are made of the jars of the demo.
node --input-type=module -e "
  import { cachedJars } from './dist/devstack/jar-cache.js';
  await cachedJars({ onProgress: (line) => console.error(line) });"
command -v debootstrap >/dev/null || install debootstrap || true
test/docker/stand-ins/make.sh
# The watcher of testcontainers removes what a killed process leaves; without its image there is none.
ryuk=$(sed -n 's|.*"\(testcontainers/ryuk:[^"]*\)".*|\1|p' node_modules/testcontainers/build/reaper/reaper.js)
docker image inspect "$ryuk" >/dev/null 2>&1 || timeout 60 docker pull --quiet "$ryuk" >/dev/null 2>&1 ||
  export TESTCONTAINERS_RYUK_DISABLED=true

vitest=(node node_modules/vitest/vitest.mjs run)
if $is_short; then
  "${vitest[@]}" --project docker-all
else
  TEST_LONG=1 "${vitest[@]}" --project docker-all
  SERVICES=docker "${vitest[@]}" --project integration
  SERVICES=docker "${vitest[@]}" --project slow-all shared-connections secured
fi
