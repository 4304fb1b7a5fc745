import { expect, it } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { ErrorCode } from '../../src/core/errors.ts';
import { serviceOf } from '../../src/pipeline/list-task.ts';

it.each<[ErrorCode, string]>([
  ['API_STATUS', 'orders'], // a cursor that is refused again and again
  ['API_UNREACHABLE', 'orders'],
  ['QUOTA_EXCEEDED', 'orders'],
  ['KAFKA_UNREACHABLE', 'kafka'],
  ['COMMIT_FAILED', 'kafka'],
  ['REGISTRY_UNREACHABLE', 'registry'],
  ['STATE_FOLDER', 'state folder'],
])('a list that starts again after %s is reported as waiting for %s', (code, what) => {
  expect(serviceOf(new CellarstreamError(code, 'failed'), 'orders')).toBe(what);
});
