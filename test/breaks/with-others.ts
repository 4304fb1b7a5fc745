/** An object with some of its members replaced; the others are its own, and as live as they were. */
export function withOthers<T extends object>(object: T, others: Partial<T>): T {
  return new Proxy(object, {
    get: (_, name) => {
      const from = Object.hasOwn(others, name) ? others : object;
      const value: unknown = Reflect.get(from, name);
      return typeof value === 'function' ? (value.bind(from) as unknown) : value;
    },
  });
}
