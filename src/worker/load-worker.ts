import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { SyncError } from '../contract/index.ts'
import { toLocatedError } from './located-error.ts'
import { toValidName } from '../config/names.ts'
import { isNotionWorker } from './notion/manifest.ts'
import { applyEnvFile, toMissingPackageError, loadNotionModules, readPackageName } from './notion/sdk.ts'
import { NotionWorkerAdapter } from './notion/worker-adapter.ts'
import { isWorker, type WorkerLike } from './worker.ts'

export interface LoadedWorker {
  readonly worker: WorkerLike
  readonly file: string
}

export interface LoadWorkerOptions {
  /** The folder that a relative file path refers to. */
  readonly folder?: string
}

/** The folder of the running code: `src` in a checkout, `dist` when installed. */
const PACKAGE_ROOT = fileURLToPath(new URL('..', import.meta.url))
const WORKER_FILE_NAMES = ['worker.ts', 'worker.mts', 'worker.js', 'worker.mjs', 'tidemark.yaml', 'tidemark.yml']

/** Loads a worker. Without a file, the first of WORKER_FILE_NAMES in the folder. */
export async function loadWorker(file?: string, options: LoadWorkerOptions = {}): Promise<LoadedWorker> {
  const folder = options.folder ?? process.cwd()
  const path = findWorkerFile(file, folder)
  const shownFile = relative(folder, path) || path
  const worker = isManifest(path)
    ? await loadManifestWorker(path, shownFile)
    : readDefaultExport(await importWorkerFile(path, folder), shownFile)
  worker.name ??=
    worker instanceof NotionWorkerAdapter && fileStem(path) === 'index'
      ? toValidName(readPackageName(path) ?? 'index')
      : defaultWorkerName(path)
  return { worker, file: path }
}

/** The registry name of a worker that declares no name. */
export function defaultWorkerName(path: string): string {
  return toValidName(fileStem(path))
}

function fileStem(path: string): string {
  return basename(path, extname(path))
}

function findWorkerFile(file: string | undefined, folder: string): string {
  const candidates = file === undefined ? WORKER_FILE_NAMES : [file]
  const found = candidates
    .map((candidate) => resolve(folder, candidate))
    .find((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
  if (found !== undefined) return found
  throw new SyncError(
    'WORKER_NOT_FOUND',
    file === undefined ? `No worker.ts found in ${folder}.` : describeMissing(resolve(folder, file)),
  )
}

function describeMissing(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined
    ? `The file ${path} does not exist.`
    : `${path} is not a file.`
}

export function isManifest(path: string): boolean {
  return /^\.ya?ml$/.test(extname(path))
}

/** Imported only for a manifest, so that a code worker starts without the YAML parser. */
async function loadManifestWorker(path: string, shownFile: string): Promise<WorkerLike> {
  const { buildWorker: workerOf } = await import('../config/manifest/manifest.ts')
  return workerOf(path, shownFile)
}

/** Imports the user's file, in TypeScript or JavaScript. */
async function importWorkerFile(path: string, folder: string): Promise<unknown> {
  const aliases = listSubpaths()
  const [{ createJiti }, tidemark, notion, own] = await Promise.all([
    import('jiti'),
    import('../index.ts'),
    loadNotionModules(path),
    loadNamedModules(path, aliases),
  ])
  applyEnvFile(path, Object.keys(notion).length > 0)
  const jiti = createJiti(pathToFileURL(path).href, {
    // No cache: the folder may be read-only, and other users could plant code in a shared cache.
    fsCache: false,
    moduleCache: false,
    // Imports of tidemark resolve to the running package, even if it is not installed in the folder.
    virtualModules: { tidemark, ...notion, ...own },
    alias: aliases,
  })
  try {
    return await jiti.import(path)
  } catch (error) {
    throw (
      toMissingPackageError(error, relative(folder, path) || path, path) ??
      toLocatedError(error, path, { folder, packageRoot: PACKAGE_ROOT, loader: fileURLToPath(import.meta.url) })
    )
  }
}

/** Preloads the package modules that the file names, because the loader would compile TypeScript sources each time. */
async function loadNamedModules(
  path: string,
  aliases: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const text = readFileSync(path, 'utf8')
  const named = Object.entries(aliases).filter(([name]) => text.includes(`'${name}'`) || text.includes(`"${name}"`))
  const modules = await Promise.all(
    named.map(async ([name, file]) => {
      // A module that cannot be loaded is left to the loader, which reports the importing line.
      const module: unknown = await import(pathToFileURL(file).href).catch(() => null)
      return module === null ? [] : [[name, module] as const]
    }),
  )
  return Object.fromEntries(modules.flat())
}

/** Maps `tidemark/sources/stripe` to its file, as in the package's exports, and the simulators to theirs. */
function listSubpaths(): Record<string, string> {
  const extension = extname(import.meta.url)
  const aliases: Record<string, string> = {}
  for (const [folder, module] of [
    ['sources', 'source'],
    ['destinations', 'destination'],
    ['stores', 'store'],
  ] as const) {
    const parent = join(PACKAGE_ROOT, folder)
    for (const name of existsSync(parent) ? readdirSync(parent) : []) {
      const file = join(parent, name, module + extension)
      if (existsSync(file)) aliases[`tidemark/${folder}/${name}`] = file
    }
  }
  for (const [name, folder] of [
    ['connector', 'connector'],
    ['store', 'stores'],
    ['testing', 'testing'],
  ] as const) {
    const file = join(PACKAGE_ROOT, folder, `index${extension}`)
    if (existsSync(file)) aliases[`tidemark/${name}`] = file
  }
  const simulators = findSimulators()
  return simulators === null ? aliases : { ...aliases, '@tidemark/simulators': simulators }
}

/** The simulators installed beside the running package. Null without them; the worker then needs them itself. */
function findSimulators(): string | null {
  try {
    return createRequire(import.meta.url).resolve('@tidemark/simulators')
  } catch {
    return null
  }
}

function readDefaultExport(module: unknown, shownFile: string): WorkerLike {
  const exported = typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined
  if (isWorker(exported)) return exported
  if (isNotionWorker(exported)) return new NotionWorkerAdapter(exported)
  throw new SyncError(
    'WORKER_INVALID',
    `The default export of ${shownFile} is ${describeExport(exported, module)}, not a worker.`,
  )
}

function describeExport(exported: unknown, module: unknown): string {
  const names = typeof module === 'object' && module !== null ? Object.keys(module) : []
  if (!names.includes('default'))
    return names.length === 0 ? 'missing' : `missing (it exports ${names.slice(0, 5).join(', ')})`
  if (typeof exported === 'function') {
    const isClass = /^class\b/.test(Function.prototype.toString.call(exported))
    return isClass ? `the class ${exported.name} itself (write \`new ${exported.name}()\`)` : 'a function'
  }
  if (typeof exported !== 'object' || exported === null) return exported === null ? 'null' : `a ${typeof exported}`
  const fields = Object.keys(exported).slice(0, 5).join(', ')
  return exported instanceof Promise
    ? 'a promise (write `export default await …`)'
    : `an object with ${fields === '' ? 'no fields' : fields}`
}
