import { descriptionInWords } from '../description/in-words.ts';
import { readDescription } from '../description/read-description.ts';

/** `cellarstream describe FILE`: explains the API description in a file in words, or reports all its mistakes. */
export function describeCommand(file: string): void {
  process.stdout.write(`${descriptionInWords(readDescription(file)).join('\n')}\n`);
}
