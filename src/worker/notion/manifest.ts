import { SyncError } from '../../contract/index.ts'
import { describeValue } from '../../config/names.ts'

/** What is read of a worker written on `@notionhq/workers`; the package itself is the user's own and is never imported for it. */
export interface NotionWorker {
  readonly manifest: NotionManifest
  run(key: string, context: { readonly state?: unknown }, options: { readonly concreteOutput: true }): Promise<unknown>
}

export interface NotionManifest {
  readonly sdkVersion: string
  readonly credentials?: readonly { readonly key: string }[]
  readonly databases: readonly NotionDatabase[]
  readonly pacers: readonly { readonly key: string; readonly config: { readonly allowedRequests: number; readonly intervalMs: number } }[]
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
    /** Of a sync into a database; one into another kind of table has none. */
    readonly databaseKey?: string
    readonly mode?: 'replace' | 'incremental' | undefined
    readonly schedule?: NotionSchedule | undefined
    /** Of an OAuth provider. */
    readonly name?: string
  }
}

export type NotionSchedule =
  | { readonly type: 'continuous' }
  | { readonly type: 'manual' }
  | { readonly type: 'interval'; readonly intervalMs: number }
  /** The package itself has none; `sdk.ts` adds it. */
  | { readonly type: 'cron'; readonly cron: string; readonly zone?: string }

export const NOTION_PACKAGE = '@notionhq/workers'
/** The release that is recommended. */
export const TESTED_VERSION = '0.9.2'
/** The series that the tests run; releases that differ in the last number only are taken as the same. */
const SUPPORTED_SERIES = ['0.4', '0.8', '0.9']

/** By structure: the user's package is another copy than any we could compare with. Throws PACKAGE_UNFIT for a release we do not know. */
export function isNotionWorker(value: unknown): value is NotionWorker {
  if (typeof value !== 'object' || value === null) return false
  const { run, tool, sync, manifest } = value as Partial<Record<'run' | 'tool' | 'sync' | 'manifest', unknown>>
  if (![run, tool, sync].every((method) => typeof method === 'function')) return false
  const version = (manifest as Partial<NotionManifest> | undefined)?.sdkVersion
  if (typeof version === 'string' && isSupportedVersion(version)) return true
  throw new SyncError('PACKAGE_UNFIT', `The worker is written on ${NOTION_PACKAGE} ${version === undefined ? 'of a release that does not say which' : describeValue(version)}; supported are ${SUPPORTED_SERIES.map((series) => `${series}.x`).join(', ')}. Run \`npm install ${NOTION_PACKAGE}@${TESTED_VERSION}\`.`)
}

function isSupportedVersion(version: string): boolean {
  return /^\d+\.\d+\.\d+/.test(version) && SUPPORTED_SERIES.includes(seriesOf(version))
}

function seriesOf(version: string): string {
  return version.split('.').slice(0, 2).join('.')
}
