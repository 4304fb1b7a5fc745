import { Writable } from 'node:stream';
import fc from 'fast-check';
import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { LOG_LEVELS } from '../../src/config/config.ts';
import type { LogLevel } from '../../src/config/config.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { createLogger, kafkaLogCreator } from '../../src/observe/log.ts';
import { Secret } from '../../src/core/secret.ts';

/** A logger and what it has written. */
async function capture(options: { level?: LogLevel; pretty?: boolean } = {}) {
  const { level = 'info', pretty = false } = options;
  let text = '';
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const logger = await createLogger({ level, pretty, destination });
  const lines = () =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { logger, text: () => text, lines };
}

describe('createLogger', () => {
  it('writes JSON: the level by name, the time as ISO 8601', async () => {
    const { logger, lines } = await capture();
    logger.info({ event: 'scan_done', records: 3 }, 'scan done');
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
        pid: process.pid,
        event: 'scan_done',
        records: 3,
        msg: 'scan done',
      },
    ]);
  });

  it.each(LOG_LEVELS)('at level %s writes that and what is graver', async (level) => {
    const { logger, lines } = await capture({ level });
    const levels = LOG_LEVELS.filter((name) => name !== 'silent');
    for (const name of levels) logger[name]('line');
    expect(lines().map((line) => line.level)).toEqual(
      LOG_LEVELS.slice(LOG_LEVELS.indexOf(level), -1),
    );
  });

  it('writes one readable line for people', async () => {
    const { logger, text } = await capture({ pretty: true });
    logger.warn({ resource: 'orders' }, 'no answer');
    expect(text()).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] .*WARN.*: .*no answer.*"orders".*\n$/);
  });

  it('writes of our errors the code, the text with its causes, and the context', async () => {
    const { logger, lines } = await capture();
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const context = { offset: 20 };
    const err = new CellarstreamError('API_UNREACHABLE', 'no answer', { cause, context });
    logger.error({ err }, 'try 1');
    expect(lines()[0]).toMatchObject({
      err: {
        type: 'CellarstreamError',
        code: 'API_UNREACHABLE',
        message: 'no answer: refused',
        context: { offset: 20 },
      },
    });
    expect(lines()[0]!.err).not.toHaveProperty('stack');
  });

  it('writes of other errors the stack, and none of the fields that libraries add', async () => {
    const { logger, text, lines } = await capture();
    const headers = ['authorization', 'Bearer planted'];
    const bug = Object.assign(new TypeError('no such thing'), { headers, request: { headers } });
    logger.error(bug);
    logger.error({ err: bug }, 'failed');
    expect(lines()[0]).toMatchObject({ err: { type: 'TypeError', message: 'no such thing' } });
    expect(lines()[1]!.err).toHaveProperty('stack', bug.stack);
    expect(text()).not.toContain('planted');
  });

  it.each([false, true])('shows no secret and no record (pretty: %s)', async (pretty) => {
    const { logger, text } = await capture({ pretty });
    const names = [
      ...['apiKey', 'password', 'token', 'accessToken', 'authorization', 'secret', 'hmacKey'],
      ...['record', 'before', 'after', 'raw', 'body', 'data'],
    ];
    for (const name of names) {
      logger.info({ [name]: 'planted' });
      logger.info({ request: { [name]: 'planted' } });
      logger.info({ request: { headers: { [name]: { deep: 'planted' } } } });
      logger.child({ [name]: 'planted' }).info('child');
    }
    logger.info({ sasl: { username: 'u', password: 'planted' }, key: new Secret('planted') });
    logger.info(
      new Secret('planted'),
      'secret %s %j',
      new Secret('planted'),
      new Secret('planted'),
    );
    expect(text().trim().split('\n').length).toBe(names.length * 4 + 2);
    expect(text()).not.toContain('planted');
    expect(text()).toContain('[redacted]');
  });
});

