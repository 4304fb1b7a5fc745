#!/usr/bin/env bash
# make.sh: makes each image of docker-compose.yml and the Dockerfile that the Docker engine neither has nor can pull, from packages of
# Debian, npm and Maven. A stand-in has the image's name; `docker image rm` removes it. Needs root, debootstrap, npm and the jars
# that the demo has fetched.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
PULL_SECONDS=60

version_of() { sed -n "s|.*<$1.version>\(.*\)</.*|\1|p" "$root/pom.xml"; }
kafka_version=$(version_of kafka)
registry_version=$(version_of apicurio)
node=node:22-slim
kafka=apache/kafka:$kafka_version
registry=apicurio/apicurio-registry:$registry_version
jars=${XDG_CACHE_HOME:-$HOME/.cache}/cellarstream/kafka-$kafka_version-apicurio-$registry_version

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

has() { docker image inspect "$1" >/dev/null 2>&1; }

# image NAME FILE FOLDER...: builds a stand-in with these files.
image() {
  local name=$1 file=$2 context
  shift 2
  context=$(mktemp -d -p "$work")
  cp "$here/$file" "$context/Dockerfile"
  local each
  for each in "$@"; do cp -r "$each" "$context/"; done
  [[ $file != registry* ]] || sed -i "s|JAR|$(basename "$registry_jar")|" "$context/Dockerfile"
  printf '== stand-in for %s\n' "$name"
  docker build --quiet --label cellarstream.stand-in=true --tag "$name" "$context" >"$work/build.log" 2>&1 ||
    { cat "$work/build.log"; return 1; }
}

missing=()
for name in "$node" "$kafka" "$registry"; do
  has "$name" || timeout "$PULL_SECONDS" docker pull --quiet "$name" >/dev/null 2>&1 || missing+=("$name")
done
((${#missing[@]} > 0)) || exit 0

if ! has cellarstream-debian:12; then
  printf '== Debian\n'
  debootstrap --variant=minbase --include=ca-certificates bookworm "$work/debian" >"$work/debootstrap.log" ||
    { tail -n 5 "$work/debootstrap.log"; exit 1; }
  # This machine's, as a proxy of registries may have a certificate of its own.
  cp /etc/ssl/certs/ca-certificates.crt "$work/debian/etc/ssl/certs/"
  tar -C "$work/debian" -c . | docker import \
    --change 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' - cellarstream-debian:12 >/dev/null
fi
has cellarstream-java:17 || image cellarstream-java:17 java.Dockerfile

for name in "${missing[@]}"; do
  case $name in
    "$node")
      npm install --prefix "$work" --no-save --no-audit --silent node@22 npm@10
      image "$node" node.Dockerfile "$work/node_modules"
      ;;
    "$kafka") image "$kafka" kafka.Dockerfile "$jars/kafka" "$here/kafka-run.sh" "$here/kafka-broker-api-versions.sh" ;;
    "$registry")
      for registry_jar in "$jars/registry/quarkus-run.jar" "$jars"/registry/*-runner.jar; do [[ ! -e $registry_jar ]] || break; done
      image "$registry" registry.Dockerfile "$jars/registry"
      ;;
  esac
done
