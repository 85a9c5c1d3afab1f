import type { LakeTable } from './build-change.ts'
import type { PhysicalColumns } from './encode-batch.ts'
import type { PhysicalValue } from './encode-values.ts'
import { groupBy } from './group-by.ts'
import type { RowPosition } from './key-index.ts'
import { openDataFile, type FileLayout } from './table-context.ts'
import type { DataFile } from './table-state.ts'

/**
 * The rows of a history whose validity ends, by key. The same rows with their end are added to `output`. Files that were
 * merged may have older versions of a key than others, and a file may still have a row that was replaced by its end: the
 * highest sequence of a key is its last version, and it is current unless one copy has ended.
 */
export async function endVersions(
  { context, index }: LakeTable,
  endedKeys: ReadonlyArray<readonly [key: string, at: number]>,
  files: readonly DataFile[],
  { fields }: FileLayout,
  output: PhysicalColumns,
): Promise<Map<string, RowPosition>> {
  const ends = new Map(endedKeys)
  const found = await index.findAll([...ends.keys()], files)
  const fieldAt = (name: string): number => fields.findIndex((field) => field.name === name)
  const [sequence, validTo, isCurrent] = [fieldAt('_sequence'), fieldAt('_valid_to'), fieldAt('_is_current')]
  const last = new Map<string, { at: RowPosition; row: PhysicalValue[] }>()
  for (const [file, entries] of groupBy(found, ([, { file }]) => file)) {
    const reader = await openDataFile(context, file)
    for (const [at, { rowStart, rows }] of reader.groups.entries()) {
      const own = entries.filter(([, { position }]) => position >= rowStart && position < rowStart + rows)
      if (own.length === 0) continue
      const values = await reader.readGroup(at)
      for (const [key, position] of own) {
        const row = fields.map(({ name }) => values.get(name)?.[position.position - rowStart] ?? null)
        const other = last.get(key)?.row
        const isLater = other === undefined || BigInt(row[sequence] as bigint) > BigInt(other[sequence] as bigint)
        const isEnd = other?.[sequence] === row[sequence] && row[isCurrent] !== true
        if (isLater || isEnd) last.set(key, { at: position, row })
      }
    }
  }
  const positions = new Map<string, RowPosition>()
  for (const [key, { at, row }] of last) {
    if (row[isCurrent] !== true) continue
    row[isCurrent] = false
    row[validTo] = BigInt(ends.get(key) ?? 0) * 1_000n
    positions.set(key, at)
    for (const [field, value] of row.entries()) output[field]?.push(value)
  }
  return positions
}
