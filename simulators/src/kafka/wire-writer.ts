/** Writes the primitive types of Kafka's protocol. */
export class WireWriter {
  readonly #parts: Buffer[] = []

  get bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  int8(value: number): this {
    return this.#fixed(1, (part) => part.writeInt8(value))
  }

  int16(value: number): this {
    return this.#fixed(2, (part) => part.writeInt16BE(value))
  }

  int32(value: number): this {
    return this.#fixed(4, (part) => part.writeInt32BE(value))
  }

  uint32(value: number): this {
    return this.#fixed(4, (part) => part.writeUInt32BE(value))
  }

  int64(value: number): this {
    return this.#fixed(8, (part) => part.writeBigInt64BE(BigInt(value)))
  }

  boolean(value: boolean): this {
    return this.int8(value ? 1 : 0)
  }

  /** Also VARLONG. */
  varint(value: number): this {
    const whole = BigInt(value)
    const bytes: number[] = []
    for (let rest = whole < 0n ? -2n * whole - 1n : 2n * whole; ; rest >>= 7n) {
      if (rest < 0x80n) return this.raw(Buffer.from([...bytes, Number(rest)]))
      bytes.push(Number(rest & 0x7fn) | 0x80)
    }
  }

  nullableString(value: string | null): this {
    if (value === null) return this.int16(-1)
    const bytes = Buffer.from(value, 'utf8')
    return this.int16(bytes.length).raw(bytes)
  }

  nullableBytes(value: Buffer | null): this {
    return value === null ? this.int32(-1) : this.int32(value.length).raw(value)
  }

  varintBytes(value: Buffer | null): this {
    return value === null ? this.varint(-1) : this.varint(value.length).raw(value)
  }

  nullableArray<Item>(items: readonly Item[] | null, write: (item: Item) => unknown): this {
    this.int32(items?.length ?? -1)
    items?.forEach((item) => write(item))
    return this
  }

  varintArray<Item>(items: readonly Item[], write: (item: Item) => unknown): this {
    this.varint(items.length)
    items.forEach((item) => write(item))
    return this
  }

  raw(bytes: Buffer): this {
    this.#parts.push(bytes)
    return this
  }

  #fixed(length: number, write: (part: Buffer) => void): this {
    const part = Buffer.allocUnsafe(length)
    write(part)
    return this.raw(part)
  }
}
