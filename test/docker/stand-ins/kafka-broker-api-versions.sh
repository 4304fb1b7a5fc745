#!/bin/bash
# kafka-broker-api-versions.sh --bootstrap-server HOST:PORT: succeeds where something listens there. Apache's asks the broker.
IFS=: read -r host port <<<"$2"
exec 3<>"/dev/tcp/$host/$port"
