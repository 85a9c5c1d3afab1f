import { randomInt, randomUUID } from 'node:crypto'
import { SyncError } from '../../../contract/index.ts'
import { parseJson } from '../../../values/json.ts'
import { findPartitionSpec, type PartitionBy } from '../partition.ts'
import type { Storage } from '../storage/storage.ts'
import { removeUnused } from '../sweep.ts'
import type { Branch, TableChange, TableFiles, TableFormat, TableState } from '../table-state.ts'
import { Versions } from '../versions.ts'
import type { AvroCodec } from './avro-file.ts'
import { ManifestStore } from './manifest-store.ts'
import {
  addSnapshot,
  columnsOf,
  createMetadata,
  emptyMetadata,
  headOf,
  isTidemarkTable,
  METADATA_VERSIONS_KEPT,
  tokenOf,
  withPartitionSpec,
  withSchema,
  type Metadata,
} from './metadata.ts'
import { encodeManifestList } from './manifests.ts'
import type { Retention } from './snapshots.ts'

export interface IcebergOptions {
  readonly storage: Storage
  /** The folder of the table in the storage. */
  readonly folder: string
  readonly partitionBy?: PartitionBy | undefined
  readonly retention: Retention
  readonly now: () => number
}

interface IcebergState extends TableState {
  readonly metadata: Metadata
}

/** An Iceberg table of version 2, in the layout of Hadoop tables: the newest `v<n>.metadata.json` is the table. */
export class IcebergFormat implements TableFormat {
  readonly hasDeleteFiles = true
  readonly #options: IcebergOptions
  readonly #codec: AvroCodec
  readonly #versions: Versions
  readonly #manifests: ManifestStore
  readonly #location: string

  constructor(options: IcebergOptions, codec: AvroCodec) {
    const { storage, folder } = options
    this.#options = options
    this.#codec = codec
    this.#location = `${storage.uri}/${folder}`
    this.#versions = new Versions(storage, `${folder}/metadata`, '.metadata.json')
    this.#manifests = new ManifestStore(storage, folder, this.#location, codec)
  }

  async load(): Promise<IcebergState | null> {
    const newest = await this.#versions.readNewest()
    if (newest === null) return null
    const metadata = parseMetadata(newest.bytes)
    if (metadata === null || !isTidemarkTable(metadata))
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `${this.#location} has an Iceberg table that does not belong to Tidemark. Nothing was changed.`,
      )
    if (metadata.location !== this.#location)
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `${this.#location} has a table that was written at ${metadata.location}. Iceberg stores full paths: move it back, or remove it.`,
      )
    return {
      version: newest.version,
      sequence: metadata['last-sequence-number'],
      lastColumnId: metadata['last-column-id'],
      live: this.#branchOf(metadata, 'live'),
      loading: this.#branchOf(metadata, 'loading'),
      metadata,
    }
  }

  partitionSpecOf(state: TableState | null, { columns }: Pick<TableChange, 'columns'>): number {
    const metadata = this.#metadataOf(state)
    return withPartitionSpec(metadata, findPartitionSpec(this.#options.partitionBy, columns))[1]['spec-id']
  }

  async commit(state: TableState | null, change: TableChange): Promise<'committed' | 'lost'> {
    const { storage, folder, partitionBy, retention, now } = this.#options
    const base = this.#metadataOf(state)
    const [partitioned] = withPartitionSpec(base, findPartitionSpec(partitionBy, change.columns))
    const [metadata, schema] = withSchema(partitioned, change)
    const id = createSnapshotId(metadata)
    const sequence = base['last-sequence-number'] + 1
    const previous = change.isFirst ? null : headOf(base, change.target)
    const manifests = await this.#manifests.write(previous, change, { id, sequence, schema, metadata })
    const listPath = `metadata/snap-${id}-${randomUUID()}.avro`
    await storage.write(`${folder}/${listPath}`, encodeManifestList(this.#codec, manifests, { id, sequence }))
    const version = (state?.version ?? 0) + 1
    const next = addSnapshot(
      metadata,
      change,
      {
        id,
        sequence,
        manifestList: `${this.#location}/${listPath}`,
        summary: {
          operation:
            change.data.length + change.deletes.length > 0 && change.removed.size === 0 && change.deletes.length === 0
              ? 'append'
              : 'overwrite',
          'added-data-files': String(change.data.length),
          'added-delete-files': String(change.deletes.length),
          'added-records': String(change.data.reduce((sum, { rows }) => sum + rows, 0)),
        },
      },
      schema,
      {
        now: now(),
        retention,
        previousFile: state === null ? null : `${storage.uri}/${this.#versions.pathOf(state.version)}`,
      },
    )
    return (await this.#versions.create(version, Buffer.from(JSON.stringify(next)))) ? 'committed' : 'lost'
  }

  async remove(): Promise<void> {
    const { storage, folder } = this.#options
    const state = await this.load()
    if (state === null) return
    // From here on the table is empty, whatever becomes of the files.
    const empty = Buffer.from(JSON.stringify(emptyMetadata(state.metadata)))
    if (!(await this.#versions.create(state.version + 1, empty)))
      throw new SyncError('DESTINATION_UNAVAILABLE', `${this.#location}: another process wrote to the table.`)
    const files = (await storage.list(folder)).map(({ path }) => path)
    const last = this.#versions.pathOf(state.version + 1)
    await storage.remove(files.filter((path) => path !== last && path !== this.#versions.hintPath))
    await storage.remove([last])
    await storage.remove([this.#versions.hintPath])
  }

  async sweep(): Promise<void> {
    const { storage, folder, retention, now } = this.#options
    // Listed before the metadata is read: a file that is committed in between is referenced.
    const files = await storage.list(folder)
    const state = await this.load()
    if (state === null) return
    const used = await this.#manifests.filesOf(state.metadata.snapshots)
    used.add(this.#versions.hintPath)
    for (let version = state.version; version > state.version - METADATA_VERSIONS_KEPT; version--)
      used.add(this.#versions.pathOf(version))
    await removeUnused(storage, files, used, now() - retention.keepMs)
  }

  #metadataOf(state: TableState | null): Metadata {
    return state === null ? createMetadata(randomUUID(), this.#location) : (state as IcebergState).metadata
  }

  /** Null if there is none. A snapshot of another program has no token. */
  #branchOf(metadata: Metadata, target: 'live' | 'loading'): Branch | null {
    const head = headOf(metadata, target)
    const columns = columnsOf(metadata, target)
    if (head === null || columns === null) return null
    const token = tokenOf(head)
    if (token === null)
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `Another program wrote to ${this.#location} (snapshot ${head['snapshot-id']}). Roll the table back to the snapshot before it, or remove it.`,
      )
    return { ...columns, token, files: (): Promise<TableFiles> => this.#manifests.read(head) }
  }
}

function parseMetadata(bytes: Buffer): Metadata | null {
  const parsed = parseJson(bytes.toString()) as Partial<Metadata> | null
  return typeof parsed?.properties === 'object' && parsed['format-version'] === 2 ? (parsed as Metadata) : null
}

/** Below 2^53, so that readers in JavaScript do not round it. */
function createSnapshotId({ snapshots }: Metadata): number {
  for (;;) {
    const id = randomInt(1, 2 ** 48 - 1)
    if (!snapshots.some((snapshot) => snapshot['snapshot-id'] === id)) return id
  }
}
