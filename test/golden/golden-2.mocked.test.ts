import { vi } from 'vitest';
import { golden } from './golden.ts';

// The version is in every event: without this, every release would change all hashes.
vi.mock('../../src/core/version.ts', () => ({
  VERSION: '0.0.0',
  USER_AGENT: 'cellarstream/0.0.0',
}));

golden(2, 2);
