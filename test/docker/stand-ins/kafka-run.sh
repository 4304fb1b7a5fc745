#!/bin/bash
# Writes the variables KAFKA_<SETTING> as properties, formats the data folder and starts the broker.
# In names `_` stands for a dot, `__` for an underscore and `___` for a dash, as in the image of Apache.
set -euo pipefail
properties=/opt/kafka/config/server.properties
env | grep '^KAFKA_' | while IFS='=' read -r name value; do
  name=${name#KAFKA_}
  name=${name//___/-}
  name=${name//__/+}
  name=${name//_/.}
  name=${name//+/_}
  printf '%s=%s\n' "${name,,}" "$value"
done >"$properties"
grep -q '^log\.dirs=' "$properties" || echo 'log.dirs=/tmp/kraft-combined-logs' >>"$properties"
java=(java -Xmx512m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp '/opt/kafka/libs/*')
"${java[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn kafka.tools.StorageTool format --ignore-formatted \
  --cluster-id "${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}" --config "$properties"
exec "${java[@]}" kafka.Kafka "$properties"
