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

export function keysVerbs(): {
  create: Command
  list: Command
  revoke: Command
  rotate: Command
  retire: Command
  new: Command
} {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  return {
    create: verb('create')
      .summary('create an API key')
      .description(
        'Creates an API key for this tenant. The key is shown once; only its hash is stored. Scopes: changes:read, <database>:read, *:read, sync:read, sync:write, connections:write, admin.',
      )
      .argument('<name>', 'a name that says what the key is for')
      .option('--scopes <list>', 'comma-separated scopes', parseScopes, ['*:read'])
      .option('--rate <n>', 'requests per minute', parseCount, DEFAULT_RATE_LIMIT)
      .option('--days <n>', 'days until the key expires (default: never)', parseCount),
    list: verb('list')
      .summary('list the API keys of this tenant')
      .description('Lists the API keys of this tenant, oldest first. The secrets are not stored and cannot be shown.'),
    revoke: verb('revoke')
      .summary('revoke an API key')
      .description('Revokes an API key. Requests with it are refused within a second.')
      .argument('<id>', 'the id of the key, from `tidemark keys list`')
      .option('--yes', 'revoke the key instead of only showing it'),
    rotate: verb('rotate')
      .summary('rotate an API key or the encryption keys')
      .description(
        'With an id, creates a successor of an API key with the same name, scopes and limits; the old key expires after the overlap. Without an id, rewraps the data keys that encrypt stored state with the first key of the key ring, without downtime; with --data-keys, also replaces them.',
      )
      .argument('[id]', 'an API key id; without it, rotate the encryption keys')
      .option('--overlap <hours>', 'hours that both API keys are valid', parseCountOrZero, 24)
      .option('--new', 'without an id: first add a new key to the key file')
      .option('--data-keys', 'without an id: also replace data keys and re-encrypt')
      .option('--all-tenants', 'without an id: rotate for every tenant of the store'),
    retire: verb('retire')
      .summary('remove an encryption key from the key file')
      .description(
        'Removes an encryption key from the key file. Refused while it wraps a data key of any tenant: rotate first.',
      )
      .argument('<id>', 'the id of the key, from `tidemark tenants list`')
      .option('--yes', 'remove the key; without it nothing changes'),
    new: new Command('new')
      .summary('generate an encryption key')
      .description(
        'Prints a new encryption key for TIDEMARK_KEY or the file named by TIDEMARK_KEY_FILE. Stores nothing.',
      )
      .option('--json', 'print JSON'),
  }
}

const HOUR_MS = 3_600_000

export const keysCreate: VerbAction<[string, CreateFlags]> = async (cli, name, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const now = systemClock.now()
    const { text, key } = createApiKey({
      name,
      scopes: flags.scopes,
      rateLimit: flags.rate,
      createdAt: now,
      endsAt: flags.days === undefined ? null : now + flags.days * 24 * HOUR_MS,
    })
    await addApiKey(store, key, actorName())
    printKey(cli, target, {
      key,
      text,
      message: `Created key ${key.id} (${toPrintable(name)}) with scopes ${key.scopes.join(', ')}.`,
    })
  })
}

export const keysList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const keys = (await store?.apiKeys()) ?? []
    const now = systemClock.now()
    if (cli.terminal.json)
      return cli.terminal.printDocument({ ...targetDocument(target), keys: keys.map((key) => keyDocument(key, now)) })
    if (keys.length === 0) return cli.terminal.print('No API keys. Create one with `tidemark keys create <name>`.')
    cli.terminal.print(
      ...formatTable(
        ['ID', 'NAME', 'SCOPES', 'RATE', 'CREATED', 'STATUS'],
        keys.map((key) => [
          key.id,
          toPrintable(key.name),
          key.scopes.join(','),
          `${key.rateLimit}/min`,
          isoTime(key.createdAt),
          describeKeyStatus(key, now),
        ]),
      ),
    )
  })
}

export const keysRevoke: VerbAction<[string, RevokeFlags]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const key = await findKey(store, id)
    if (flags.yes !== true)
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `Nothing was changed. Add --yes to revoke key ${id} (${toPrintable(key.name)}, tenant ${target.tenant}).`,
        { key: keyDocument(key, systemClock.now()) },
      )
    const now = systemClock.now()
    await store.revokeApiKey(id, now, { actor: actorName(), at: now })
    printKey(cli, target, { key: await findKey(store, id), message: `Revoked key ${id} (${toPrintable(key.name)}).` })
  })
}

