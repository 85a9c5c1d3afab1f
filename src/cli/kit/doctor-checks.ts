import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { required } from '../../values/required.ts'
import { isSyncError, type Store, type Webhook } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import {
  describeColumnRuleChange,
  findColumnRuleChanges,
  type ColumnRuleChange,
} from '../../runner/column-rule-changes.ts'
import { PAUSED_PREFIX } from '../../webhooks/manage-webhooks.ts'
import { locateStore } from '../../stores/drivers.ts'
import type { Cli } from '../cli.ts'
import { formatNumber } from './counts.ts'
import { formatDuration } from './duration.ts'
import { openExistingStore } from './open-existing-store.ts'
import { adviceFor } from './report-error.ts'
import { readSyncStatus } from './sync-status.ts'
import {
  describeNotRun,
  resolveStoreTarget,
  loadWorkerTarget,
  type Target,
  type TargetFlags,
  type WorkerTarget,
} from './target.ts'
import { describeDrift } from '../../values/describe-drift.ts'

export interface DoctorFinding {
  readonly check: string
  readonly verdict: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** A command or an instruction; null if nothing needs fixing. */
  readonly fix: string | null
}

/** Runs every check in order. Skips those that depend on a failed one. */
export async function runDoctorChecks(cli: Cli, flags: TargetFlags): Promise<DoctorFinding[]> {
  const findings = [checkNode(process.versions.node)]
  const target = await loadTarget(cli, flags, findings)
  if (target === null) return findings
  if ('worker' in target) findings.push(checkSecrets(cli, target))
  findings.push(...checkStorage(target))
  let store: Store | null = null
  try {
    store = await openExistingStore(target)
    findings.push(
      ok(
        'store',
        store === null
          ? `${target.storeLabel} does not exist yet; the first run creates it`
          : `${target.storeLabel} opens and its schema is current`,
      ),
    )
    findings.push(await checkClock(store))
    if ('worker' in target)
      for (const { name } of target.worker.manifest.syncs) findings.push(...(await checkSync(store, target, name)))
    if (store !== null && 'worker' in target)
      for (const change of await findColumnRuleChanges(store, target.worker.plans(), systemClock))
        findings.push(
          warn(
            `column rules of ${change.database}`,
            describeColumnRuleChange(change) + describeRewrite(change),
            change.command,
          ),
        )
    for (const webhook of (await store?.webhooks()) ?? []) findings.push(checkWebhook(webhook))
    for (const drift of (await store?.schemaDrift()) ?? [])
      findings.push(
        warn(`columns of ${drift.database}`, describeDrift(drift), `npx tidemark schema plan ${drift.database}`),
      )
  } catch (error) {
    findings.push(
      failWithError(
        'store',
        error,
        `Check that the store is running and that --store or TIDEMARK_STORE is correct: ${target.storeLabel}`,
      ),
    )
  } finally {
    await store?.close()
  }
  return findings
}

function describeRewrite({ rewrite }: ColumnRuleChange): string {
  return rewrite === undefined ? '' : `, or after \`${rewrite}\`, which does not read the source`
}

const NODE_MIN = [20, 19] as const

function checkNode(version: string): DoctorFinding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isSupported = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])
  return isSupported
    ? ok('node', `Node ${version}`)
    : fail('node', `Node ${version} is too old; ${NODE_MIN.join('.')} or later is required`, 'nvm install 22')
}

/** Falls back to the store alone when the worker cannot be loaded. */
async function loadTarget(
  cli: Cli,
  flags: TargetFlags,
  findings: DoctorFinding[],
): Promise<Target | WorkerTarget | null> {
  try {
    const target = await loadWorkerTarget(cli, flags)
    const { syncs, databases } = target.worker.manifest
    const what = `${target.name} in ${target.file}: ${pluralize(syncs.length, 'sync')}, ${pluralize(databases.length, 'database')}`
    findings.push(
      syncs.length === 0 ? warn('worker', what, 'Declare one with worker.sync(name, …)') : ok('worker', what),
    )
    const notRun = describeNotRun(target)
    if (notRun !== null)
      findings.push(
        warn('not run here', notRun, 'Keep running them in their own runtime; only syncs into databases run here'),
      )
    return target
  } catch (error) {
    findings.push(failWithError('worker', error, 'npx tidemark init'))
  }
  try {
    return resolveStoreTarget(cli, flags)
  } catch (error) {
    findings.push(failWithError('settings', error, 'Check the flags, the environment and .env'))
    return null
  }
}

