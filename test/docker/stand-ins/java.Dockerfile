# What the stand-ins of both servers begin with.
FROM cellarstream-debian:12
RUN apt-get update -qq && apt-get install -qq --yes --no-install-recommends openjdk-17-jre-headless >/dev/null && rm -rf /var/lib/apt/lists/*
