import { lastValueFrom } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError } from '../../src/core/errors.ts';

/** The error that a stream ends with; rejects when it is none of ours, or there is none. */
export async function failureOf(source: Observable<unknown>): Promise<CellarstreamError> {
  try {
    await lastValueFrom(source, { defaultValue: undefined });
  } catch (error) {
    if (error instanceof CellarstreamError) return error;
    throw error;
  }
  throw new Error('it completed');
}
