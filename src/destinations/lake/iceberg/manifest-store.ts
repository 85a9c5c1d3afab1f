import { randomUUID } from 'node:crypto'
import { required } from '../../../values/required.ts'
import { fieldsOf } from '../columns.ts'
import type { Storage } from '../storage/storage.ts'
import type { DataFile, DeleteFile, TableChange, TableFiles } from '../table-state.ts'
import type { AvroCodec } from './avro-file.ts'
import { decodeManifest, encodeManifest, type ManifestEntry, type ManifestFile } from './manifests.ts'
import { partitionTypesOf, type Metadata } from './metadata.ts'
import type { IcebergSchema } from './schema.ts'
import type { Snapshot } from './snapshots.ts'

/** More manifests of one kind are merged into one. */
const MANIFESTS_MAX = 16
/** Larger manifests are not written again only to merge them. */
const MERGE_ENTRIES_MAX = 500
const CACHE_MAX = 4 * MANIFESTS_MAX
/** A longer key is cut in the lower bound, and has no upper bound. */
const BOUND_BYTES_MAX = 256
const DELETE_PATH_ID = 2_147_483_546

/** Reads and writes the manifests of a table. They never change, so the last ones stay in memory. */
export class ManifestStore {
  readonly #storage: Storage
  readonly #folder: string
  readonly #location: string
  readonly #codec: AvroCodec
  readonly #cache = new Map<string, readonly ManifestEntry[]>()

  constructor(storage: Storage, folder: string, location: string, codec: AvroCodec) {
    this.#storage = storage
    this.#folder = folder
    this.#location = location
    this.#codec = codec
  }

