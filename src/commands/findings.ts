import { describeError } from '../core/errors.ts';

export interface Finding {
  readonly what: string;
  readonly fine: boolean;
  /** Whether the finding is a warning: the checked thing works but is inadvisable. Default false. */
  readonly isUnwise?: boolean;
  readonly detail: string;
}

/** Runs one check and returns its finding: a success with the text that the check returns, or a failure with the error's text. */
export async function tryCheck(
  what: string,
  work: () => string | Promise<string>,
): Promise<Finding> {
  try {
    return { what, fine: true, detail: await work() };
  } catch (error) {
    return { what, fine: false, detail: describeError(error) };
  }
}
