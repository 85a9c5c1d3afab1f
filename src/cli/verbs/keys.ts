import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { addKeyToFile, findKeyFile, loadKeyRing, removeKeyFromFile } from '../../config/load-key-ring.ts'
import { SyncError, type ApiKey, type Store } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { DataKeys } from '../../registry/data-keys.ts'
import { encodeMasterKey, generateMasterKey, type KeyRing } from '../../registry/key-ring.ts'
import { DEFAULT_RATE_LIMIT, isScope, createApiKey } from '../../server/api-key.ts'
import { addApiKey } from '../../server/cursor-ciphers.ts'
import { locateStore } from '../../stores/drivers.ts'
import { actorName } from '../kit/actor.ts'
import { parseCount, parseCountOrZero } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { RawJson, isoTime } from '../kit/json-document.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { formatTable } from '../kit/table.ts'
import { targetDocument, withStoreFlags, type Target, type TargetFlags } from '../kit/target.ts'
import { withExistingStore, withStore } from '../kit/with-store.ts'

interface CreateFlags extends TargetFlags {
  readonly scopes: readonly string[]
  readonly rate: number
  readonly days?: number
}

interface RotateFlags extends TargetFlags {
  readonly overlap: number
  readonly new?: boolean
  readonly dataKeys?: boolean
  readonly allTenants?: boolean
}

interface RevokeFlags extends TargetFlags {
  readonly yes?: boolean
}

export function keysVerbs(): { create: Command; list: Command; revoke: Command; rotate: Command; retire: Command; new: Command } {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  return {
    create: verb('create')
      .summary('make a key; it is shown once')
      .description('Makes a key of the served side for this tenant. The key is shown once: only a hash of it is kept.')
      .argument('<name>', 'what the key is for, for people')
      .option('--scopes <list>', 'what it may do: changes:read, <database>:read, *:read, sync:write, admin', parseScopes, ['*:read'])
      .option('--rate <n>', 'requests a minute', parseCount, DEFAULT_RATE_LIMIT)
      .option('--days <n>', 'how long it is valid (default: until it is revoked)', parseCount),
    list: verb('list')
      .summary('the keys of this tenant')
      .description('Lists the keys of this tenant, oldest first. Their secrets are not stored and cannot be shown.'),
    revoke: verb('revoke')
      .summary('end a key at once')
      .description('Ends a key: whoever uses it is refused within a second.')
      .argument('<id>', 'the id of the key, from `tidemark keys list`')
      .option('--yes', 'do it; without, the key is shown and nothing changes'),
    rotate: verb('rotate')
      .summary('make the successor of a key; the old one stays valid for a while')
      .description('Makes a key with the same name, scopes and limits; the old one ends after the overlap. Without an id: wraps the keys that states are sealed with anew, under the first key of the ring, while everything goes on; with --data-keys, also replaces them.')
      .argument('[id]', 'the id of a key, from `tidemark keys list`; without, the keys that states are sealed with')
      .option('--overlap <hours>', 'how long both are valid', parseCountOrZero, 24)
      .option('--new', 'without an id: first put a new key in front of those in the key file')
      .option('--data-keys', 'without an id: also make new data keys, and seal everything anew')
      .option('--all-tenants', 'without an id: of every tenant of the store, not only of this one'),
    retire: verb('retire')
      .summary('take a key that states were sealed with out of the ring')
      .description('Takes a key out of the key file. Refused while a data key of any tenant is wrapped by it: rotate first.')
      .argument('<id>', 'the id of the key, such as k1a2b3c4d, from `tidemark tenants list`')
      .option('--yes', 'do it; without, nothing changes'),
    new: new Command('new')
      .summary('make a key to seal states with')
      .description('Prints a new key for TIDEMARK_KEY, or for the file that TIDEMARK_KEY_FILE names. Nothing is stored.')
      .option('--json', 'answer in JSON, for programs'),
  }
}

const HOUR_MS = 3_600_000

export const keysCreate: VerbAction<[string, CreateFlags]> = async (cli, name, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const now = systemClock.now()
    const { text, key } = createApiKey({ name, scopes: flags.scopes, rateLimit: flags.rate, createdAt: now, endsAt: flags.days === undefined ? null : now + flags.days * 24 * HOUR_MS })
    await addApiKey(store, key, actorName())
    printKey(cli, target, { key, text, said: `${toPrintable(name)} is key ${key.id}, for ${key.scopes.join(', ')}.` })
  })
}

