import { SyncError } from '../../contract/index.ts'
import { describeValue } from '../../config/names.ts'

/** The part of a `@notionhq/workers` worker that is read. The package is the user's own and is not imported for it. */
export interface NotionWorker {
  readonly manifest: NotionManifest
  run(key: string, context: { readonly state?: unknown }, options: { readonly concreteOutput: true }): Promise<unknown>
}

export interface NotionManifest {
  readonly sdkVersion: string
  readonly credentials?: readonly { readonly key: string }[]
  readonly databases: readonly NotionDatabase[]
  readonly pacers: readonly {
    readonly key: string
    readonly config: { readonly allowedRequests: number; readonly intervalMs: number }
  }[]
  readonly capabilities: readonly NotionCapability[]
}

export interface NotionDatabase {
  readonly key: string
  readonly config: { readonly schema: { readonly properties: NotionProperties } }
}

export type NotionProperties = Readonly<Record<string, { readonly type: string }>>

export interface NotionCapability {
  readonly _tag: string
  readonly key: string
  readonly config: {
    /** Only for a sync into a database. */
    readonly databaseKey?: string
    readonly mode?: 'replace' | 'incremental' | undefined
    readonly schedule?: NotionSchedule | undefined
    /** Only for an OAuth provider. */
    readonly name?: string
  }
}

export type NotionSchedule =
  | { readonly type: 'continuous' }
  | { readonly type: 'manual' }
  | { readonly type: 'interval'; readonly intervalMs: number }
  /** Not part of the package; `sdk.ts` adds it. */
  | { readonly type: 'cron'; readonly cron: string; readonly zone?: string }

export const NOTION_PACKAGE = '@notionhq/workers'
/** The recommended release. */
export const TESTED_VERSION = '0.9.2'
/** The tested minor versions; patch releases count as the same. */
const SUPPORTED_SERIES = ['0.4', '0.8', '0.9']

/** Checks the structure, because the user's copy of the package is another one. Throws PACKAGE_UNFIT for an unknown release. */
export function isNotionWorker(value: unknown): value is NotionWorker {
  if (typeof value !== 'object' || value === null) return false
  const { run, tool, sync, manifest } = value as Partial<Record<'run' | 'tool' | 'sync' | 'manifest', unknown>>
  if (![run, tool, sync].every((method) => typeof method === 'function')) return false
  const version = (manifest as Partial<NotionManifest> | undefined)?.sdkVersion
  if (typeof version === 'string' && isSupportedVersion(version)) return true
  throw new SyncError(
    'PACKAGE_UNFIT',
    `The worker uses ${NOTION_PACKAGE} ${version === undefined ? 'in an unknown release' : describeValue(version)}, but only ${SUPPORTED_SERIES.map((series) => `${series}.x`).join(', ')} are supported. Run \`npm install ${NOTION_PACKAGE}@${TESTED_VERSION}\`.`,
  )
}

function isSupportedVersion(version: string): boolean {
  return /^\d+\.\d+\.\d+/.test(version) && SUPPORTED_SERIES.includes(seriesOf(version))
}

function seriesOf(version: string): string {
  return version.split('.').slice(0, 2).join('.')
}
