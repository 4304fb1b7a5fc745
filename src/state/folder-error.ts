import { CellarstreamError } from '../core/errors.ts';

/** Error codes that mean a full disk: Node's names, and the numbers that lmdb reports. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 27]);
const SYSTEM = /^E[A-Z0-9]+$/;

/** Converts an error of the operating system to `STATE_FOLDER` with advice for the operator; returns other errors unchanged. */
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
