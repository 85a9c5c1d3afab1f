import { AsyncLocalStorage } from 'node:async_hooks'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SyncError, type Pacing } from '../../contract/index.ts'
import { withEnvFile } from '../../config/settings.ts'
import { NOTION_PACKAGE, TESTED_VERSION } from './manifest.ts'

/** The pacing of the current cycle. */
const cyclePacing = new AsyncLocalStorage<Pacing>()

/** During the call, pacers of the package use the engine's pacing: its clock, its wait budget and its cancellation. */
export function withPacing<T>(given: Pacing, call: () => Promise<T>): Promise<T> {
  return cyclePacing.run(given, call)
}

/**
 * The modules that a worker file gets for `@notionhq/workers`: the user's own install, with the engine's pacing. The
 * package keeps pacer state in a module variable, which concurrent syncs would share, and its timer cannot be
 * cancelled. Empty if the package is not installed for the file.
 */
export async function loadNotionModules(file: string): Promise<Record<string, unknown>> {
  const [main, pacer] = [NOTION_PACKAGE, `${NOTION_PACKAGE}/pacer`].map((name) => resolveFrom(file, name))
  if (main == null || pacer == null) return {}
  try {
    const [sdk, { Pacer }] = (await Promise.all([
      import(pathToFileURL(main).href),
      import(pathToFileURL(pacer).href),
    ])) as [NotionSdk, { Pacer: NotionPacer }]
    return {
      [NOTION_PACKAGE]: { ...sdk, Worker: wrapWorkerClass(sdk.Worker) },
      [`${NOTION_PACKAGE}/pacer`]: { Pacer: { wait: (key: string) => waitForPacer(key, () => Pacer.wait(key)) } },
    }
  } catch {
    // A worker that imports the package gets the same error from the loader; others do not need it.
    return {}
  }
}

/**
 * Copies `.env` into `process.env` for the worker code, without overwriting variables. The `.env` of a Notion worker may
 * also be next to the nearest package.json, where its own runtime reads it.
 */
export function applyEnvFile(file: string, isNotion: boolean): void {
  const folder = dirname(file)
  for (const envFolder of new Set([folder, ...(isNotion ? [findPackageFolder(folder)] : [])]))
    Object.assign(process.env, withEnvFile(process.env, envFolder))
}

/** The template names every Notion worker `src/index.ts`, so the package name distinguishes them in a store. */
export function readPackageName(file: string): string | null {
  try {
    const { name } = JSON.parse(readFileSync(join(findPackageFolder(dirname(file)), 'package.json'), 'utf8')) as {
      name?: unknown
    }
    return typeof name === 'string' ? name : null
  } catch {
    return null
  }
}

/** Null for an error that does not concern this package. */
export function toMissingPackageError(error: unknown, shownFile: string, file: string): SyncError | null {
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string }
  const name = /'(@notionhq\/[\w-]+)/.exec(message)?.[1]
  if (name === undefined || (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND')) return null
  const wanted = name === NOTION_PACKAGE ? `${NOTION_PACKAGE}@${TESTED_VERSION} @notionhq/client` : name
  return new SyncError(
    'PACKAGE_UNFIT',
    `${shownFile} needs ${name}, which is not installed for it. Run \`npm install ${wanted}\` in ${findPackageFolder(dirname(file))}.`,
    { cause: error },
  )
}

interface NotionPacer {
  wait(key: string): Promise<void>
}

interface SdkWorker {
  pacer(key: string, config: unknown): { readonly wait: () => Promise<void> }
  sync(key: string, config: { readonly schedule?: unknown }): { readonly config: { schedule?: unknown } }
}

type WorkerClass = new (...given: any[]) => SdkWorker

interface NotionSdk {
  readonly Worker: WorkerClass
}

function wrapWorkerClass(Worker: WorkerClass): WorkerClass {
  return class extends Worker {
    override pacer(key: string, config: unknown): { readonly wait: () => Promise<void> } {
      const handle = super.pacer(key, config)
      return { ...handle, wait: () => waitForPacer(key, handle.wait) }
    }

    /** The package rejects cron schedules. It gets a manual schedule, and the manifest gets the cron, which the runner uses. */
    override sync(key: string, config: { readonly schedule?: unknown }): { readonly config: { schedule?: unknown } } {
      const { schedule } = config
      if (typeof schedule !== 'object' || schedule === null || !('cron' in schedule)) return super.sync(key, config)
      const capability = super.sync(key, { ...config, schedule: 'manual' })
      capability.config.schedule = { type: 'cron', ...schedule }
      return capability
    }
  }
}

/** Outside a cycle, such as in a tool call, the package's own pacing applies. */
function waitForPacer(key: string, otherwise: () => Promise<void>): Promise<void> {
  const current = cyclePacing.getStore()
  return current === undefined ? otherwise() : current.wait(key)
}

function resolveFrom(file: string, name: string): string | null {
  try {
    return createRequire(file).resolve(name)
  } catch {
    return null
  }
}

function findPackageFolder(folder: string): string {
  for (let current = folder; ; current = dirname(current)) {
    if (existsSync(join(current, 'package.json'))) return current
    if (dirname(current) === current) return folder
  }
}