export const keysList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const keys = (await store?.apiKeys()) ?? []
    const now = systemClock.now()
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), keys: keys.map((key) => keyDocument(key, now)) })
    if (keys.length === 0) return cli.terminal.print('There are no keys. `tidemark keys create <name>` makes one.')
    cli.terminal.print(...formatTable(['ID', 'NAME', 'SCOPES', 'RATE', 'CREATED', 'STATUS'], keys.map((key) => [
      key.id, toPrintable(key.name), key.scopes.join(','), `${key.rateLimit}/min`, isoTime(key.createdAt), describeKeyStatus(key, now),
    ])))
  })
}

export const keysRevoke: VerbAction<[string, RevokeFlags]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const key = await findKey(store, id)
    if (flags.yes !== true) throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: key ${id} (${toPrintable(key.name)}, tenant ${target.tenant}) ends only with --yes.`, { key: keyDocument(key, systemClock.now()) })
    const now = systemClock.now()
    await store.revokeApiKey(id, now, { actor: actorName(), at: now })
    printKey(cli, target, { key: await findKey(store, id), said: `Key ${id} (${toPrintable(key.name)}) has ended.` })
  })
}

export const keysNew: VerbAction<[object]> = async ({ terminal }) => {
  const key = generateMasterKey(randomBytes)
  if (terminal.json) return terminal.printDocument({ id: key.id, text: encodeMasterKey(key) })
  terminal.print(encodeMasterKey(key))
  terminal.remark(terminal.colors.dim(`Key ${key.id}. Keep it now: it is not shown again, and without it what it seals cannot be read.`))
}

export const keysRotate: VerbAction<[string | undefined, RotateFlags]> = async (cli, id, flags) => {
  if (id === undefined) return rotateSealingKeys(cli, flags)
  if (flags.new === true || flags.allTenants === true || flags.dataKeys === true) throw new SyncError('ARGUMENT_INVALID', '--new, --data-keys and --all-tenants are about the keys that states are sealed with, and go without an id.')
  await withStore(cli, flags, async (target, store) => {
    const now = systemClock.now()
    const old = await findKey(store, id)
    const { text, key } = createApiKey({ name: old.name, scopes: old.scopes, rateLimit: old.rateLimit, createdAt: now })
    await addApiKey(store, key, actorName())
    await store.revokeApiKey(id, now + flags.overlap * HOUR_MS, { actor: actorName(), at: now, reason: `rotated; ${key.id} follows` })
    printKey(cli, target, { key, text, said: `Key ${key.id} follows ${id}, which ends ${isoTime(now + flags.overlap * HOUR_MS)}.` })
  })
}

async function rotateSealingKeys(cli: Cli, flags: RotateFlags): Promise<void> {
  const { terminal } = cli
  await withStore(cli, flags, async (target, store) => {
    const { file, ring: before } = loadRing(target)
    if (flags.new === true && file === null) throw new SyncError('ARGUMENT_INVALID', 'The keys are in TIDEMARK_KEY. Put a new one (`tidemark keys new`) in front of it, with a comma between them, and run this without --new.')
    const ring = flags.new === true ? addKeyToFile(file!) : before
    const rewrapped: Record<string, number> = {}
    const replaced: Record<string, object> = {}
    for (const tenant of flags.allTenants === true ? await store.tenants() : [target.tenant]) {
      const keys = new DataKeys(store.forTenant(tenant), ring, randomBytes)
      // Before the old ones are wrapped anew, so that a key wrapped by the current one is known to be of this rotation.
      if (flags.dataKeys === true) replaced[tenant] = await replaceDataKey(cli, tenant, keys)
      rewrapped[tenant] = await keys.rewrap(actorName(), systemClock.now())
    }
    const counted = Object.values(rewrapped).reduce((sum, count) => sum + count, 0)
    const waiting = await listTenantsByOldKey(store, ring)
    const idle = ring.keys.map((key) => key.id).filter((key) => key !== ring.current.id && waiting[key] === undefined)
    if (terminal.json) return terminal.printDocument({ ...targetDocument(target), current: ring.current.id, rewrapped: counted, tenants: new RawJson(rewrapped), ...(flags.dataKeys === true && { replaced: new RawJson(replaced) }), waiting: new RawJson(waiting), idle })
    terminal.print(`Key ${ring.current.id} wraps every data key of ${flags.allTenants === true ? 'every tenant' : `tenant ${target.tenant}`} (${counted} anew).`)
    for (const [key, tenants] of Object.entries(waiting)) terminal.remark(`Key ${key} is still needed by ${toPrintable(tenants.join(', '))}: \`tidemark keys rotate --all-tenants\`.`)
    if (idle.length > 0) terminal.remark(terminal.colors.dim(`No longer needed by any tenant: ${idle.join(', ')}. Restart what still runs with the old ring, then \`tidemark keys retire\`.`))
  })
}

