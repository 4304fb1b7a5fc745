# Stand-in for apicurio/apicurio-registry: its distribution of Maven Central, configured by the same variables.
FROM cellarstream-java:17
COPY registry /deployments
RUN useradd --create-home --uid 1000 --shell /bin/bash jboss
USER jboss
EXPOSE 8080
CMD ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", "/deployments/JAR"]
