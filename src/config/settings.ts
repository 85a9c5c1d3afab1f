import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { SyncError } from '../contract/index.ts'
import { parseLogLevel, type LogLevel } from '../platform/log.ts'
import { registerEnvironmentSecrets } from '../redaction/known-secrets.ts'
import { checkName } from './names.ts'

export interface SettingsInput {
  /** What the command line said. */
  readonly flags?: { readonly store?: string | undefined; readonly tenant?: string | undefined; readonly log?: string | undefined }
  readonly environment: Environment
  /** The worker's folder: where `.env` is read and where a relative store lives. */
  readonly folder: string
}

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  readonly storeUrl: string
  readonly tenant: string
  readonly logLevel: LogLevel
  /** Whether vendors are told the trace that asks them. */
  readonly sendTraceparent: boolean
  readonly folder: string
  /** The environment over `.env`: what secrets are read from. */
  readonly environment: Environment
}

export const DEFAULT_STORE_URL = 'sqlite:.tidemark/tidemark.db'

/** Flag over environment over `.env` over default. What is set to nothing counts as not set. */
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

/** The environment over `.env`. Nothing is written back to it here; `loadWorker` does that for the code of a worker. */
export function withEnvFile(environment: Environment, folder: string): Environment {
  const file = join(folder, '.env')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    // A folder of that name is somebody's virtual environment, not ours.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return environment
    throw new SyncError('SECRET_MISSING', `${file} is there but cannot be read (${code ?? 'unknown error'}).`, { cause })
  }
  const set = Object.entries(environment).filter(([, value]) => value !== undefined)
  const whole = { ...parseEnv(text.replace(/^\uFEFF/, '')), ...Object.fromEntries(set) }
  // Before anybody looks one up: a worker that reads the environment by itself may quote it too.
  registerEnvironmentSecrets(whole)
  return whole
}
