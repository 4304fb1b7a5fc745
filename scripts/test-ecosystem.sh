#!/usr/bin/env bash
# `npm run test:ecosystem`: programs of others that read the topics: Kafka Connect with Debezium's JDBC sink into PostgreSQL, Flink SQL, Kafka Streams, Java classes that are generated
# from the schemas, AsyncAPI's parser, confluent-kafka of Python and franz-go. Maven, npm, pip and go fetch what is not in the cache of the demo.
# Needs Java, Maven, Python 3.9 or newer, Go 1.26, and PostgreSQL's initdb, postgres and psql on the PATH (Debian: in /usr/lib/postgresql/*/bin).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${XDG_CACHE_HOME:-$HOME/.cache}/cellarstream/python
if [[ ! -e $venv/complete ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet -r examples/06-python/requirements.txt
  touch "$venv/complete"
fi
for folder in /usr/lib/postgresql/*/bin; do PATH=$PATH:$folder; done

PYTHON=$venv/bin/python node node_modules/vitest/vitest.mjs run --project ecosystem-all
