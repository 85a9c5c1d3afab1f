import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isSyncError, type Store, type Webhook } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { PAUSED_PREFIX } from '../../webhooks/manage-webhooks.ts'
import { locateStore } from '../../stores/drivers.ts'
import type { Cli } from '../cli.ts'
import { formatNumber } from './counts.ts'
import { formatDuration } from './duration.ts'
import { openExistingStore } from './open-existing-store.ts'
import { adviceFor } from './report-error.ts'
import { readSyncStatus } from './sync-status.ts'
import { describeNotRun, resolveStoreTarget, loadWorkerTarget, type Target, type TargetFlags, type WorkerTarget } from './target.ts'
import { describeDrift } from '../../values/describe-drift.ts'

export interface DoctorFinding {
  readonly check: string
  readonly verdict: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** A command, or what to do. */
  readonly fix: string | null
}

/** Every check in order; one that cannot be made because an earlier one failed is left out. */
export async function runDoctorChecks(cli: Cli, flags: TargetFlags): Promise<DoctorFinding[]> {
  const findings = [checkNode(process.versions.node)]
  const target = await loadTarget(cli, flags, findings)
  if (target === null) return findings
  if ('worker' in target) findings.push(checkSecrets(cli, target))
  findings.push(...checkStorage(target))
  let store: Store | null = null
  try {
    store = await openExistingStore(target)
    findings.push(ok('store', store === null ? `${target.storeLabel} does not exist yet; the first run makes it` : `${target.storeLabel} opens and its tables are known`))
    findings.push(await checkClock(store))
    if ('worker' in target) for (const { name } of target.worker.manifest.syncs) findings.push(...(await checkSync(store, target, name)))
    for (const webhook of (await store?.webhooks()) ?? []) findings.push(checkWebhook(webhook))
    for (const drift of (await store?.schemaDrift()) ?? []) findings.push(warn(`columns of ${drift.database}`, describeDrift(drift), `npx tidemark schema plan ${drift.database}`))
  } catch (error) {
    findings.push(failWithError('store', error, `Check that the store runs and that --store or TIDEMARK_STORE is right: ${target.storeLabel}`))
  } finally {
    await store?.close()
  }
  return findings
}

const NODE_MIN = [20, 19] as const

function checkNode(version: string): DoctorFinding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const fits = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])
  return fits ? ok('node', `Node ${version}`) : fail('node', `Node ${version}; ${NODE_MIN.join('.')} or later is needed`, 'nvm install 22')
}

