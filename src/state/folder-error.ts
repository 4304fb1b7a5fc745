import { CellarstreamError } from '../core/errors.ts';

/** errno as Node names it, or as lmdb numbers it. (lmdb calls a write that was cut short EIO.) */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 27]);
const SYSTEM = /^E[A-Z0-9]+$/;

/** An error of the operating system as one that says what to do; others as they are. */
export function folderError(folder: string, cause: unknown): unknown {
  if (!(cause instanceof Error) || cause instanceof CellarstreamError) return cause;
  const code: unknown = 'code' in cause ? cause.code : undefined;
  const isSystem = typeof code === 'number' ? code > 0 : SYSTEM.test(String(code));
  if (!isSystem) return cause;
  const message = FULL.has(code)
    ? `the disk of the state folder ${folder} is full: make room, or set STATE_DIR to another folder`
    : `the state folder ${folder} can't be read or written: check its disk, or set STATE_DIR to another folder`;
  return new CellarstreamError('STATE_FOLDER', message, { cause });
}
