# Stand-in for apache/kafka: the same jars, user, ports and variables (KAFKA_<SETTING>, CLUSTER_ID).
FROM cellarstream-java:17
COPY kafka /opt/kafka/libs
COPY kafka-run.sh /etc/kafka/docker/run
COPY kafka-broker-api-versions.sh /opt/kafka/bin/
RUN useradd --create-home --uid 1000 --shell /bin/bash appuser && \
  install -d -o appuser -g appuser /var/lib/kafka/data /opt/kafka/config
USER appuser
EXPOSE 9092
VOLUME /var/lib/kafka/data
CMD ["/etc/kafka/docker/run"]