export const keysNew: VerbAction<[object]> = async ({ terminal }) => {
  const key = generateMasterKey(randomBytes)
  if (terminal.json) return terminal.printDocument({ id: key.id, text: encodeMasterKey(key) })
  terminal.print(encodeMasterKey(key))
  terminal.remark(
    terminal.colors.dim(
      `Key ${key.id}. Save it now: it is not shown again, and data encrypted with it cannot be read without it.`,
    ),
  )
}

export const keysRotate: VerbAction<[string | undefined, RotateFlags]> = async (cli, id, flags) => {
  if (id === undefined) return rotateSealingKeys(cli, flags)
  if (flags.new === true || flags.allTenants === true || flags.dataKeys === true)
    throw new SyncError(
      'ARGUMENT_INVALID',
      '--new, --data-keys and --all-tenants apply to the encryption keys. Leave out the id to use them.',
    )
  await withStore(cli, flags, async (target, store) => {
    const now = systemClock.now()
    const old = await findKey(store, id)
    const { text, key } = createApiKey({ name: old.name, scopes: old.scopes, rateLimit: old.rateLimit, createdAt: now })
    await addApiKey(store, key, actorName())
    await store.revokeApiKey(id, now + flags.overlap * HOUR_MS, {
      actor: actorName(),
      at: now,
      reason: `rotated; ${key.id} follows`,
    })
    printKey(cli, target, {
      key,
      text,
      message: `Key ${key.id} replaces ${id}, which expires at ${isoTime(now + flags.overlap * HOUR_MS)}.`,
    })
  })
}

async function rotateSealingKeys(cli: Cli, flags: RotateFlags): Promise<void> {
  const { terminal } = cli
  await withStore(cli, flags, async (target, store) => {
    const { file, ring: before } = loadRing(target)
    if (flags.new === true && file === null)
      throw new SyncError(
        'ARGUMENT_INVALID',
        'The keys are in TIDEMARK_KEY, so --new cannot add one. Put a new key (`tidemark keys new`) first in TIDEMARK_KEY, separated by a comma, and run this without --new.',
      )
    const ring = flags.new === true && file !== null ? addKeyToFile(file) : before
    const rewrapped: Record<string, number> = {}
    const replaced: Record<string, object> = {}
    for (const tenant of flags.allTenants === true ? await store.tenants() : [target.tenant]) {
      const keys = new DataKeys(store.forTenant(tenant), ring, randomBytes)
      // Replaces before it rewraps: afterwards a data key wrapped by the current key belongs to this rotation.
      if (flags.dataKeys === true) replaced[tenant] = await replaceDataKey(cli, tenant, keys)
      rewrapped[tenant] = await keys.rewrap(actorName(), systemClock.now())
    }
    const counted = Object.values(rewrapped).reduce((sum, count) => sum + count, 0)
    const waiting = await listTenantsByOldKey(store, ring)
    const idle = ring.keys.map((key) => key.id).filter((key) => key !== ring.current.id && waiting[key] === undefined)
    if (terminal.json)
      return terminal.printDocument({
        ...targetDocument(target),
        current: ring.current.id,
        rewrapped: counted,
        tenants: new RawJson(rewrapped),
        ...(flags.dataKeys === true && { replaced: new RawJson(replaced) }),
        waiting: new RawJson(waiting),
        idle,
      })
    terminal.print(
      `Key ${ring.current.id} wraps every data key of ${flags.allTenants === true ? 'every tenant' : `tenant ${target.tenant}`} (${counted} rewrapped).`,
    )
    for (const [key, tenants] of Object.entries(waiting))
      terminal.remark(
        `Key ${key} is still needed by ${toPrintable(tenants.join(', '))}. Run \`tidemark keys rotate --all-tenants\`.`,
      )
    if (idle.length > 0)
      terminal.remark(
        terminal.colors.dim(
          `No tenant needs ${idle.join(', ')} any longer. Restart the processes that use the old key ring, then run \`tidemark keys retire\`.`,
        ),
      )
  })
}

async function replaceDataKey({ terminal }: Cli, tenant: string, keys: DataKeys): Promise<object> {
  const { resealed, removed, kept } = await keys.rotate(actorName(), systemClock.now(), (count) => {
    if (!terminal.json) terminal.remark(terminal.colors.dim(`${toPrintable(tenant)}: ${count} re-encrypted`))
  })
  if (!terminal.json) {
    terminal.print(`Tenant ${toPrintable(tenant)} has a new data key; ${resealed} values were re-encrypted.`)
    if (removed.length > 0) terminal.remark(`Deleted unused data keys: ${removed.join(', ')}.`)
    if (kept.length > 0)
      terminal.remark(terminal.colors.dim(`Kept data keys that the audit log still needs: ${kept.join(', ')}.`))
  }
  return { resealed, removed, kept }
}

