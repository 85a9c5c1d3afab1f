import { randomBytes } from 'node:crypto'
import type { Type } from 'avsc'
import { importPackage } from '../../../values/import-package.ts'

type Avsc = typeof import('avsc')

/** Avro object container files, in memory. */
export class AvroCodec {
  readonly #avsc: Avsc
  readonly #header: Type
  readonly #block: Type
  readonly #types = new Map<string, Type>()

  private constructor(avsc: Avsc) {
    this.#avsc = avsc
    const sync = { type: 'fixed', name: 'Sync', size: 16 } as const
    this.#header = avsc.Type.forSchema({
      type: 'record',
      name: 'org.apache.avro.file.Header',
      fields: [
        { name: 'magic', type: { type: 'fixed', name: 'Magic', size: 4 } },
        { name: 'meta', type: { type: 'map', values: 'bytes' } },
        { name: 'sync', type: sync },
      ],
    })
    this.#block = avsc.Type.forSchema({
      type: 'record',
      name: 'Block',
      fields: [
        { name: 'count', type: 'long' },
        { name: 'data', type: 'bytes' },
        { name: 'sync', type: sync },
      ],
    })
  }

  /** Loads the optional package. */
  static async load(): Promise<AvroCodec> {
    return new AvroCodec((await importPackage('avsc', 'Iceberg tables need', () => import('avsc'))).default)
  }

  /** `schema` is written to the file as it is: Iceberg reads its field ids from there. */
  encode(schema: object, rows: readonly object[], metadata: Readonly<Record<string, string>>): Buffer {
    const text = JSON.stringify(schema)
    const type = this.#typeOf(text)
    const sync = randomBytes(16)
    const entries = { 'avro.schema': text, 'avro.codec': 'null', ...metadata }
    const meta = Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, Buffer.from(value)]))
    const data = Buffer.concat(rows.map((row) => type.toBuffer(row)))
    return Buffer.concat([
      this.#header.toBuffer({ magic: MAGIC, meta, sync }),
      ...(rows.length === 0 ? [] : [this.#block.toBuffer({ count: rows.length, data, sync })]),
    ])
  }

  decode<Row>(bytes: Buffer): Row[] {
    const { value: header, offset: start } = this.#header.decode(bytes, 0) as Decoded<{ meta: Record<string, Buffer> }>
    const schema = header?.meta['avro.schema']
    if (header === undefined || schema === undefined) throw new Error('not an Avro file')
    const type = this.#typeOf(schema.toString())
    const rows: Row[] = []
    for (let at = start; at < bytes.length;) {
      const { value: block, offset } = this.#block.decode(bytes, at) as Decoded<{ count: number; data: Buffer }>
      if (block === undefined) throw new Error('the Avro file is cut off')
      at = offset
      for (let index = 0, within = 0; index < block.count; index++) {
        const { value, offset: end } = type.decode(block.data, within) as Decoded<Row>
        if (value === undefined) throw new Error('an Avro block is cut off')
        within = end
        rows.push(value)
      }
    }
    return rows
  }

  #typeOf(schema: string): Type {
    let type = this.#types.get(schema)
    if (type === undefined) this.#types.set(schema, (type = this.#avsc.Type.forSchema(JSON.parse(schema))))
    return type
  }
}

const MAGIC = Buffer.from('Obj\u0001', 'latin1')

interface Decoded<Value> {
  readonly value: Value | undefined
  readonly offset: number
}
