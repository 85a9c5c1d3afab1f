import type { DestinationMode } from '../../contract/index.ts'
import type { LakeField } from './columns.ts'
import type { PhysicalValue } from './encode-values.ts'
import type { ParquetFileReader } from './parquet/read-file.ts'
import { groupRowsMax } from './parquet/write-file.ts'
import {
  createWriter,
  FILE_BYTES_TARGET,
  openDataFile,
  saveDataFile,
  type FileLayout,
  type TableContext,
} from './table-context.ts'
import type { DataFile, Partition } from './table-state.ts'
import { compareSortKeys, toSortKey, type SortKey } from './write-rows.ts'

/** A file to write again, without these rows. */
export interface MergeInput {
  readonly file: DataFile
  readonly deleted: ReadonlySet<number>
}

/** A row group is written when its values take about this much memory. */
const GROUP_BYTES_MAX = 16 * 1024 * 1024

/** Writes the rows of sorted files of one partition to new sorted files. Holds one row group of each in memory. */
export async function mergeFiles(
  context: TableContext,
  inputs: readonly MergeInput[],
  layout: FileLayout,
  partition: Partition,
): Promise<DataFile[]> {
  const cursors: Cursor[] = []
  for (const input of inputs) {
    const cursor = new Cursor(await openDataFile(context, input.file), input.deleted, layout)
    if (await cursor.load()) cursors.push(cursor)
  }
  const output = new Output(context, layout, partition)
  while (cursors.length > 0) {
    const [first, second] = cursors.toSorted((a, b) => compareSortKeys(a.sortKey, b.sortKey))
    if (first === undefined) break
    const limit = second?.sortKey ?? null
    const isNext = (): boolean => !first.isDone && (limit === null || compareSortKeys(first.sortKey, limit) <= 0)
    // A run of rows comes from one file, until another has a smaller key.
    do {
      output.add(first.columns, first.row)
      if (output.isFull) await output.flush()
      if (!first.advance() && !(await first.load())) cursors.splice(cursors.indexOf(first), 1)
    } while (isNext())
  }
  return output.finish()
}

/** The rows of one file that are not deleted, in order. */
class Cursor {
  columns: readonly PhysicalValue[][] = []
  row = -1
  isDone = false
  readonly #reader: ParquetFileReader
  readonly #deleted: ReadonlySet<number>
  readonly #fields: readonly LakeField[]
  readonly #mode: DestinationMode
  #group = -1
  #sortKey: SortKey | null = null

  constructor(reader: ParquetFileReader, deleted: ReadonlySet<number>, { fields, mode }: FileLayout) {
    this.#reader = reader
    this.#deleted = deleted
    this.#fields = fields
    this.#mode = mode
  }

  get sortKey(): SortKey {
    return (this.#sortKey ??= toSortKey(this.#mode, this.#value('_key'), this.#value('_sequence')))
  }

  /** Moves to the next row of the row group; false at its end. */
  advance(): boolean {
    this.#sortKey = null
    const { rowStart, rows } = this.#reader.groups[this.#group] ?? { rowStart: 0, rows: 0 }
    do this.row++
    while (this.row < rows && this.#deleted.has(rowStart + this.row))
    return this.row < rows
  }

  /** Moves to the first row of the next row group; false at the end of the file. */
  async load(): Promise<boolean> {
    while (++this.#group < this.#reader.groups.length) {
      const values = await this.#reader.readGroup(this.#group)
      const rows = this.#reader.groups[this.#group]?.rows ?? 0
      // A file that is older than a column lacks it.
      this.columns = this.#fields.map(({ name }) => values.get(name) ?? Array<null>(rows).fill(null))
      this.row = -1
      if (this.advance()) return true
    }
    this.isDone = true
    this.columns = []
    return false
  }

  #value(name: string): PhysicalValue {
    return this.columns[this.#fields.findIndex((field) => field.name === name)]?.[this.row] ?? null
  }
}

class Output {
  readonly #context: TableContext
  readonly #layout: FileLayout
  readonly #partition: Partition
  readonly #rowsMax: number
  readonly #files: DataFile[] = []
  #writer
  #columns: PhysicalValue[][]
  #rows = 0
  #bytes = 0

  constructor(context: TableContext, layout: FileLayout, partition: Partition) {
    this.#context = context
    this.#layout = layout
    this.#partition = partition
    this.#rowsMax = groupRowsMax(layout.fields.length)
    this.#writer = createWriter(layout)
    this.#columns = layout.fields.map(() => [])
  }

  get isFull(): boolean {
    return this.#rows >= this.#rowsMax || this.#bytes >= GROUP_BYTES_MAX
  }

  add(columns: readonly PhysicalValue[][], row: number): void {
    for (const [at, column] of this.#columns.entries()) {
      const value = columns[at]?.[row] ?? null
      column.push(value)
      this.#bytes += value instanceof Uint8Array ? value.length : 8
    }
    this.#rows++
  }

  async flush(): Promise<void> {
    if (this.#rows === 0) return
    this.#writer.addGroup(this.#columns)
    this.#columns = this.#layout.fields.map(() => [])
    ;[this.#rows, this.#bytes] = [0, 0]
    if (this.#writer.bytes >= FILE_BYTES_TARGET) await this.#save()
  }

  async finish(): Promise<DataFile[]> {
    await this.flush()
    if (this.#writer.rows > 0) await this.#save()
    return this.#files
  }

  async #save(): Promise<void> {
    this.#files.push(await saveDataFile(this.#context, this.#writer, this.#layout, this.#partition))
    this.#writer = createWriter(this.#layout)
  }
}
