import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { ParquetWriter, fileWriter } from 'hyparquet-writer'
import { fieldsOf } from '../../../dist/destinations/lake/columns.js'
import { createLake } from '../../../dist/destinations/lake/destination.js'
import { toParquetSchema } from '../../../dist/destinations/lake/parquet/schema.js'

const TYPES = { balance: 'double', active: 'boolean', created_at: 'timestamp', updated_at: 'timestamp' }
const NAMES = ['id', 'name', 'email', 'city', 'country', 'balance', 'active', 'created_at', 'updated_at', 'notes']

/** The library of the lake writes the same columns to one file, a row group per batch, without a table around it. */
export async function openDestination(folder) {
  const columns = NAMES.map((name, at) => ({
    member: name,
    name,
    type: TYPES[name] ?? 'text',
    id: at + 5,
    none: 'null',
    since: 0,
  }))
  const fields = fieldsOf('mirror', columns)
  const micros = (text) => BigInt(Date.parse(text)) * 1_000n
  const converters = fields.map(({ type }) => (type === 'timestamp' ? micros : type === 'bigint' ? BigInt : null))
  const file = join(folder, 'raw.parquet')
  let parquet = null
  return {
    destination: createLake({ folder: join(folder, 'lake'), format: 'iceberg' }, Date.now),
    pid: null,
    async begin() {
      mkdirSync(folder, { recursive: true })
      rmSync(file, { force: true })
      parquet = new ParquetWriter({ writer: fileWriter(file), schema: toParquetSchema(fields) })
    },
    prepare: (rows) =>
      fields.map(({ name }, at) => {
        const convert = converters[at]
        return { name, data: rows.map((row) => (convert === null || row[at] === null ? row[at] : convert(row[at]))) }
      }),
    write: async (columnData) => parquet.write({ rowGroupSize: columnData[0].data.length, columnData }),
    async end() {
      await parquet.finish()
      const descriptor = openSync(file, 'r+')
      fsyncSync(descriptor)
      closeSync(descriptor)
    },
    count: () => countRows(join(folder, 'lake', 'accounts', 'data')),
    close: async () => {},
  }
}

async function countRows(folder) {
  let count = 0
  for (const name of readdirSync(folder)) {
    if (!name.endsWith('.parquet')) continue
    count += Number((await parquetMetadataAsync(await asyncBufferFromFile(join(folder, name)))).num_rows)
  }
  return count
}
