// Templates of requests: texts in which `{name}` is a variable.

const VARIABLE = /\{([a-z0-9_]+)\}/g;

/** Values of variables by name; undefined for a variable that is unset. */
export type Variables = Readonly<Record<string, string | number | undefined>>;

/** Query parameters or headers of an API's description, by name. Their values may contain variables. */
export type Parameters = Readonly<Record<string, string | number | boolean>>;

/** A JSON value in a description, such as a request body; its texts may contain variables. */
export type Json =
  string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Returns the names of all variables in the texts of a JSON value, in order of appearance. */
export function variablesIn(value: Json | Parameters | undefined): string[] {
  if (typeof value === 'string') return [...value.matchAll(VARIABLE)].map((found) => found[1]!);
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((each) => variablesIn(each));
}

/** Replaces the variables in a text by their values; undefined if one of the variables is unset. */
export function filled(
  template: string,
  variables: Variables,
  encode: (text: string) => string = (text) => text,
): string | undefined {
  let isComplete = true;
  const text = template.replace(VARIABLE, (_, name: string) => {
    const value = variables[name];
    if (value === undefined) isComplete = false;
    return encode(String(value));
  });
  return isComplete ? text : undefined;
}

/** Replaces the variables in parameters by their values. A parameter with an unset variable is omitted. */
export function filledParameters(
  parameters: Parameters,
  variables: Variables,
): [name: string, value: string][] {
  return Object.entries(parameters).flatMap(([name, template]): [string, string][] => {
    const value = filled(String(template), variables);
    return value === undefined ? [] : [[name, value]];
  });
}

/**
 * Replaces the variables in a JSON body by their values. Members and elements with an unset variable are omitted. A text that is a single
 * variable is replaced by the value itself, so a number stays a number.
 */
export function filledBody(body: Json, variables: Variables): Json | undefined {
  if (typeof body === 'string') {
    const only = /^\{([a-z0-9_]+)\}$/.exec(body)?.[1];
    return only === undefined ? filled(body, variables) : variables[only];
  }
  if (typeof body !== 'object' || body === null) return body;
  if (Array.isArray(body)) {
    return (body as readonly Json[])
      .map((each) => filledBody(each, variables))
      .filter((each) => each !== undefined);
  }
  return Object.fromEntries(
    Object.entries(body)
      .map(([name, each]) => [name, filledBody(each, variables)] as const)
      .filter((member): member is readonly [string, Json] => member[1] !== undefined),
  );
}