describe('kafkaLogCreator', () => {
  type Log = Record<string, unknown> & { message: unknown };

  /** What becomes of one line of kafkajs'. */
  async function bridge(label: string, log: Log, level: LogLevel = 'trace') {
    const { logger, text, lines } = await capture({ level });
    const entry = { namespace: 'Producer', level: logLevel[label as 'INFO'], label };
    const timestamp = '2025-01-31T08:00:00.000Z';
    kafkaLogCreator(logger)(logLevel.DEBUG)({
      ...entry,
      log: { timestamp, logger: 'kafkajs', ...(log as Log & { message: string }) },
    });
    return { text: text(), line: lines()[0] };
  }

  it.each([
    ['ERROR', 'error'],
    ['WARN', 'warn'],
    ['INFO', 'debug'],
    ['DEBUG', 'trace'],
    ['NEWS', 'error'],
  ])('makes %s %s', async (label, level) => {
    const { line } = await bridge(label, { message: 'Unsupported partition assigner' });
    expect(line).toMatchObject({
      level,
      component: 'kafkajs',
      namespace: 'Producer',
      msg: 'Unsupported partition assigner',
    });
  });

  it.each([
    ['Connection error: connect ECONNREFUSED 127.0.0.1:9092', undefined],
    ['Connection error: read ECONNRESET', undefined],
    ['Connection timeout', undefined],
    [
      'Failed to connect to seed broker, trying another broker from the list: Connection error: ' +
        'connect ECONNREFUSED 127.0.0.1:9092',
      undefined,
    ],
    ['Connection error: self-signed certificate', undefined],
    ['SASL PLAIN authentication failed: Authentication failed', undefined],
    ['Response SaslHandshake(key: 17)', 'The broker does not support the requested SASL mechanism'],
    ['The group is rebalancing, re-joining', 'The group is rebalancing, so a rejoin is needed'],
    ['Response Heartbeat(key: 12, version: 3)', 'The coordinator is not aware of this member'],
    [
      'Response AddPartitionsToTxn(key: 24, version: 1)',
      'The producer attempted to update a transaction while another concurrent operation on the ' +
        'same transaction was ongoing',
    ],
    ['Response CreateTopics(key: 19, version: 3)', 'Topic creation errors'],
    ['Response Metadata(key: 3, version: 6)', 'This server does not host this topic-partition'],
    ['Crash: KafkaJSNumberOfRetriesExceeded: connect ECONNREFUSED 127.0.0.1:9092', undefined],
    ['Crash: KafkaJSGroupCoordinatorNotFound: Failed to find group coordinator', undefined],
  ])('says only at debug: %s (%s)', async (message, error) => {
    for (const label of ['ERROR', 'WARN']) {
      const log = { message, ...(error && { error }) };
      expect((await bridge(label, log)).line).toMatchObject({ level: 'debug' });
      expect((await bridge(label, log, 'info')).text).toBe('');
    }
  });

  it.each([
    'Crash: KafkaJSNonRetriableError: Unsupported partition assigner',
    'Response Produce(key: 0, version: 7): The request included a message larger than the max',
  ])('leaves an error: %s', async (message) => {
    expect((await bridge('ERROR', { message }, 'info')).line).toMatchObject({ level: 'error' });
  });

  it('takes an Error for a message', async () => {
    const { line } = await bridge('ERROR', {
      message: new Error('broken'),
      error: new Error('why'),
    });
    expect(line).toMatchObject({ msg: 'broken: why' });
  });

  it('passes on where it happened, and no payload, stack or secret', async () => {
    const shown = { broker: 'a:9092', groupId: 'g', topic: 't', partition: 0, offset: '7' };
    const retry = { retryCount: 2, retryTime: 300 };
    const { line, text } = await bridge('DEBUG', {
      ...{ message: 'Response SaslAuthenticate', ...shown, ...retry },
      ...{ data: { authBytes: 'planted' }, payload: { data: 'planted' }, stack: 'planted' },
      ...{ sasl: { password: 'planted' }, topicPartitions: [{ topic: 'planted' }] },
    });
    expect(line).toMatchObject({ ...shown, ...retry });
    expect(text).not.toContain('planted');
    const odd = await bridge('DEBUG', {
      message: 'odd',
      broker: { password: 'planted', x: 'planted' },
    });
    expect(odd.text).not.toContain('planted');
  });

  it('never shows what is not one of the fields it knows', async () => {
    const names = fc.string({ minLength: 1 }).map((name) => `x${name}`);
    await fc.assert(
      fc.asyncProperty(fc.dictionary(names, fc.constant('planted')), async (fields) => {
        const { text } = await bridge('ERROR', { ...fields, message: 'failed' });
        expect(text).toContain('failed');
        expect(text).not.toContain('planted');
      }),
    );
  });

  it('keeps quiet while a real client finds no broker', async () => {
    const { logger, lines } = await capture({ level: 'debug' });
    const kafka = new Kafka({
      brokers: ['127.0.0.1:1'],
      sasl: { mechanism: 'plain', username: 'user', password: 'planted' },
      ssl: false,
      retry: { retries: 1, initialRetryTime: 1 },
      logLevel: logLevel.DEBUG,
      logCreator: kafkaLogCreator(logger),
    });
    await expect(kafka.admin().connect()).rejects.toThrow();
    expect(lines().length).toBeGreaterThan(0);
    expect(new Set(lines().map((line) => line.level))).toEqual(new Set(['debug']));
    expect(JSON.stringify(lines())).not.toContain('planted');
  });
});