export const keysRetire: VerbAction<[string, RevokeFlags]> = async (cli, id, flags) => {
  const { terminal } = cli
  await withStore(cli, flags, async (target, store) => {
    const { file, ring } = loadRing(target)
    if (ring.find(id) === undefined)
      throw new SyncError(
        'KEY_UNKNOWN',
        `The key ring has no key ${JSON.stringify(id.slice(0, 80))}. It has ${ring.keys.map((key) => key.id).join(', ')}.`,
      )
    if (ring.current.id === id)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `Key ${id} is the current key. Run \`tidemark keys rotate --new --all-tenants\` to replace it first.`,
      )
    const tenants = (await listTenantsByOldKey(store, ring))[id] ?? []
    if (tenants.length > 0)
      throw new SyncError(
        'KEYS_MISSING',
        `Nothing was changed: key ${id} is needed to read the state of ${tenants.join(', ')}. Run \`tidemark keys rotate --all-tenants\` first.`,
      )
    if (file === null)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `The keys are in TIDEMARK_KEY. No tenant needs key ${id}; remove it there.`,
      )
    if (flags.yes !== true)
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `Nothing was changed. No tenant needs key ${id}; add --yes to remove it from ${file}.`,
        { key: id, file },
      )
    removeKeyFromFile(file, id)
    if (terminal.json) terminal.printDocument({ ...targetDocument(target), retired: id, file })
    else
      terminal.print(
        `Removed key ${id} from ${file}. Backups from before the rotation need it: keep it as long as those backups.`,
      )
  })
}

function loadRing({ settings: { environment, folder, storeUrl } }: Target): { file: string | null; ring: KeyRing } {
  const location = locateStore(storeUrl, folder)
  return { file: findKeyFile(location, environment, folder), ring: loadKeyRing(location, environment, folder) }
}

/** The tenants with data keys that an old key wraps, by the id of that key. */
async function listTenantsByOldKey(store: Store, ring: KeyRing): Promise<Record<string, string[]>> {
  const waiting: Record<string, string[]> = {}
  for (const tenant of await store.tenants()) {
    const old = new Set(
      (await store.forTenant(tenant).dataKeys())
        .map(({ wrappedBy }) => wrappedBy)
        .filter((key) => key !== ring.current.id),
    )
    for (const key of old) (waiting[key] ??= []).push(tenant)
  }
  return waiting
}

/** Finds a key of this tenant only: a key of another tenant is reported as unknown. */
async function findKey(store: Store, id: string): Promise<ApiKey> {
  const found = (await store.apiKeys()).find((key) => key.id === id)
  if (found === undefined)
    throw new SyncError(
      'KEY_UNKNOWN',
      `Tenant ${store.tenant} has no key ${JSON.stringify(id)}. List its keys with \`tidemark keys list\`.`,
    )
  return found
}

function printKey(
  { terminal }: Cli,
  target: Target,
  { key, text, message }: { key: Omit<ApiKey, 'tenant'>; text?: string; message: string },
): void {
  if (terminal.json)
    return terminal.printDocument({
      ...targetDocument(target),
      key: { ...keyDocument(key, systemClock.now()), ...(text !== undefined && { text }) },
    })
  if (text !== undefined) terminal.print(text)
  terminal.remark(
    message,
    ...(text === undefined ? [] : [terminal.colors.dim('Save the key now: it is not shown again.')]),
  )
}

function keyDocument({ id, name, scopes, rateLimit, createdAt, endsAt }: Omit<ApiKey, 'tenant'>, now: number): object {
  return {
    id,
    name,
    scopes,
    rateLimit,
    createdAt: isoTime(createdAt),
    endsAt: isoTime(endsAt),
    valid: endsAt === null || endsAt > now,
  }
}

function describeKeyStatus({ endsAt }: ApiKey, now: number): string {
  if (endsAt === null) return 'valid'
  return endsAt > now ? `valid until ${isoTime(endsAt)}` : 'expired'
}

function parseScopes(text: string): string[] {
  const scopes = text.split(',').map((scope) => scope.trim())
  const wrong = scopes.find((scope) => !isScope(scope))
  if (wrong !== undefined)
    throw new InvalidArgumentError(
      `${JSON.stringify(wrong)} is not a scope. The scopes are changes:read, <database>:read, *:read, sync:read, sync:write, connections:write and admin.`,
    )
  return scopes
}
