import { hash } from 'node:crypto'
import type { JsonObject, JsonValue } from '../contract/index.ts'

/** The text of a record that its digest is made of, from the values of its fields; see RecordSummaries. */
export function toDigestText(values: Iterable<JsonValue | undefined>): string {
  let text = ''
  for (const value of values) {
    if (value === null || value === undefined) text += 'n'
    else {
      const written =
        typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value)
      text += `t${countCharacters(written)}:${written}`
    }
  }
  return text
}

/** Sums of digests, modulo 2^64: two halves in doubles are faster than a bigint per record. */
export class DigestSum {
  #high = 0
  #low = 0
  count = 0

  add(text: string): void {
    const digest = hash('md5', text, 'buffer')
    this.#low += digest.readUInt32BE(4)
    this.#high += digest.readUInt32BE(0)
    // 2^21 summands fit in the 53 bits of a double.
    if ((++this.count & 0xfffff) === 0) this.#carry()
  }

  get digest(): bigint {
    this.#carry()
    return (BigInt(this.#high) << 32n) | BigInt(this.#low)
  }

  #carry(): void {
    this.#high = (this.#high + Math.floor(this.#low / 2 ** 32)) % 2 ** 32
    this.#low %= 2 ** 32
  }
}

/** The values of these fields of a record; undefined for a field that it lacks. */
export function readFields(fields: readonly string[], record: JsonObject): Array<JsonValue | undefined> {
  return fields.map((name) => (Object.hasOwn(record, name) ? record[name] : undefined))
}

/** Code points, as databases count them. */
function countCharacters(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = text.charCodeAt(at + 1)
    if (next >= 0xdc00 && next <= 0xdfff) {
      count--
      at++
    }
  }
  return count
}
