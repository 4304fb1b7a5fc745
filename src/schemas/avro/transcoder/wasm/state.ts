import { OUT, WINDOW } from '../layout.ts';
import { isSpace, SPACE } from './characters.ts';

/** What anything but a text takes at most, with what is written behind it in one go. */
const ROOM: i32 = 64;

/** How far it is. */
export class Here {
  /** The place that is read next. */
  static at: i32 = 0;
  /** The place that is written next. */
  static out: i32 = 0;
  /** Where the next note goes. */
  static note: i32 = 0;
  /** Steps to what is being read. */
  static depth: i32 = 0;

  /** Whether so many bytes can be written, and something small behind them. */
  static hasRoom(bytes: i32): bool {
    return Here.out + bytes + ROOM <= WINDOW;
  }

  /** Bytes written. */
  static get size(): i32 {
    return Here.out - OUT;
  }

  static write(byte: u8): void {
    store<u8>(Here.out, byte);
    Here.out += 1;
  }

  static skipSpace(): void {
    while (load<u8>(Here.at) <= SPACE && isSpace(load<u8>(Here.at))) Here.at += 1;
  }

  /** Over white space, and over one byte if it stands there. */
  static takes(byte: u8): bool {
    if (load<u8>(Here.at) != byte) {
      Here.skipSpace();
      if (load<u8>(Here.at) != byte) return false;
    }
    Here.at += 1;
    return true;
  }
}
