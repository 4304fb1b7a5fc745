import { readFileSync } from 'node:fs';
import { Ajv2019, type AnySchemaObject } from 'ajv/dist/2019.js';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

/**
 * The schema of the Compose Specification as docker-compose 1.29.2 ships it (PyPI, Apache-2.0). It
 * calls itself 2019-09 and names its parts with `id`, which that draft no longer knows.
 */
const schema = JSON.parse(
  readFileSync(new URL('./compose-spec.schema.json', import.meta.url), 'utf8'),
  (key, value: unknown) =>
    key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value,
) as AnySchemaObject;

interface Compose {
  services: Record<
    string,
    {
      image: string;
      ports?: string[];
      environment?: Record<string, string | number>;
      depends_on?: Record<string, { condition: string }>;
      healthcheck?: unknown;
      volumes?: string[];
    }
  >;
  volumes: Record<string, unknown>;
}

const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8');
const compose = parse(text, { merge: true }) as Compose;
const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);

it('is a Compose file', () => {
  expect(validate(compose) || validate.errors).toBe(true);
});

it('is a Compose file, and the one of a fleet is too', () => {
  const fleet = readFileSync(new URL('../../deploy/compose/fleet.yml', import.meta.url), 'utf8');
  expect(validate(parse(fleet, { merge: true })) || validate.errors).toBe(true);
});

it('is held against a schema that refuses unknown settings', () => {
  expect(validate({ services: { kafka: { image: 'a', health_check: {} } } })).toBe(false);
  expect(validate({ services: { kafka: { depends_on: { b: { condition: 'up' } } } } })).toBe(false);
});

it('waits for nothing that has no health check', () => {
  for (const service of Object.values(compose.services)) {
    for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(condition).toBe('service_healthy');
      expect(compose.services[name]?.healthcheck, name).toBeDefined();
    }
  }
  expect(Object.keys(compose.services.service?.depends_on ?? {})).toEqual([
    'kafka',
    'registry',
    'sandbox',
  ]);
});

it('opens ports on loopback only', () => {
  for (const service of Object.values(compose.services)) {
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  }
});

it('names every port in its first lines, and serves the endpoints of the service on theirs', () => {
  const ports = Object.values(compose.services).flatMap(({ ports = [] }) => ports);
  const listed = [...text.slice(0, text.indexOf('services:')).matchAll(/\b(\d{4})\b/g)];
  expect(ports.map((port) => port.split(':')[1]).sort()).toEqual(listed.map(([, n]) => n).sort());
  const { service } = compose.services;
  expect(service?.ports).toEqual(['127.0.0.1:9464:9464']);
  expect(service?.environment?.HTTP_HOST).toBe('0.0.0.0');
  expect(JSON.stringify(service?.healthcheck)).toContain('http://127.0.0.1:9464/healthz');
});

it('declares every volume that is mounted', () => {
  const mounted = Object.values(compose.services).flatMap(({ volumes }) => volumes ?? []);
  expect(mounted.map((mount) => mount.split(':')[0]).sort()).toEqual(
    Object.keys(compose.volumes).sort(),
  );
});

it('runs the versions that pom.xml names', () => {
  const pom = readFileSync(new URL('../../pom.xml', import.meta.url), 'utf8');
  const version = (name: string) => new RegExp(`<${name}\\.version>(.+?)<`).exec(pom)?.[1];
  expect(compose.services.kafka?.image).toBe(`apache/kafka:${version('kafka')!}`);
  const registry = version('apicurio')!;
  expect(compose.services.registry?.image).toBe(`apicurio/apicurio-registry:${registry}`);
  expect(compose.services['registry-ui']?.image).toBe(`apicurio/apicurio-registry-ui:${registry}`);
});
