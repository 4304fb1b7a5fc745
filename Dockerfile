FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm run build && find dist \( -name '*.d.ts' -o -name '*.map' -o -name .tsbuildinfo \) -delete

FROM node:22-slim
ENV NODE_ENV=production
# What was freed of buffers of this size on is the system's again at once.
ENV MALLOC_MMAP_THRESHOLD_=131072
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev && npm cache clean --force
COPY --from=build /app/dist dist
COPY LICENSE pom.xml ./
# A named volume that is mounted here takes over the owner.
RUN install -d -o node -g node /var/lib/cellarstream
ENV STATE_DIR=/var/lib/cellarstream
USER node
EXPOSE 9464
ENTRYPOINT ["node", "dist/cli.js"]
CMD ["run"]
