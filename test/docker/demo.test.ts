import { expect, it, onTestFinished, vi } from 'vitest';
import { runCli } from '../integration/support/cli.ts';
import { docker } from './docker.ts';

const { DOCKER_HOST = '', TESTCONTAINERS_RYUK_DISABLED = '' } = process.env;
const containers = () => docker('ps', '--all', '--format', '{{.ID}} {{.Image}} {{.Ports}}');

it('runs the demo in containers at the documented ports of loopback, and leaves none behind', async () => {
  const before = await containers();
  const demo = runCli(['demo', '--orders', '200'], {
    SERVICES: 'docker',
    DOCKER_HOST,
    ...(TESTCONTAINERS_RYUK_DISABLED && { TESTCONTAINERS_RYUK_DISABLED }),
  });
  onTestFinished(async () => void (await demo.end('SIGINT')));
  await vi.waitFor(() => expect(demo.stdout().split('\n').length).toBeGreaterThan(3), {
    timeout: 120_000,
  });
  const running = await containers();
  expect(running).toContain('apache/kafka:4.1.1 127.0.0.1:9092->9092/tcp');
  expect(running).toContain('apicurio/apicurio-registry:3.0.9 127.0.0.1:8081->8080/tcp');
  expect(demo.stderr()).toContain('Kafka 127.0.0.1:9092  registry http://127.0.0.1:8081/');
  expect(await demo.end('SIGINT')).toBe(0);
  expect(await containers()).toBe(before);
});
