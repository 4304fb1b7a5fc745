import pc from 'picocolors';
import { firstValueFrom, throwError, timeout } from 'rxjs';
import type { Observable } from 'rxjs';
import { openApi } from '../api.ts';
import { steadyScheduler } from '../clock.ts';
import { loadConfig } from '../config.ts';
import type { ConfigWith } from '../config.ts';
import { openLinks, topicsOf } from '../destination.ts';
import { CellarstreamError, describeError } from '../errors.ts';
import { createLogger, kafkaLogCreator } from '../log.ts';
import { quotas } from '../quotas.ts';
import { topicNames, valueSubject } from '../schemas/topics.ts';
import { inspectTopics } from '../sinks/kafka-topics.ts';
import { refuseUnsupported } from '../unsupported.ts';

/** What was found of one thing that the service needs. */
interface Finding {
  readonly what: string;
  readonly fine: boolean;
  readonly detail: string;
}

const PATIENCE_MS = 10_000;

/**
 * `cellarstream check`: tries once what `run` needs, changes nothing, and prints a table. Resolves to
 * whether all of it works.
 */
export async function checkCommand(): Promise<boolean> {
  let config: ConfigWith<'api' | 'kafka' | 'registry'> | undefined;
  const settings = await attempt('settings', () => {
    config = loadConfig({
      env: process.env,
      cwd: process.cwd(),
      needs: ['api', 'kafka', 'registry'],
    });
    refuseUnsupported(config);
    return Promise.resolve('all there');
  });
  const findings = [settings];
  if (config && settings.fine) {
    const [api, destination] = await Promise.all([checkApi(config), checkDestination(config)]);
    findings.push(...api, ...destination);
  }
  process.stdout.write(table(findings));
  return findings.every(({ fine }) => fine);
}

async function checkApi(config: ConfigWith<'api'>): Promise<Finding[]> {
  const scheduler = steadyScheduler;
  const quota = quotas({ config, scheduler });
  let last: unknown; // failures are tried again: the last one is the reason when patience is over
  const onRetry = ({ error }: { readonly error: unknown }) => {
    last = error;
  };
  const first = <T>(source: Observable<T>): Promise<T> => {
    last = new CellarstreamError('API_UNREACHABLE', `no answer within ${PATIENCE_MS / 1_000} s`);
    const impatient = timeout<T, Observable<never>>({
      first: PATIENCE_MS,
      with: () => throwError(() => last),
    });
    return firstValueFrom(source.pipe(impatient));
  };
  const api = openApi({ config: config.api, loginLimit: quota.login, scheduler, onRetry });
  try {
    const login = await attempt('login', async () => {
      const { lifeMs } = await first(api.tokens.token$);
      return `a token good for ${Math.round(lifeMs / 60_000)} min`;
    });
    if (!login.fine) return [login];
    const { poll } = quota.lanes('orders', false);
    const orders = await attempt('orders', async () => {
      const request = api.list('orders');
      const { pagination } = await first(request({ offset: 0, pageSize: 1 }, poll));
      return `${pagination.total_records} records`;
    });
    return [login, orders];
  } finally {
    await api.close();
  }
}

async function checkDestination(config: ConfigWith<'kafka' | 'registry'>): Promise<Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const { kafka, registry } = openLinks(config, { log, kafkaRetries: 2 });
  try {
    return await Promise.all([
      attempt('kafka', async () => {
        const { brokers, absent } = await inspectTopics(topicsOf(config, kafka));
        const topics =
          absent.length > 0 ? `run will make ${absent.join(', ')}` : 'all topics there';
        return `${brokers} broker${brokers === 1 ? '' : 's'}; ${topics}`;
      }),
      attempt('registry', async () => {
        const subject = valueSubject(topicNames(config.topics.prefix).records('orders'));
        const latest = await registry.latest(subject);
        return latest ? `${subject} has version ${latest.version}` : `${subject} is not there yet`;
      }),
    ]);
  } finally {
    await registry.close();
  }
}

async function attempt(what: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return { what, fine: true, detail: await work() };
  } catch (error) {
    return { what, fine: false, detail: describeError(error) };
  }
}

function table(findings: readonly Finding[]): string {
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const width = Math.max(...findings.map(({ what }) => what.length));
  return findings
    .map(({ what, fine, detail }) => {
      const mark = fine ? colors.green('ok  ') : colors.red('FAIL');
      return `${what.padEnd(width)}  ${mark}  ${detail}\n`;
    })
    .join('');
}