  /** The files of a snapshot. */
  async read(snapshot: Snapshot): Promise<TableFiles> {
    const data: DataFile[] = []
    const deletes: DeleteFile[] = []
    for (const manifest of await this.#readList(snapshot)) {
      for (const entry of await this.#readEntries(manifest)) {
        const files = entry.content === 1 ? deletes : data
        files.push({
          path: entry.path.slice(this.#location.length + 1),
          rows: entry.rows,
          bytes: entry.bytes,
          sequence: entry.sequence,
          lower: firstOf(entry.lower),
          upper: firstOf(entry.upper),
          partition: { specId: entry.specId, value: entry.partition },
        })
      }
    }
    return { data, deletes }
  }

  /** Every file that these snapshots need, as paths of the storage. */
  async filesOf(snapshots: readonly Snapshot[]): Promise<Set<string>> {
    const used = new Set<string>()
    const add = (uri: string): unknown => used.add(this.#toPath(uri))
    for (const snapshot of snapshots) {
      add(snapshot['manifest-list'])
      for (const manifest of await this.#readList(snapshot)) {
        if (used.has(this.#toPath(manifest.manifest_path))) continue
        add(manifest.manifest_path)
        for (const { path } of await this.#readEntries(manifest)) add(path)
      }
    }
    return used
  }

  /** The manifests of the next snapshot: those of the previous one, with the changes. */
  async write(
    previous: Snapshot | null,
    change: TableChange,
    next: {
      readonly id: number
      readonly sequence: number
      readonly schema: IcebergSchema
      readonly metadata: Metadata
    },
  ): Promise<ManifestFile[]> {
    const kept: ManifestFile[] = []
    const pending = new Map<string, ManifestEntry[]>()
    const add = (entry: ManifestEntry): void => {
      const kind = kindOf(entry.content, entry.specId)
      const entries = pending.get(kind)
      if (entries === undefined) pending.set(kind, [entry])
      else entries.push(entry)
    }
    for (const manifest of previous === null ? [] : await this.#readList(previous)) {
      const entries = change.removed.size === 0 ? [] : await this.#readEntries(manifest)
      const isTouched = entries.some(({ path }) => change.removed.has(path.slice(this.#location.length + 1)))
      if (!isTouched) kept.push(manifest)
      else for (const entry of entries) if (!change.removed.has(entry.path.slice(this.#location.length + 1))) add(entry)
    }
    const keyId = fieldsOf(change.mode, change.columns).find(({ name }) => name === '_key')?.id ?? 1
    for (const file of change.data) add(this.#toEntry(file, 0, keyId, next))
    for (const file of change.deletes) add(this.#toEntry(file, 1, DELETE_PATH_ID, next))
    const merged = await this.#mergeMany(kept, add)
    const written: ManifestFile[] = []
    for (const entries of pending.values()) written.push(await this.#writeOne(entries, next))
    return [...merged, ...written]
  }

  /** Takes small manifests out of the list if there are too many, and adds their entries to the pending ones. */
  async #mergeMany(kept: readonly ManifestFile[], add: (entry: ManifestEntry) => void): Promise<ManifestFile[]> {
    const isSmall = (manifest: ManifestFile): boolean => countOf(manifest) < MERGE_ENTRIES_MAX
    const counts = new Map<string, number>()
    for (const manifest of kept.filter(isSmall)) {
      const kind = kindOf(manifest.content, manifest.partition_spec_id)
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
    const rest: ManifestFile[] = []
    for (const manifest of kept) {
      const count = counts.get(kindOf(manifest.content, manifest.partition_spec_id)) ?? 0
      if (count < MANIFESTS_MAX || !isSmall(manifest)) rest.push(manifest)
      else for (const entry of await this.#readEntries(manifest)) add(entry)
    }
    return rest
  }

  async #writeOne(
    entries: readonly ManifestEntry[],
    { id, sequence, schema, metadata }: { id: number; sequence: number; schema: IcebergSchema; metadata: Metadata },
  ): Promise<ManifestFile> {
    const [first] = entries
    const specId = first?.specId ?? 0
    const spec = required(
      metadata['partition-specs'].find((one) => one['spec-id'] === specId),
      `The partition spec ${specId}`,
    )
    const avro = partitionTypesOf(metadata)[specId] ?? null
    const bytes = encodeManifest(this.#codec, entries, { spec, avro }, schema, id)
    const path = `metadata/manifest-${randomUUID()}.avro`
    await this.#storage.write(`${this.#folder}/${path}`, bytes)
    const added = entries.filter(({ snapshotId }) => snapshotId === id)
    const existing = entries.filter(({ snapshotId }) => snapshotId !== id)
    const rowsOf = (list: readonly ManifestEntry[]): number => list.reduce((sum, { rows }) => sum + rows, 0)
    return {
      manifest_path: `${this.#location}/${path}`,
      manifest_length: bytes.length,
      partition_spec_id: specId,
      content: first?.content ?? 0,
      sequence_number: sequence,
      min_sequence_number: Math.min(...entries.map((entry) => entry.sequence)),
      added_snapshot_id: id,
      added_files_count: added.length,
      existing_files_count: existing.length,
      deleted_files_count: 0,
      added_rows_count: rowsOf(added),
      existing_rows_count: rowsOf(existing),
      deleted_rows_count: 0,
    }
  }

  #toEntry(
    { path, rows, bytes, partition, lower, upper }: DataFile | DeleteFile,
    content: 0 | 1,
    boundId: number,
    { id, sequence }: { readonly id: number; readonly sequence: number },
  ): ManifestEntry {
    return {
      content,
      path: `${this.#location}/${path}`,
      rows,
      bytes,
      specId: partition.specId,
      partition: partition.value,
      lower: toLowerBound(boundId, lower),
      upper: toUpperBound(boundId, upper),
      sequence,
      snapshotId: id,
    }
  }

  async #readList(snapshot: Snapshot): Promise<ManifestFile[]> {
    return this.#codec.decode<ManifestFile>(await this.#readFile(snapshot['manifest-list']))
  }

  async #readEntries(manifest: ManifestFile): Promise<readonly ManifestEntry[]> {
    const path = manifest.manifest_path
    let entries = this.#cache.get(path)
    if (entries === undefined) entries = decodeManifest(this.#codec, manifest, await this.#readFile(path))
    this.#cache.delete(path)
    this.#cache.set(path, entries)
    for (const oldest of this.#cache.keys()) {
      if (this.#cache.size <= CACHE_MAX) break
      this.#cache.delete(oldest)
    }
    return entries
  }

  async #readFile(uri: string): Promise<Buffer> {
    return required(await this.#storage.read(this.#toPath(uri)), uri)
  }

  #toPath(uri: string): string {
    return `${this.#folder}/${uri.slice(this.#location.length + 1)}`
  }
}

function kindOf(content: number, specId: number): string {
  return `${content} ${specId}`
}

function countOf(manifest: ManifestFile): number {
  return manifest.added_files_count + manifest.existing_files_count
}

function firstOf(bounds: ReadonlyMap<number, Buffer>): Buffer | null {
  const [first] = bounds.values()
  return first ?? null
}

/** A cut key is still a lower bound. */
function toLowerBound(id: number, value: Buffer | null): Map<number, Buffer> {
  if (value === null) return new Map()
  if (value.length <= BOUND_BYTES_MAX) return new Map([[id, value]])
  let end = BOUND_BYTES_MAX
  // A cut must not split a character.
  while (end > 0 && ((value[end] ?? 0) & 0xc0) === 0x80) end--
  return new Map([[id, value.subarray(0, end)]])
}

function toUpperBound(id: number, value: Buffer | null): Map<number, Buffer> {
  return value === null || value.length > BOUND_BYTES_MAX ? new Map() : new Map([[id, value]])
}
