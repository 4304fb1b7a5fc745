import * as real from '../../../src/schemas/avro/residue.ts';

export * from '../../../src/schemas/avro/residue.ts';

/** A field that the API sent as null is as one that it left out. */
export class Residue extends real.Residue {
  override noteNull(): void {
    // nobody is told
  }
}
