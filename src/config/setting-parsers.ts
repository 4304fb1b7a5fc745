import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { readProxy } from '../core/proxies.ts';
import { Secret } from '../core/secret.ts';
import { pointerNames } from '../schemas/json/json.ts';

// Zod parsers for each kind of setting. They convert the text of a setting into its value, or report advice that follows the setting's name.

/**
 * Describes for each parser which texts it accepts, as a phrase such as `a whole number from 1 to 100`. docs/settings.md contains the
 * phrases.
 */
export const ACCEPTED = z.registry<{ readonly phrase: string }>();

/**
 * A field of a list's records: the list's name, and a path of field names. The path contains no array indexes: where it meets an array, it
 * means the field of every element.
 */
export interface FieldPointer {
  readonly resource: string;
  readonly path: readonly string[];
}

export const text = z.string();
export const secret = secretText(text);

export const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) =>
  text.toLowerCase().pipe(z.enum(values, { error: `must be one of ${values.join(', ')}` }));

export const integer = (least: number, most: number, suffix = '') => {
  const phrase = `a whole number from ${least} to ${most}${suffix}`;
  return text
    .regex(/^\d{1,15}$/, `must be ${phrase}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be ${phrase}`)
    .register(ACCEPTED, { phrase });
};

/** Longest delay of Node's timers, in ms. A timer with a longer delay would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Returns a parser of durations in ms, from `least` to `most`. */
export const milliseconds = (least: number, most = LONGEST_TIMER_MS) =>
  integer(least, most, ' milliseconds').register(ACCEPTED, {
    phrase: `in milliseconds, ${most === LONGEST_TIMER_MS ? `${least} or more` : `${least} to ${most}`}`,
  });

export const percent = text
  .regex(/^(100|\d{1,2}(\.\d{1,6})?)$/, 'must be a number from 0 to 100, without a percent sign')
  .transform(Number)
  .register(ACCEPTED, { phrase: 'a number from 0 to 100, without a percent sign' });

/** Returns a parser of a name that becomes part of names of topics, files or transactional ids. `longest`: maximum number of characters. */
export const name = (longest: number, pattern = /^[\w.-]+$/) => {
  const phrase = `1 to ${longest} letters, digits, dots, hyphens or underscores`;
  return text
    .refine((value) => value.length <= longest && pattern.test(value), `must be ${phrase}`)
    .register(ACCEPTED, { phrase });
};

export const hostName = text.regex(
  /^[\w.:-]+$/,
  'must be a host name or an IP address, without a port or brackets',
);

/** Splits text at commas; empty and repeated items are left out. */
export function itemsOf(list: string): string[] {
  const all = list.split(',').map((item) => item.trim());
  return [...new Set(all.filter((item) => item !== ''))];
}

const list = text.transform(itemsOf);
const items = (isValid: (item: string) => boolean, advice: string) =>
  list.refine((all) => all.length > 0 && all.every(isValid), advice);

export const fieldNames = items(() => true, 'must be names of fields, separated by commas');

export const brokers = items((item) => {
  const [, port] = /^[\w.-]+:(\d{1,5})$/.exec(item) ?? [];
  return Number(port) >= 1 && Number(port) <= 65_535;
}, 'must be host:port of one or more brokers, separated by commas, without a protocol');

// Each of the following three parsers takes the names of all lists of the API.

export const resources = (lists: readonly string[]) =>
  list.transform((all, context): string[] => {
    const unknown = all.filter((item) => !lists.includes(item));
    if (unknown.length === 0 && all.length > 0) return all;
    const which = unknown.map((item) => JSON.stringify(item.slice(0, 40))).join(', ') || 'nothing';
    context.addIssue(
      `contains ${which}, but must contain names of lists, separated by commas: ${lists.join(', ')}`,
    );
    return z.NEVER;
  });

/**
 * Syntax of a field: a list's name and field names, joined by dots. Rejects spellings that would silently match no field, such as array
 * indexes or a space next to a dot.
 */
