import { expect, it } from 'vitest';
import { downloadProgress } from '../../src/devstack/jar-cache.ts';

const log = `[INFO] Scanning for projects...
[INFO] Downloading from central: https://repo.example/org/a/1/a-1.pom
[INFO] Downloaded from central: https://repo.example/org/a/1/a-1.pom (512 B at 3.2 kB/s)
[INFO] Downloading from central: https://repo.example/org/a/1/a-1.jar
[INFO] Downloading from central: https://repo.example/org/b/1/b-1.jar
[INFO] Downloaded from central: https://repo.example/org/b/1/b-1.jar (1.5 MB at 9.9 MB/s)
`;

it('counts what has come and names what is on its way', () => {
  expect(downloadProgress(log, 3_400)).toBe(
    'fetching Kafka and the schema registry: 2 files, 1.5 MB, 3 s, now a-1.jar',
  );
});

it('tells no sum while Maven downloads nothing', () => {
  expect(downloadProgress('[INFO] Scanning for projects...\n', 1_000)).toBe(
    'fetching Kafka and the schema registry: 1 s',
  );
});

it('stays right over 1 GB and under 1 kB', () => {
  const line = (size: string) =>
    `Downloaded from mirror: https://repo.example/a.jar (${size} at 1 MB/s)\n`;
  expect(downloadProgress(line('1.5 GB') + line('9 B') + line('500 kB'), 0)).toContain('1500.5 MB');
});