async function replaceDataKey({ terminal }: Cli, tenant: string, keys: DataKeys): Promise<object> {
  const { resealed, removed, kept } = await keys.rotate(actorName(), systemClock.now(), (count) => {
    if (!terminal.json) terminal.remark(terminal.colors.dim(`${toPrintable(tenant)}: ${count} sealed anew`))
  })
  if (!terminal.json) {
    terminal.print(`Tenant ${toPrintable(tenant)}: a new data key seals; ${resealed} texts were sealed anew.`)
    if (removed.length > 0) terminal.remark(`Deleted, because they seal nothing any more: ${removed.join(', ')}.`)
    if (kept.length > 0) terminal.remark(terminal.colors.dim(`Kept for the states in the audit log: ${kept.join(', ')}.`))
  }
  return { resealed, removed, kept }
}

export const keysRetire: VerbAction<[string, RevokeFlags]> = async (cli, id, flags) => {
  const { terminal } = cli
  await withStore(cli, flags, async (target, store) => {
    const { file, ring } = loadRing(target)
    if (ring.find(id) === undefined) throw new SyncError('KEY_UNKNOWN', `There is no key ${JSON.stringify(id.slice(0, 80))} in the ring; it has ${ring.keys.map((key) => key.id).join(', ')}.`)
    if (ring.current.id === id) throw new SyncError('ARGUMENT_INVALID', `Key ${id} is the one that wraps. \`tidemark keys rotate --new --all-tenants\` puts another in front of it.`)
    const tenants = (await listTenantsByOldKey(store, ring))[id] ?? []
    if (tenants.length > 0) throw new SyncError('KEYS_MISSING', `Nothing was changed: without key ${id} the states of ${tenants.join(', ')} could not be read. Run \`tidemark keys rotate --all-tenants\` first.`)
    if (file === null) throw new SyncError('ARGUMENT_INVALID', `No tenant needs key ${id} any more. The keys are in TIDEMARK_KEY: take it out there.`)
    if (flags.yes !== true) throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: key ${id}, which no tenant needs any more, is taken out of ${file} only with --yes.`, { key: id, file })
    removeKeyFromFile(file, id)
    if (terminal.json) terminal.printDocument({ ...targetDocument(target), retired: id, file })
    else terminal.print(`Key ${id} is no longer in ${file}. A backup from before the rotation needs it: keep it as long as the backup.`)
  })
}

function loadRing({ settings: { environment, folder, storeUrl } }: Target): { file: string | null; ring: KeyRing } {
  const location = locateStore(storeUrl, folder)
  return { file: findKeyFile(location, environment, folder), ring: loadKeyRing(location, environment, folder) }
}

/** Which tenants have data keys that another key than the current one wraps, by that key. */
async function listTenantsByOldKey(store: Store, ring: KeyRing): Promise<Record<string, string[]>> {
  const waiting: Record<string, string[]> = {}
  for (const tenant of await store.tenants()) {
    const old = new Set((await store.forTenant(tenant).dataKeys()).map(({ wrappedBy }) => wrappedBy).filter((key) => key !== ring.current.id))
    for (const key of old) (waiting[key] ??= []).push(tenant)
  }
  return waiting
}

/** Of this tenant only: another's key is as unknown as one that never was. */
async function findKey(store: Store, id: string): Promise<ApiKey> {
  const found = (await store.apiKeys()).find((key) => key.id === id)
  if (found === undefined) throw new SyncError('KEY_UNKNOWN', `There is no key ${JSON.stringify(id)} for tenant ${store.tenant}.`)
  return found
}

function printKey({ terminal }: Cli, target: Target, { key, text, said }: { key: Omit<ApiKey, 'tenant'>; text?: string; said: string }): void {
  if (terminal.json) return terminal.printDocument({ ...targetDocument(target), key: { ...keyDocument(key, systemClock.now()), ...(text !== undefined && { text }) } })
  if (text !== undefined) terminal.print(text)
  terminal.remark(said, ...(text === undefined ? [] : [terminal.colors.dim('Keep it now: it is not shown again.')]))
}

function keyDocument({ id, name, scopes, rateLimit, createdAt, endsAt }: Omit<ApiKey, 'tenant'>, now: number): object {
  return { id, name, scopes, rateLimit, createdAt: isoTime(createdAt), endsAt: isoTime(endsAt), valid: endsAt === null || endsAt > now }
}

function describeKeyStatus({ endsAt }: ApiKey, now: number): string {
  if (endsAt === null) return 'valid'
  return endsAt > now ? `valid until ${isoTime(endsAt)}` : 'ended'
}

function parseScopes(text: string): string[] {
  const scopes = text.split(',').map((scope) => scope.trim())
  const wrong = scopes.find((scope) => !isScope(scope))
  if (wrong !== undefined) throw new InvalidArgumentError(`${JSON.stringify(wrong)} is no scope. There are changes:read, <database>:read, *:read, sync:read, sync:write and admin.`)
  return scopes
}
