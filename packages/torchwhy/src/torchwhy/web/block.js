// @ts-check
// The inverse of page/encoding.py: a deflated block of a header and columns of unsigned integers.

/** @typedef {new (length: number) => (Uint8Array | Uint32Array | Float64Array)} Numbers */

export class Block {
  /** @param {Uint8Array} bytes inflated */
  constructor(bytes) {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    /** @type {any} */
    this.header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    this.bytes = bytes.subarray(4 + length);
  }

  /**
   * @template {Uint8Array | Uint32Array | Float64Array} T
   * @param {string} name
   * @param {new (length: number) => T} Type what holds the integers; those above 2^32 need Float64Array
   * @returns {T}
   */
  column(name, Type) {
    const [how, offset, size, count] = this.header.columns[name];
    const bytes = this.bytes.subarray(offset, offset + size);
    const out = new Type(count);
    if (how === "varint") readVarint(bytes, out);
    else readPlanes(bytes, out);
    return out;
  }

  /** @param {string} name */
  text(name) {
    const [, offset, size] = this.header.columns[name];
    return new TextDecoder().decode(this.bytes.subarray(offset, offset + size));
  }
}

/**
 * @param {string} base64
 * @returns {Promise<Block>}
 */
export async function readBlock(base64) {
  const packed = fromBase64(base64);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Block(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/**
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
function fromBase64(text) {
  const quick = /** @type {any} */ (Uint8Array).fromBase64;
  if (quick) return quick.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @param {Uint8Array | Uint32Array | Float64Array} out
 */
function readVarint(bytes, out) {
  let place = 0;
  for (let i = 0; i < out.length; i++) {
    let value = 0;
    let scale = 1;
    let byte = 0;
    do {
      byte = bytes[place++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    out[i] = value;
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {Uint8Array | Uint32Array | Float64Array} out
 */
function readPlanes(bytes, out) {
  const count = out.length;
  let scale = 1;
  for (let first = 0; first < bytes.length; first += count) {
    for (let i = 0; i < count; i++) out[i] += bytes[first + i] * scale;
    scale *= 256;
  }
}

/**
 * Undo zigzag, and add up: in place.
 * @param {Float64Array} values
 */
export function addUpSigned(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    const one = values[i];
    sum += one % 2 ? -(one + 1) / 2 : one / 2;
    values[i] = sum;
  }
  return values;
}

/**
 * Add up in place.
 * @template {Uint32Array | Float64Array} T
 * @param {T} values
 * @returns {T}
 */
export function addUp(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) values[i] = sum += values[i];
  return values;
}

/**
 * Undo zigzag in place.
 * @param {Float64Array} values
 */
export function signed(values) {
  for (let i = 0; i < values.length; i++) values[i] = values[i] % 2 ? -(values[i] + 1) / 2 : values[i] / 2;
  return values;
}
