import type { DestinationBatch, TokenStep } from '../../contract/index.ts'
import { fieldsOfBatch } from '../kit/batch-fields.ts'
import { extendLakeColumns, fieldsOf, firstColumnId, type LakeColumn } from './columns.ts'
import { encodeBatch } from './encode-batch.ts'
import { endVersions } from './end-versions.ts'
import { groupBy } from './group-by.ts'
import type { KeyIndex, RowPosition } from './key-index.ts'
import { mergeFiles } from './merge-files.ts'
import { findPartitionSpec, partitionKey, type PartitionBy } from './partition.ts'
import { writePositions } from './position-deletes.ts'
import type { FileLayout, TableContext } from './table-context.ts'
import type { Branch, DataFile, DeleteFile, TableChange, TableFiles, TableFormat, TableState } from './table-state.ts'
import { writeRows } from './write-rows.ts'

export interface LakeTable {
  readonly context: TableContext
  readonly format: TableFormat
  readonly index: KeyIndex
  readonly partitionBy: PartitionBy | undefined
}

const NO_FILES: TableFiles = { data: [], deletes: [] }

/** Writes the files of a batch. They are not part of the table until the change is committed. */
export async function buildChange(
  table: LakeTable,
  state: TableState | null,
  batch: DestinationBatch,
  { previous, next }: TokenStep,
): Promise<TableChange> {
  const { schema, changes, target, isFirst, isLast } = batch
  const { mode } = schema
  const before = isFirst ? null : (state?.[target] ?? null)
  const isRowPhase = previous !== null && previous.after !== null
  const extended = extendTable(state, before, batch, { previous, isRowPhase })
  const layout: FileLayout = {
    mode,
    fields: fieldsOf(mode, extended.columns),
    spec: findPartitionSpec(table.partitionBy, extended.columns),
  }
  const change: TableChange = {
    target,
    token: next,
    mode,
    ...extended,
    data: [],
    deletes: [],
    removed: new Set(),
    isFirst,
    isLast,
  }
  if (changes.length === 0) return change
  const { columns, endedKeys } = encodeBatch(batch, extended.columns, layout)
  // Every key of a load is new, so there is nothing to replace.
  const files = isRowPhase || mode === 'append' || before === null ? NO_FILES : await before.files()
  const replaced =
    mode === 'history'
      ? await endVersions(table, endedKeys, files.data, layout, columns)
      : await table.index.find(
          changes.map(({ key }) => key),
          files.data,
        )
  const specId = table.format.partitionSpecOf(state, change)
  const data = await writeRows(table.context, columns, layout, specId)
  const removal = await removeRows(table, [...replaced.values()], layout)
  return { ...change, data: [...data, ...removal.data], deletes: removal.deletes, removed: removal.removed }
}

function extendTable(
  state: TableState | null,
  before: Branch | null,
  batch: DestinationBatch,
  { previous, isRowPhase }: { previous: TokenStep['previous']; isRowPhase: boolean },
): { columns: readonly LakeColumn[]; lastColumnId: number } {
  const { schema, changes, isFirst, isLast } = batch
  const known = before?.columns ?? []
  const lastColumnId = Math.max(state?.lastColumnId ?? 0, firstColumnId(schema.mode))
  if (changes.length === 0 && !isLast) return { columns: known, lastColumnId }
  const isEmptyTable = before === null || isFirst || (known.length === 0 && isRowPhase)
  const since = isEmptyTable ? 0 : (previous?.sequence ?? 0) + 1
  return extendLakeColumns(known, schema, fieldsOfBatch(batch), since, state?.live?.columns ?? [], lastColumnId)
}

/** Removes rows by naming their positions, or by writing their files again without them. */
async function removeRows(
  { context, format }: LakeTable,
  positions: readonly RowPosition[],
  layout: FileLayout,
): Promise<Pick<TableChange, 'data' | 'deletes' | 'removed'>> {
  const byFile = new Map<string, { file: DataFile; deleted: Set<number> }>()
  for (const { file, position } of positions) {
    const found = byFile.get(file.path)
    if (found === undefined) byFile.set(file.path, { file, deleted: new Set([position]) })
    else found.deleted.add(position)
  }
  const inputs = [...byFile.values()]
  if (!format.hasDeleteFiles) {
    const data: DataFile[] = []
    for (const input of inputs) data.push(...(await mergeFiles(context, [input], layout, input.file.partition)))
    return { data, deletes: [], removed: new Set(byFile.keys()) }
  }
  const deletes: DeleteFile[] = []
  // Iceberg applies a delete file only to data files of its own partition.
  for (const group of groupBy(inputs, ({ file }) => partitionKey(file.partition)).values()) {
    const [first] = group
    if (first === undefined) continue
    const own = new Map(group.map(({ file, deleted }) => [file.path, deleted]))
    deletes.push(await writePositions(context, own, first.file.partition))
  }
  return { data: [], deletes, removed: new Set() }
}
