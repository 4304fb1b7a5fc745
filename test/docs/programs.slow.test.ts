import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { codeBlocks, docExamples, TEXTS } from './code-blocks.ts';
import { complaints } from './compile-blocks.ts';
import { blocks, text } from './texts.ts';

const BLOCKS = TEXTS.flatMap((file) => codeBlocks(file));
const written = (...languages: string[]) =>
  BLOCKS.filter(({ language }) => languages.includes(language));

/** A text with a fence of this language. */
const fenced = (language: string, code: string, remark = '') =>
  codeBlocks('text.md', `# A\n\n${remark}\`\`\`${language}\n${code}\n\`\`\`\n`);

describe('the programs and fragments in the texts', () => {
  it('are found, every one of them', () => {
    expect(written('ts').some(({ file }) => file === 'README.md')).toBe(true);
    for (const file of TEXTS) {
      const fences = text(file).match(/^```\S+$/gm) ?? [];
      expect(codeBlocks(file)).toHaveLength(fences.length);
      expect(blocks(text(file), 'ts').join('')).toBe(
        written('ts')
          .filter((block) => block.file === file)
          .map(({ code }) => code)
          .join(''),
      );
    }
  });

  it('compile against the package', { timeout: 60_000 }, () => {
    expect(complaints(written('ts', 'typescript', 'js', 'javascript'))).toEqual([]);
  });

  it('compile in doc comments, too', { timeout: 60_000 }, () => {
    expect(complaints(docExamples())).toEqual([]);
  });

  it.each(written('sh').map((block) => [`${block.file}:${block.line}`, block] as const))(
    'are commands that a shell can read: %s',
    (_, { code }) => {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: code, encoding: 'utf8' });
      expect([status, stderr]).toEqual([0, '']);
    },
  );

  it('are Python, where they say so', () => {
    for (const { file, line, code } of written('python')) {
      const { status, stderr } = spawnSync('python3', ['-c', PARSE], {
        input: code,
        encoding: 'utf8',
      });
      expect([`${file}:${line}`, status, stderr]).toEqual([`${file}:${line}`, 0, '']);
    }
  });
});

const PARSE = 'import ast, sys; ast.parse(sys.stdin.read())';

describe('a block that is wrong', { timeout: 60_000 }, () => {
  const wrong = [
    ...fenced('ts', "import { replya } from 'cellarstream/consume';"),
    ...fenced('ts', '\nconst n: number = name;', '<!-- given: declare const name: string; -->\n'),
    ...fenced('js', 'undeclared();'),
    ...fenced('ts', 'const a = 1;'),
    ...fenced('ts', 'a + 1;'), // of another block
  ];

  it('is told by its line', () => {
    expect(complaints(wrong)).toEqual([
      expect.stringMatching(/^text\.md:4: .*replya/),
      "text.md:6: Type 'string' is not assignable to type 'number'.",
      "text.md:4: Cannot find name 'undeclared'.",
      "text.md:4: Cannot find name 'a'.",
    ]);
  });
});
