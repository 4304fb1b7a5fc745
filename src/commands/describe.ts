import { descriptionInWords } from '../description/in-words.ts';
import { readDescription } from '../description/read-description.ts';

/** `cellarstream describe FILE`: prints what was understood of a description, or all its mistakes. */
export function describeCommand(file: string): void {
  process.stdout.write(`${descriptionInWords(readDescription(file)).join('\n')}\n`);
}
