/** Reads the primitive types of Kafka's protocol. Truncated input throws a RangeError. */
export class WireReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get remaining(): number {
    return this.#bytes.length - this.#at
  }

  int8(): number {
    return this.raw(1).readInt8()
  }

  int16(): number {
    return this.raw(2).readInt16BE()
  }

  int32(): number {
    return this.raw(4).readInt32BE()
  }

  uint32(): number {
    return this.raw(4).readUInt32BE()
  }

  /** Every offset, timestamp and producer id here fits a double exactly. */
  int64(): number {
    return Number(this.raw(8).readBigInt64BE())
  }

  /** Also VARLONG: base 128, the lowest bits first, the sign in the lowest. */
  varint(): number {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.raw(1).readUInt8()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return Number((value >> 1n) ^ -(value & 1n))
    }
  }

  string(): string {
    return this.nullableString() ?? ''
  }

  nullableString(): string | null {
    const length = this.int16()
    return length < 0 ? null : this.raw(length).toString('utf8')
  }

  nullableBytes(): Buffer | null {
    const length = this.int32()
    return length < 0 ? null : this.raw(length)
  }

  varintBytes(): Buffer | null {
    const length = this.varint()
    return length < 0 ? null : this.raw(length)
  }

  array<Item>(item: () => Item): Item[] {
    return this.nullableArray(item) ?? []
  }

  nullableArray<Item>(item: () => Item): Item[] | null {
    const length = this.int32()
    return length < 0 ? null : this.#items(length, item)
  }

  varintArray<Item>(item: () => Item): Item[] {
    return this.#items(this.varint(), item)
  }

  raw(length: number): Buffer {
    if (length < 0 || length > this.remaining)
      throw new RangeError(`${length} bytes are expected, and ${this.remaining} are left.`)
    const bytes = this.#bytes.subarray(this.#at, this.#at + length)
    this.#at += length
    return bytes
  }

  #items<Item>(length: number, item: () => Item): Item[] {
    if (length > this.remaining) throw new RangeError(`${length} items are announced in ${this.remaining} bytes.`)
    return Array.from({ length }, item)
  }
}