/** Without a worker the store can still be looked at. */
async function loadTarget(cli: Cli, flags: TargetFlags, findings: DoctorFinding[]): Promise<Target | WorkerTarget | null> {
  try {
    const target = await loadWorkerTarget(cli, flags)
    const { syncs, databases } = target.worker.manifest
    const what = `${target.name} in ${target.file}: ${pluralize(syncs.length, 'sync')}, ${pluralize(databases.length, 'database')}`
    findings.push(syncs.length === 0 ? warn('worker', what, 'Declare one with worker.sync(name, …)') : ok('worker', what))
    const notRun = describeNotRun(target)
    if (notRun !== null) findings.push(warn('not run here', notRun, 'Leave them where they run; only syncs into databases run here'))
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
 * By the text of the worker file, without its comments: what it asks for as `secrets.get('NAME')`, and what it names of
 * `.env.example`. What it imports is not looked at. What something simulated stands in for need not be set.
 */
function checkSecrets(cli: Cli, { file, settings }: WorkerTarget): DoctorFinding {
  const text = readFileSync(resolve(cli.folder, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/[^\n]*/g, '')
  const offered = new Set(readSettingNames(resolve(settings.folder, '.env.example')))
  const quoted = [...text.matchAll(/(secrets\.get\(\s*|unless:\s*)?['"`](?:\$\{)?([^'"`${}]+)\}?['"`]/g)].map(([, before = '', name]) => ({ before, name: name! }))
  const names = [...new Set(quoted.filter(({ before, name }) => before.startsWith('secrets') || offered.has(name)).map(({ name }) => name))]
  const missing = names.filter((name) => !settings.environment[name])
  const env = resolve(settings.folder, '.env')
  const stoodIn = quoted.filter(({ before, name }) => before.startsWith('unless') && missing.includes(name))
  if (stoodIn.length > 0) return ok('secrets', `${stoodIn.map(({ name }) => name).join(', ')}: not set, so that something simulated is read`)
  if (missing.length > 0) return warn('secrets', `not set: ${missing.join(', ')}`, `Add ${missing.map((name) => `${name}=…`).join(' ')} to ${env}`)
  if (process.platform !== 'win32' && existsSync(env) && (statSync(env).mode & 0o077) !== 0) return warn('secrets', `${env} can be read by others on this machine`, `chmod 600 ${env}`)
  return ok('secrets', names.length === 0 ? 'the worker file names none' : `${names.join(', ')}: set`)
}

/** Commented out or not. */
function readSettingNames(example: string): string[] {
  return existsSync(example) ? [...readFileSync(example, 'utf8').matchAll(/^#?\s*([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name!) : []
}

const DISK_WARN_BYTES = 1024 ** 3
const DISK_FAIL_BYTES = 100 * 1024 ** 2

function checkStorage({ settings, storeLabel: store }: Target): DoctorFinding[] {
  const { storage } = locateStore(settings.storeUrl, settings.folder)
  if (storage.kind !== 'file') return []
  const place = nearestExisting(storage.path)
  const findings: DoctorFinding[] = []
  try {
    accessSync(place, constants.W_OK)
    if (place === storage.path) accessSync(dirname(place), constants.W_OK)
    findings.push(ok('write access', `${store} can be written`))
  } catch {
    findings.push(fail('write access', `${place} cannot be written by this user`, `chmod u+w ${place}`))
  }
  const { bavail, bsize } = statfsSync(dirname(place))
  const free = bavail * bsize
  const message = `${formatNumber(Math.floor(free / 1024 ** 2))} MB free`
  if (free < DISK_FAIL_BYTES) findings.push(fail('disk', message, 'Free some space, or choose another place with --store'))
  else findings.push(free < DISK_WARN_BYTES ? warn('disk', message, 'Free some space, or choose another place with --store') : ok('disk', message))
  return findings
}

function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))
}

/** This was written after it. */
const EARLIEST_PLAUSIBLE_TIME_MS = Date.UTC(2025, 0, 1)

/** A clock that runs behind what the store has seen was set back, or was ahead before. */
async function checkClock(store: Store | null): Promise<DoctorFinding> {
  const now = systemClock.now()
  const fix = 'Let the system keep its time (timedatectl set-ntp true)'
  if (now < EARLIEST_PLAUSIBLE_TIME_MS) return fail('clock', `it says ${new Date(now).toISOString()}`, fix)
  const position = (await store?.headSequence()) ?? 0
  const newest = position === 0 ? undefined : (await store!.changes({ after: position - 1, limit: 1 }))[0]
  const aheadMs = newest === undefined ? 0 : newest.committedAt - now
  if (aheadMs > 1_000) return warn('clock', `the newest commit lies ${formatDuration(aheadMs)} in the future`, fix)
  return ok('clock', new Date(now).toISOString())
}

async function checkSync(store: Store | null, target: WorkerTarget, name: string): Promise<DoctorFinding[]> {
  const declared = target.worker.manifest.syncs.find((sync) => sync.name === name)!
  const { standings: [standing] } = await readSyncStatus(store, [{ ref: { worker: target.name, sync: name }, declared }])
  const { health, checkpoint, leaseHolder: held, backfillNeeded, quarantined } = standing!
  const findings: DoctorFinding[] = []
  const { lastError, failures } = checkpoint
  if (failures > 0 && lastError !== null) {
    findings.push(warn(`sync ${name}`, `${health}: failed ${pluralize(failures, 'time')} in a row, ${lastError.code}: ${lastError.message}`, adviceFor(lastError.code, name)))
  } else if (checkpoint.paused) findings.push(warn(`sync ${name}`, 'PAUSED', `npx tidemark resume ${name}`))
  else if (backfillNeeded !== null) {
    const fix = declared.pair === null ? adviceFor('HISTORY_LOST', name) : `npx tidemark run ${name}`
    findings.push(warn(`sync ${name}`, `${health}: it needs a backfill: ${backfillNeeded.reason}`, fix))
  }
  else findings.push(ok(`sync ${name}`, health))
  if (held?.isGone === true) findings.push(warn(`lease of ${name}`, `${held.holder} is gone and left it behind`, `npx tidemark run ${name}`))
  if (quarantined > 0) findings.push(warn(`quarantine of ${name}`, pluralize(quarantined, 'record'), 'npx tidemark quarantine list'))
  return findings
}

function checkWebhook(webhook: Webhook): DoctorFinding {
  const { id, disabledReason: disabled, failureStreak: streak, dead, lastStatus, lastAnswer } = webhook
  const check = `webhook ${id}`
  if (disabled !== null) return warn(check, `disabled: ${disabled}`, disabled.startsWith(PAUSED_PREFIX) ? `npx tidemark webhooks resume ${id}` : `npx tidemark webhooks test ${id}, and then replay ${id}`)
  if (streak > 0) return warn(check, `${pluralize(streak, 'message')} in a row did not get through, the last with ${lastStatus ?? lastAnswer ?? 'no answer'}`, `npx tidemark webhooks test ${id}`)
  if (dead > 0) return warn(check, `${pluralize(dead, 'message')} given up`, `npx tidemark webhooks dead ${id}, and then replay ${id}`)
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