/**
 * Finds secret names in the text of the worker file, without comments: `secrets.get('NAME')` and names from
 * `.env.example`. Imported files are not read. A secret with a simulated fallback need not be set.
 */
function checkSecrets(cli: Cli, { file, settings }: WorkerTarget): DoctorFinding {
  const text = readFileSync(resolve(cli.folder, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/[^\n]*/g, '')
  const offered = new Set(readSettingNames(resolve(settings.folder, '.env.example')))
  const quoted = [...text.matchAll(/(secrets\.get\(\s*|unless:\s*)?['"`](?:\$\{)?([^'"`${}]+)\}?['"`]/g)].map(
    ([, before = '', name = '']) => ({ before, name }),
  )
  const names = [
    ...new Set(
      quoted.filter(({ before, name }) => before.startsWith('secrets') || offered.has(name)).map(({ name }) => name),
    ),
  ]
  const missing = names.filter((name) => !settings.environment[name])
  const env = resolve(settings.folder, '.env')
  const simulated = quoted.filter(({ before, name }) => before.startsWith('unless') && missing.includes(name))
  if (simulated.length > 0)
    return ok('secrets', `${simulated.map(({ name }) => name).join(', ')}: not set; using simulated data`)
  if (missing.length > 0)
    return warn(
      'secrets',
      `not set: ${missing.join(', ')}`,
      `Add ${missing.map((name) => `${name}=…`).join(' ')} to ${env}`,
    )
  if (process.platform !== 'win32' && existsSync(env) && (statSync(env).mode & 0o077) !== 0)
    return warn('secrets', `${env} is readable by other users of this machine`, `chmod 600 ${env}`)
  return ok('secrets', names.length === 0 ? 'the worker file uses none' : `${names.join(', ')}: set`)
}

/** Includes settings that are commented out. */
function readSettingNames(example: string): string[] {
  return existsSync(example)
    ? [...readFileSync(example, 'utf8').matchAll(/^#?\s*([A-Z][A-Z0-9_]*)=/gm)].map(([, name = '']) => name)
    : []
}

const DISK_WARN_BYTES = 1024 ** 3
const DISK_FAIL_BYTES = 100 * 1024 ** 2

function checkStorage({ settings, storeLabel }: Target): DoctorFinding[] {
  const { storage } = locateStore(settings.storeUrl, settings.folder)
  if (storage.kind !== 'file') return []
  const path = nearestExisting(storage.path)
  const findings: DoctorFinding[] = []
  try {
    accessSync(path, constants.W_OK)
    if (path === storage.path) accessSync(dirname(path), constants.W_OK)
    findings.push(ok('write access', `${storeLabel} is writable`))
  } catch {
    findings.push(fail('write access', `${path} is not writable by this user`, `chmod u+w ${path}`))
  }
  const { bavail, bsize } = statfsSync(dirname(path))
  const free = bavail * bsize
  const message = `${formatNumber(Math.floor(free / 1024 ** 2))} MB free`
  if (free < DISK_FAIL_BYTES)
    findings.push(fail('disk', message, 'Free disk space, or choose another location with --store'))
  else
    findings.push(
      free < DISK_WARN_BYTES
        ? warn('disk', message, 'Free disk space, or choose another location with --store')
        : ok('disk', message),
    )
  return findings
}

function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))
}

/** An earlier system time is wrong: it predates this code. */
const EARLIEST_PLAUSIBLE_TIME_MS = Date.UTC(2025, 0, 1)

/** If the newest commit lies in the future, the clock was set back or was ahead before. */
async function checkClock(store: Store | null): Promise<DoctorFinding> {
  const now = systemClock.now()
  const fix = 'Enable time synchronization (timedatectl set-ntp true)'
  if (now < EARLIEST_PLAUSIBLE_TIME_MS) return fail('clock', `the system time is ${new Date(now).toISOString()}`, fix)
  const headSequence = (await store?.headSequence()) ?? 0
  const [newest] =
    store === null || headSequence === 0 ? [] : await store.changes({ after: headSequence - 1, limit: 1 })
  const aheadMs = newest === undefined ? 0 : newest.committedAt - now
  if (aheadMs > 1_000) return warn('clock', `the newest commit is ${formatDuration(aheadMs)} in the future`, fix)
  return ok('clock', new Date(now).toISOString())
}

async function checkSync(store: Store | null, target: WorkerTarget, name: string): Promise<DoctorFinding[]> {
  const declared = required(
    target.worker.manifest.syncs.find((sync) => sync.name === name),
    `sync ${name}`,
  )
  const {
    syncs: [details],
  } = await readSyncStatus(store, [{ ref: { worker: target.name, sync: name }, declared }])
  const { health, checkpoint, leaseHolder, backfillNeeded, quarantined } = required(details, `status of ${name}`)
  const findings: DoctorFinding[] = []
  const { lastError, failures } = checkpoint
  if (failures > 0 && lastError !== null) {
    findings.push(
      warn(
        `sync ${name}`,
        `${health}: failed ${pluralize(failures, 'time')} in a row, ${lastError.code}: ${lastError.message}`,
        adviceFor(lastError.code, name),
      ),
    )
  } else if (checkpoint.paused) findings.push(warn(`sync ${name}`, 'PAUSED', `npx tidemark resume ${name}`))
  else if (backfillNeeded !== null) {
    const fix = declared.pair === null ? adviceFor('HISTORY_LOST', name) : `npx tidemark run ${name}`
    findings.push(warn(`sync ${name}`, `${health}: needs a backfill: ${backfillNeeded.reason}`, fix))
  } else findings.push(ok(`sync ${name}`, health))
  if (leaseHolder?.isGone === true)
    findings.push(warn(`lease of ${name}`, `abandoned by ${leaseHolder.holder}`, `npx tidemark run ${name}`))
  if (quarantined > 0)
    findings.push(warn(`quarantine of ${name}`, pluralize(quarantined, 'record'), 'npx tidemark quarantine list'))
  return findings
}

function checkWebhook(webhook: Webhook): DoctorFinding {
  const { id, disabledReason, failureStreak, failed, lastStatus, lastResponse } = webhook
  const check = `webhook ${id}`
  if (disabledReason !== null)
    return warn(
      check,
      `disabled: ${disabledReason}`,
      disabledReason.startsWith(PAUSED_PREFIX)
        ? `npx tidemark webhooks resume ${id}`
        : `npx tidemark webhooks test ${id}, then replay ${id}`,
    )
  if (failureStreak > 0)
    return warn(
      check,
      `${pluralize(failureStreak, 'message')} in a row failed, the last with ${lastStatus ?? lastResponse ?? 'no response'}`,
      `npx tidemark webhooks test ${id}`,
    )
  if (failed > 0)
    return warn(
      check,
      `${pluralize(failed, 'message')} failed permanently`,
      `npx tidemark webhooks failed ${id}, then replay ${id}`,
    )
  return ok(check, 'enabled')
}

function failWithError(check: string, error: unknown, fix: string): DoctorFinding {
  return fail(check, isSyncError(error) ? `${error.code}: ${error.message}` : String(error), fix)
}

function pluralize(number: number, noun: string): string {
  return `${formatNumber(number)} ${noun}${number === 1 ? '' : 's'}`
}

function ok(check: string, message: string): DoctorFinding {
  return { check, verdict: 'ok', message, fix: null }
}

function warn(check: string, message: string, fix: string): DoctorFinding {
  return { check, verdict: 'warn', message, fix }
}

function fail(check: string, message: string, fix: string): DoctorFinding {
  return { check, verdict: 'fail', message, fix }
}
