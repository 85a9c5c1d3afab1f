import type { LakeTable } from './build-change.ts'
import { fieldsOf } from './columns.ts'
import { groupBy } from './group-by.ts'
import { mergeFiles, type MergeInput } from './merge-files.ts'
import { findPartitionSpec, partitionKey } from './partition.ts'
import { readPositions, writePositions } from './position-deletes.ts'
import { FILE_BYTES_TARGET, type FileLayout } from './table-context.ts'
import type { Branch, DataFile, DeleteFile, TableChange, TableFiles, TableState } from './table-state.ts'

/** As many files of about the same size are merged into one, so a row is written again once per step in size. */
const FAN_IN = 8
const STEP_BYTES = 64 * 1024
const STEP_POSITIONS = 512
/** Beyond this share of deleted rows, the files with the most of them are written again. */
const DELETED_SHARE_MAX = 0.2
const DELETED_ROWS_MIN = 1_000

/** Files to write again, all of one partition. */
export type CompactionPlan =
  | { readonly kind: 'merge'; readonly data: readonly DataFile[] }
  | { readonly kind: 'deletes'; readonly deletes: readonly DeleteFile[] }
  | { readonly kind: 'deleted rows' }

/** Decides what to compact, if anything. A batch compacts at most once. */
export function planCompaction({ data, deletes }: TableFiles): CompactionPlan | null {
  const small = data.filter(({ bytes }) => bytes < FILE_BYTES_TARGET / 2)
  const merge = findFullStep(small, ({ bytes }) => bytes / STEP_BYTES)
  if (merge !== null) return { kind: 'merge', data: limitBytes(merge) }
  const deletedRows = countRows(deletes)
  if (deletedRows >= DELETED_ROWS_MIN && deletedRows > countRows(data) * DELETED_SHARE_MAX)
    return { kind: 'deleted rows' }
  const many = findFullStep(deletes, ({ rows }) => rows / STEP_POSITIONS)
  return many === null ? null : { kind: 'deletes', deletes: many }
}

/** Writes the files of a plan. The rows and the token stay the same. */
export async function compact(
  table: LakeTable,
  state: TableState,
  target: 'live' | 'loading',
  branch: Branch,
  files: TableFiles,
  plan: CompactionPlan,
): Promise<TableChange> {
  const { mode, columns, token } = branch
  const layout: FileLayout = {
    mode,
    fields: fieldsOf(mode, columns),
    spec: findPartitionSpec(table.partitionBy, columns),
  }
  const change: TableChange = {
    target,
    token,
    mode,
    columns,
    lastColumnId: state.lastColumnId,
    data: [],
    deletes: [],
    removed: new Set(),
    isFirst: false,
    isLast: false,
  }
  switch (plan.kind) {
    case 'merge': {
      const positions = await readPositions(table.context, files.deletes, plan.data)
      return { ...change, ...(await rewriteData(table, plan.data, positions, layout)) }
    }
    case 'deletes':
      return { ...change, ...(await rewriteDeletes(table, plan.deletes, files.data)) }
    case 'deleted rows': {
      const positions = await readPositions(table.context, files.deletes, files.data)
      const worst = findWorst(files.data, positions)
      const data = await rewriteData(table, worst, positions, layout)
      const rest = files.data.filter(({ path }) => !data.removed.has(path))
      const deletes = await rewriteDeletes(table, files.deletes, rest)
      return {
        ...change,
        data: data.data,
        deletes: deletes.deletes,
        removed: new Set([...data.removed, ...deletes.removed]),
      }
    }
    default:
      return plan satisfies never
  }
}

async function rewriteData(
  { context }: LakeTable,
  data: readonly DataFile[],
  positions: ReadonlyMap<string, ReadonlySet<number>>,
  layout: FileLayout,
): Promise<{ data: DataFile[]; removed: Set<string> }> {
  const written: DataFile[] = []
  for (const group of groupBy(data, ({ partition }) => partitionKey(partition)).values()) {
    const [first] = group
    if (first === undefined) continue
    const inputs = group.map((file): MergeInput => ({ file, deleted: positions.get(file.path) ?? new Set() }))
    written.push(...(await mergeFiles(context, inputs, layout, first.partition)))
  }
  return { data: written, removed: new Set(data.map(({ path }) => path)) }
}

/** Positions in files that are no longer part of the table are dropped. */
async function rewriteDeletes(
  { context }: LakeTable,
  deletes: readonly DeleteFile[],
  data: readonly DataFile[],
): Promise<{ deletes: DeleteFile[]; removed: Set<string> }> {
  const written: DeleteFile[] = []
  for (const group of groupBy(deletes, ({ partition }) => partitionKey(partition)).values()) {
    const positions = await readPositions(context, group, data)
    const [first] = group
    if (first !== undefined && positions.size > 0)
      written.push(await writePositions(context, positions, first.partition))
  }
  return { deletes: written, removed: new Set(deletes.map(({ path }) => path)) }
}

/** The files with the largest share of deleted rows, up to the bytes of one file. */
function findWorst(
  data: readonly DataFile[],
  positions: ReadonlyMap<string, ReadonlySet<number>>,
): readonly DataFile[] {
  const shareOf = ({ path, rows }: DataFile): number => (positions.get(path)?.size ?? 0) / rows
  const damaged = data.filter((file) => shareOf(file) > 0).toSorted((a, b) => shareOf(b) - shareOf(a))
  return limitBytes(damaged)
}

/** The first group of files of one partition and about one size that has enough of them. */
function findFullStep<File extends DataFile | DeleteFile>(
  files: readonly File[],
  sizeOf: (file: File) => number,
): readonly File[] | null {
  const stepOf = (file: File): number => Math.max(0, Math.floor(Math.log(sizeOf(file)) / Math.log(FAN_IN)))
  const steps = groupBy(files, (file) => `${stepOf(file)} ${partitionKey(file.partition)}`)
  const full = [...steps.values()].find((step) => step.length >= FAN_IN)
  return full?.toSorted((a, b) => a.sequence - b.sequence) ?? null
}

/** At least one file, and no more than about the size of one. */
function limitBytes(files: readonly DataFile[]): readonly DataFile[] {
  let bytes = 0
  return files.filter((file, at) => {
    bytes += file.bytes
    return at === 0 || (at < 4 * FAN_IN && bytes <= FILE_BYTES_TARGET)
  })
}

function countRows(files: readonly (DataFile | DeleteFile)[]): number {
  return files.reduce((sum, { rows }) => sum + rows, 0)
}