const FIELD = /^[^.]+(\.(?!\s|\d+(\.|$))[^.[\]/*]+(?<!\s))+$/;

/**
 * Returns a parser of settings that name fields of `lists`, separated by commas. The error text does not quote the items, since one may be
 * a secret pasted into `PII_HMAC` by mistake.
 */
export const fields = (lists: readonly string[]) =>
  items(
    (item) => FIELD.test(item) && lists.includes(item.split('.')[0]!),
    `must be fields such as ${fieldExamples(lists)}, separated by commas ` +
      `(a path means every element of an array: no indexes, and no [ ] / *); the first word is one of ${lists.join(', ')}`,
  ).transform((all) =>
    all.map((item): FieldPointer => {
      const [resource, ...path] = item.split('.');
      return { resource: resource!, path };
    }),
  );

/** Returns two examples of the syntax of {@link fields}. `quote` is put around each of them. */
export function fieldExamples([list]: readonly string[], quote = ''): string {
  return `${quote}${list}.email${quote} or ${quote}${list}.addresses.street${quote}`;
}

/**
 * Syntax of a field: a list's name, a colon and a JSON Pointer. Rejects spellings that would silently match no field, such as array indexes
 * or a space next to a slash.
 */
const POINTER = /^([^:]+):((?:\/(?!\s|(?:\d+|-)(?:\/|$))(?:[^~/[\]*]|~[01])+(?<!\s))+)$/;

export const pointers = (lists: readonly string[]) =>
  items(
    (item) => lists.includes(POINTER.exec(item)?.[1] ?? ''),
    `must be JSON Pointers such as ${pointerExamples(lists)}, separated by commas ` +
      `(a path means every element of an array: no indexes, and no [ ] *); the word before the colon is one of ${lists.join(', ')}`,
  ).transform((all) =>
    all.map((item): FieldPointer => {
      const [, resource, pointer] = POINTER.exec(item)!;
      return { resource: resource!, path: pointerNames(pointer!) };
    }),
  );

/** Returns two examples of what {@link pointers} parses: `orders:/image_url or orders:/images/url`. `quote` is put around each of them. */
export function pointerExamples(lists: readonly string[], quote = ''): string {
  const list = lists.at(-1);
  return `${quote}${list}:/image_url${quote} or ${quote}${list}:/images/url${quote}`;
}

export const httpAddress = ({ isQueryAllowed = false } = {}) =>
  text.transform((value, context): string => {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
      context.addIssue('must be an http or https address, such as https://host.example');
    } else if (url.username || url.password) {
      context.addIssue('must not hold a user or a password: they have settings of their own');
    } else if (url.hash || (url.search && !isQueryAllowed)) {
      const parts = isQueryAllowed ? 'a fragment (#)' : 'a query (?) and a fragment (#)';
      context.addIssue(`must be an address without ${parts}`);
    } else return url.href;
    return z.NEVER;
  });

export const withoutSlash = (url: string) => url.replace(/\/+$/, '');

export const proxy = text.transform((value, context) => {
  const server = readProxy(value);
  if (server) return server;
  context.addIssue(
    'must be the address of an HTTP proxy, such as http://proxy.example:3128 or http://user:password@proxy.example:3128 ' +
      '(write special characters of a password as %XX; SOCKS proxies are not supported)',
  );
  return z.NEVER;
});

export const certificates = text.refine(
  holdsCertificates,
  'must name a file with certificates in PEM form, each of them complete',
);

/**
 * Whether the text contains at least one PEM certificate and every certificate in it is valid. Node would silently ignore an invalid
 * certificate.
 */
function holdsCertificates(pem: string): boolean {
  const [, ...parts] = pem.split('-----BEGIN CERTIFICATE-----');
  try {
    for (const part of parts) new X509Certificate(`-----BEGIN CERTIFICATE-----${part}`);
    return parts.length > 0;
  } catch {
    return false;
  }
}

export const privateKey = secretText(
  text.regex(
    /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^]+-----END /,
    'must name a PEM file with a private key (to extract it from a PKCS #12 file: openssl pkcs12 -in FILE -nocerts)',
  ),
);

/** Parser of the key of the HMAC. A key of fewer than 16 characters could be guessed, which would reveal the hidden values. */
export const hmacKey = secretText(
  // Empty text is accepted here: `settingTexts` reports an empty file.
  text.regex(/^(.{16,})?$/s, 'must be 16 characters or more, and random'),
);

/** Parser of SASL extensions (RFC 7628, section 3.1), separated by commas: names of letters only, values of printable ASCII characters. */
export const saslExtensions = items(
  (item) => /^(?!auth=)[A-Za-z]+=[\x20-\x7e]+$/.test(item),
  'must be name=value pairs separated by commas, with names of letters alone, such as logicalCluster=lkc-1,identityPoolId=pool-2',
).transform((all): Readonly<Record<string, string>> =>
  Object.fromEntries(
    all.map((item) => {
      const at = item.indexOf('=');
      return [item.slice(0, at), item.slice(at + 1)];
    }),
  ),
);

/** Parser of HTTP header fields: `Name: value` or `Name=value`, separated by commas or line ends. Values may be credentials. */
export const headers = text.transform((value, context): Readonly<Record<string, Secret>> => {
  const lines = value.split(/[,\n]/).filter((line) => line.trim() !== '');
  const found = lines.flatMap((line): [string, Secret][] => {
    const [, header, content] =
      /^\s*([!#$%&'*+.^`|~\w-]+)\s*[:=]\s*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\s*$/.exec(
        line,
      ) ?? [];
    return header === undefined ? [] : [[header.toLowerCase(), new Secret(content!)]];
  });
  if (found.length === lines.length && found.length > 0) return Object.fromEntries(found);
  context.addIssue(
    'must be one or more HTTP headers, separated by commas, such as "X-Tenant: wines, X-Region: eu"',
  );
  return z.NEVER;
});

/** Parsers of ISO 8601 date-times with a time zone: one for times without seconds, one for times with seconds. */
const times = [-1, null].map((precision) => z.iso.datetime({ offset: true, precision }));

/** Parser of an ISO 8601 date, or a date-time with a time zone. Returns epoch ms; for a date, the beginning of that day in UTC. */
export const isoInstant = z
  .union([z.iso.date(), ...times], {
    error:
      'must be an ISO 8601 date or time with its zone, such as 2025-01-31 or 2025-01-31T08:00Z',
  })
  .transform((value) => Date.parse(value));

function secretText<T extends z.ZodType<string>>(parser: T) {
  return parser.transform((value) => new Secret(value));
}
