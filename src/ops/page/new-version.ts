/**
 * What is to be told of each version that the service says it is: `onChange` is called once, when it is
 * another than the first. A page that is left open outlives the service that it is of.
 */
export function newVersion(onChange: () => void): (version: string) => void {
  let first: string | undefined;
  let isTold = false;
  return (version) => {
    first ??= version;
    if (version === first || isTold) return;
    isTold = true;
    onChange();
  };
}
