import { SyncError, type DestinationMode, type DestinationToken } from '../../../contract/index.ts'
import type { LakeColumn } from '../columns.ts'
import { findPartitionSpec, type PartitionBy } from '../partition.ts'
import type { Storage } from '../storage/storage.ts'
import { removeUnused } from '../sweep.ts'
import type { Branch, DataFile, TableChange, TableFormat, TableState } from '../table-state.ts'
import { Versions } from '../versions.ts'

export interface PlainOptions {
  readonly storage: Storage
  readonly folder: string
  readonly partitionBy?: PartitionBy | undefined
  /** How long replaced files stay readable. */
  readonly keepMs: number
  readonly now: () => number
}

/** The content of a version: `_tidemark/v<n>.json`. */
interface Manifest {
  readonly format: 'tidemark-parquet-1'
  readonly sequence: number
  readonly lastColumnId: number
  readonly live: ManifestBranch | null
  readonly loading: ManifestBranch | null
  /** Files that a reader may still use, with the time at which they were replaced. */
  readonly replaced: ReadonlyArray<{ readonly path: string; readonly at: number }>
}

interface ManifestBranch {
  readonly token: DestinationToken
  readonly mode: DestinationMode
  readonly columns: readonly LakeColumn[]
  readonly files: readonly ManifestFile[]
}

interface ManifestFile extends Omit<DataFile, 'lower' | 'upper'> {
  readonly lower: string | null
  readonly upper: string | null
}

interface PlainState extends TableState {
  readonly manifest: Manifest
}

const FOLDER = '_tidemark'
const VERSIONS_KEPT = 20

/**
 * Parquet files and a manifest that names the live ones. `_tidemark/live.json` is for readers; the newest
 * `_tidemark/v<n>.json` is the table.
 */
export class PlainFormat implements TableFormat {
  readonly hasDeleteFiles = false
  readonly #options: PlainOptions
  readonly #versions: Versions

  constructor(options: PlainOptions) {
    this.#options = options
    this.#versions = new Versions(options.storage, `${options.folder}/${FOLDER}`, '.json', (version, bytes) =>
      this.#publish(version, bytes),
    )
  }

  async load(): Promise<PlainState | null> {
    const newest = await this.#versions.readNewest()
    if (newest === null) return null
    const manifest = JSON.parse(newest.bytes.toString()) as Manifest
    if (manifest.format !== 'tidemark-parquet-1')
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `${this.#location}/${FOLDER} has files of another program. Nothing was changed.`,
      )
    return {
      version: newest.version,
      sequence: manifest.sequence,
      lastColumnId: manifest.lastColumnId,
      live: toBranch(manifest.live),
      loading: toBranch(manifest.loading),
      manifest,
    }
  }

  partitionSpecOf(_state: TableState | null, { columns }: Pick<TableChange, 'columns'>): number {
    return findPartitionSpec(this.#options.partitionBy, columns)?.column.id ?? 0
  }

  async commit(state: TableState | null, change: TableChange): Promise<'committed' | 'lost'> {
    const { now } = this.#options
    const base = (state as PlainState | null)?.manifest ?? EMPTY
    const sequence = base.sequence + 1
    const { target, token, mode, columns, isFirst, isLast } = change
    const before = base[target]?.files ?? []
    const branch: ManifestBranch = {
      token,
      mode,
      columns,
      files: [
        ...before.filter(({ path }) => !isFirst && !change.removed.has(path)),
        ...change.data.map((file) => toManifestFile({ ...file, sequence })),
      ],
    }
    const live = isLast || target === 'live' ? branch : base.live
    const loading = isLast ? null : target === 'loading' ? branch : base.loading
    const kept = new Set([...(live?.files ?? []), ...(loading?.files ?? [])].map(({ path }) => path))
    const dropped = [...(base.live?.files ?? []), ...(base.loading?.files ?? [])].filter(({ path }) => !kept.has(path))
    const at = now()
    const manifest: Manifest = {
      format: 'tidemark-parquet-1',
      sequence,
      lastColumnId: change.lastColumnId,
      live,
      loading,
      replaced: [
        ...base.replaced.filter((file) => at - file.at < this.#options.keepMs),
        ...dropped.map(({ path }) => ({ path, at })),
      ],
    }
    return this.#create((state?.version ?? 0) + 1, manifest)
  }

  async remove(): Promise<void> {
    const { storage, folder } = this.#options
    const state = await this.load()
    if (state === null) return
    const version = state.version + 1
    if ((await this.#create(version, { ...EMPTY, sequence: state.sequence })) === 'lost')
      throw new SyncError('DESTINATION_UNAVAILABLE', `${this.#location}: another process wrote to the table.`)
    const last = this.#versions.pathOf(version)
    const files = (await storage.list(folder)).map(({ path }) => path)
    await storage.remove(files.filter((path) => path !== last && path !== this.#versions.hintPath))
    await storage.remove([last])
    await storage.remove([this.#versions.hintPath])
  }

  async sweep(): Promise<void> {
    const { storage, folder, keepMs, now } = this.#options
    const files = await storage.list(folder)
    const state = await this.load()
    if (state === null) return
    const { live, loading, replaced } = state.manifest
    const used = new Set([this.#versions.hintPath, this.#livePath])
    const before = now() - keepMs
    for (const { path } of [...(live?.files ?? []), ...(loading?.files ?? [])]) used.add(`${folder}/${path}`)
    for (const { path, at } of replaced) if (at >= before) used.add(`${folder}/${path}`)
    for (let version = state.version; version > state.version - VERSIONS_KEPT; version--)
      used.add(this.#versions.pathOf(version))
    await removeUnused(storage, files, used, before)
  }

  async #create(version: number, manifest: Manifest): Promise<'committed' | 'lost'> {
    return (await this.#versions.create(version, Buffer.from(JSON.stringify(manifest)))) ? 'committed' : 'lost'
  }

  /** `live.json` follows the version. After a crash in between, the next session writes it. */
  async #publish(version: number, bytes: Uint8Array): Promise<void> {
    const { live } = JSON.parse(Buffer.from(bytes).toString()) as Manifest
    const files = live?.files.map(({ path }) => `${this.#readerLocation}/${path}`) ?? []
    const shown = { version, token: live?.token ?? null, mode: live?.mode ?? null, files }
    await this.#options.storage.write(this.#livePath, Buffer.from(`${JSON.stringify(shown, null, 1)}\n`))
  }

  get #livePath(): string {
    return `${this.#options.folder}/${FOLDER}/live.json`
  }

  get #location(): string {
    return `${this.#options.storage.uri}/${this.#options.folder}`
  }

  /** Readers of Parquet take a plain path for a local file. */
  get #readerLocation(): string {
    return this.#location.replace(/^file:\/\//, '')
  }
}

const EMPTY: Manifest = {
  format: 'tidemark-parquet-1',
  sequence: 0,
  lastColumnId: 0,
  live: null,
  loading: null,
  replaced: [],
}

function toBranch(branch: ManifestBranch | null): Branch | null {
  if (branch === null) return null
  const { token, mode, columns, files } = branch
  return { token, mode, columns, files: async () => ({ data: files.map(toDataFile), deletes: [] }) }
}

function toManifestFile(file: DataFile): ManifestFile {
  return { ...file, lower: file.lower?.toString() ?? null, upper: file.upper?.toString() ?? null }
}

function toDataFile(file: ManifestFile): DataFile {
  const toBuffer = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text))
  return { ...file, lower: toBuffer(file.lower), upper: toBuffer(file.upper) }
}
