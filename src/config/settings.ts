import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { SyncError } from '../contract/index.ts'
import { parseLogLevel, type LogLevel } from '../platform/log.ts'
import { registerEnvironmentSecrets } from '../redaction/known-secrets.ts'
import { checkName } from './names.ts'

export interface SettingsInput {
  /** The flags of the command line. */
  readonly flags?: {
    readonly store?: string | undefined
    readonly tenant?: string | undefined
    readonly log?: string | undefined
  }
  readonly environment: Environment
  /** The folder of the worker, for `.env` and a relative store path. */
  readonly folder: string
}

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  readonly storeUrl: string
  readonly tenant: string
  readonly logLevel: LogLevel
  /** Whether requests to vendors carry a traceparent header. */
  readonly sendTraceparent: boolean
  readonly folder: string
  /** The environment merged over `.env`; secrets are read from it. */
  readonly environment: Environment
}

export const DEFAULT_STORE_URL = 'sqlite:.tidemark/tidemark.db'

/** Precedence: flag, environment, `.env`, default. An empty value counts as not set. */
export function resolveSettings(input: SettingsInput): Settings {
  const { flags = {}, folder } = input
  const environment = withEnvFile(input.environment, folder)
  const tenant = flags.tenant ?? (environment['TIDEMARK_TENANT'] || 'default')
  checkName('tenant', tenant)
  return {
    storeUrl: flags.store ?? (environment['TIDEMARK_STORE'] || DEFAULT_STORE_URL),
    tenant,
    logLevel: parseLogLevel(flags.log ?? (environment['TIDEMARK_LOG'] || 'warn')),
    sendTraceparent: environment['TIDEMARK_TRACEPARENT'] === 'send',
    folder,
    environment,
  }
}

/** Merges the environment over `.env` without modifying process.env; `loadWorker` does that for worker code. */
export function withEnvFile(environment: Environment, folder: string): Environment {
  const file = join(folder, '.env')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    // A folder named .env is a virtual environment.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return environment
    throw new SyncError(
      'SECRET_MISSING',
      `${file} exists but cannot be read (${code ?? 'unknown error'}). Check its permissions.`,
      { cause },
    )
  }
  const set = Object.entries(environment).filter(([, value]) => value !== undefined)
  const whole = { ...parseEnv(text.replace(/^\uFEFF/, '')), ...Object.fromEntries(set) }
  // Registers all values early, because a worker may read the environment directly and quote it.
  registerEnvironmentSecrets(whole)
  return whole
}
