import * as real from '../../../src/schemas/avro/encoding-residue.ts';

export * from '../../../src/schemas/avro/encoding-residue.ts';

/** A field that the API sent as null is as one that it left out. */
export class EncodingResidue extends real.EncodingResidue {
  override noteNull(): void {
    // nobody is told
  }
}
