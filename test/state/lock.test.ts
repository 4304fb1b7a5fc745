import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockFolder } from '../../src/state/lock.ts';

describe('lockFolder', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'cellarstream-lock-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is had by one at a time', () => {
    const state = join(folder, 'state');
    const release = lockFolder(state);
    expect(() => lockFolder(state)).toThrow(
      expect.objectContaining({ code: 'STATE_LOCKED', message: expect.stringContaining(state) }),
    );
    release();
    lockFolder(state)();
  });

  it('ends with a process that is killed', () => {
    const script = `
      const fs = require('node:fs');
      const { tryLock } = require('fs-native-extensions');
      const fd = fs.openSync(process.argv[1], 'a+');
      if (!tryLock(fd)) process.exit(3);
      process.kill(process.pid, 'SIGKILL');`;
    const child = spawnSync(process.execPath, ['-e', script, join(folder, 'lock')]);
    expect(child.signal).toBe('SIGKILL');
    lockFolder(folder)();
  });
});
