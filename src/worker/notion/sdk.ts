import { AsyncLocalStorage } from 'node:async_hooks'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SyncError, type Pacing } from '../../contract/index.ts'
import { withEnvFile } from '../../config/settings.ts'
import { NOTION_PACKAGE, TESTED_VERSION } from './manifest.ts'

/** The pacing of the cycle that the running code belongs to. */
const cyclePacing = new AsyncLocalStorage<Pacing>()

/** Whatever waits for a pacer during the call, waits for ours: on the engine's clock, within its budget, until it is stopped. */
export function withPacing<T>(given: Pacing, call: () => Promise<T>): Promise<T> {
  return cyclePacing.run(given, call)
}

/**
 * What a worker file gets for `@notionhq/workers`: the user's own install, with pacers that wait for ours during a cycle.
 * The package keeps where its pacers stand in one variable of the module, so that two syncs at once would take each
 * other's slots, and it sleeps on a timer that nothing can stop; neither can be told from outside. Empty when the file's
 * folder has no such package.
 */
export async function loadNotionModules(file: string): Promise<Record<string, unknown>> {
  const [main, pacer] = [NOTION_PACKAGE, `${NOTION_PACKAGE}/pacer`].map((name) => resolveFrom(file, name))
  if (main == null || pacer == null) return {}
  try {
    const [sdk, { Pacer }] = (await Promise.all([import(pathToFileURL(main).href), import(pathToFileURL(pacer).href)])) as [NotionSdk, { Pacer: NotionPacer }]
    return { [NOTION_PACKAGE]: { ...sdk, Worker: wrapWorkerClass(sdk.Worker) }, [`${NOTION_PACKAGE}/pacer`]: { Pacer: { wait: (key: string) => waitForPacer(key, () => Pacer.wait(key)) } } }
  } catch {
    // Whoever imports it will meet the same, and be told; a worker that does not is none the worse.
    return {}
  }
}

/**
 * Puts the variables of `.env` into `process.env`, where the code of a worker looks for them. Variables that are set already
 * stay. A Notion worker's `.env` may also lie beside the nearest package.json, where its own runtime reads it.
 */
export function applyEnvFile(file: string, isNotion: boolean): void {
  const folder = dirname(file)
  for (const place of new Set([folder, ...(isNotion ? [findPackageFolder(folder)] : [])])) Object.assign(process.env, withEnvFile(process.env, place))
}

/** Every worker of this kind is a `src/index.ts` by its template: what tells them apart in one store is the package around it. */
export function readPackageName(file: string): string | null {
  try {
    const { name } = JSON.parse(readFileSync(join(findPackageFolder(dirname(file)), 'package.json'), 'utf8')) as { name?: unknown }
    return typeof name === 'string' ? name : null
  } catch {
    return null
  }
}

/** Null for an error that is not about this package. */
export function toMissingPackageError(error: unknown, shownFile: string, file: string): SyncError | null {
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string }
  const name = /'(@notionhq\/[\w-]+)/.exec(message)?.[1]
  if (name === undefined || (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND')) return null
  const wanted = name === NOTION_PACKAGE ? `${NOTION_PACKAGE}@${TESTED_VERSION} @notionhq/client` : name
  return new SyncError('PACKAGE_UNFIT', `${shownFile} needs ${name}, which is not installed for it. Run \`npm install ${wanted}\` in ${findPackageFolder(dirname(file))}.`, { cause: error })
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

    /** The package refuses a cron schedule. It gets a manual one, and its manifest the cron, which is run here. */
    override sync(key: string, config: { readonly schedule?: unknown }): { readonly config: { schedule?: unknown } } {
      const { schedule } = config
      if (typeof schedule !== 'object' || schedule === null || !('cron' in schedule)) return super.sync(key, config)
      const capability = super.sync(key, { ...config, schedule: 'manual' })
      capability.config.schedule = { type: 'cron', ...schedule }
      return capability
    }
  }
}

/** Outside a cycle (a tool called by a program of the user's own) the package's way. */
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
  for (let place = folder; ; place = dirname(place)) {
    if (existsSync(join(place, 'package.json'))) return place
    if (dirname(place) === place) return folder
  }
}
