# Stand-in for node:22-slim: Debian with the node and npm that npm's packages of these names bring.
FROM cellarstream-debian:12
COPY node_modules/node/bin/node /usr/local/bin/node
COPY node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && \
  ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx && \
  useradd --create-home --uid 1000 --shell /bin/bash node
CMD ["node"]
