import { NEVER } from 'rxjs';
import { expectTypeOf, it } from 'vitest';
import { isRetryable } from '../../src/core/errors.ts';
import { CellarstreamError, loadConfig, run } from '../../src/index.ts';
import type { ApiConfig, ErrorCode, KafkaConfig, RegistryConfig, Secret } from '../../src/index.ts';

const from = { env: {}, cwd: '.' };

it('loadConfig has the groups that were needed, and only those for sure', () => {
  const all = loadConfig({ ...from, needs: ['api', 'kafka', 'registry'] });
  expectTypeOf(all.api).toEqualTypeOf<ApiConfig>();
  expectTypeOf(all.kafka).toEqualTypeOf<KafkaConfig>();
  expectTypeOf(all.registry).toEqualTypeOf<RegistryConfig>();

  const api = loadConfig({ ...from, needs: ['api'] });
  expectTypeOf(api.api).toEqualTypeOf<ApiConfig>();
  expectTypeOf(api.kafka).toEqualTypeOf<KafkaConfig | undefined>();

  const none = loadConfig(from);
  expectTypeOf(none.api).toEqualTypeOf<ApiConfig | undefined>();
  // @ts-expect-error there is no such group
  loadConfig({ ...from, needs: ['sandbox'] });
});

it('a secret is no text, and settings are read-only', () => {
  const { api } = loadConfig({ ...from, needs: ['api'] });
  expectTypeOf(api.credentials.api_key).toEqualTypeOf<Secret | undefined>();
  expectTypeOf(api.credentials.api_key).not.toExtend<string>();
  // @ts-expect-error read-only
  api.baseUrl = 'http://127.0.0.1';
});

it('run takes a config in which nothing it needs is missing', () => {
  const config = loadConfig({ ...from, needs: ['api', 'kafka', 'registry'] });
  expectTypeOf(run({ config, stop$: NEVER })).toEqualTypeOf<Promise<void>>();
  // @ts-expect-error without Kafka there is nowhere to publish
  void run({ config: loadConfig({ ...from, needs: ['api'] }), stop$: NEVER });
  // @ts-expect-error a service has to be stoppable
  void run({ config });
});

it('an error has one of the codes', () => {
  const error = new CellarstreamError('FENCED', 'another instance took over');
  expectTypeOf(error.code).toEqualTypeOf<ErrorCode>();
  expectTypeOf<ErrorCode>().not.toEqualTypeOf<string>();
  expectTypeOf<'API_KEY_REJECTED' | 'FENCED' | 'SETTINGS'>().toExtend<ErrorCode>();
  // @ts-expect-error no such code
  new CellarstreamError('OOPS', 'text');
  // @ts-expect-error no such code, so never true
  if (error.code === 'OOPS') throw error;
  expectTypeOf(isRetryable).parameter(0).toBeUnknown();
});
