import { Command } from 'commander'
import { SyncError, type JsonObject, type JsonValue, type QuarantineEntry } from '../contract/index.ts'
import { fatesOf, replay, type Replayed } from '../engine/replay.ts'
import { systemClock } from '../platform/clock.ts'
import { holderName, isDeadHolder } from '../platform/holder.ts'
import { systemRandom } from '../platform/random.ts'
import { parseJson } from '../values/json.ts'
import { actorName } from './actor.ts'
import { countArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { grouped } from './counts.ts'
import { Foreign, isoTime } from './json-document.ts'
import { openForReading } from './open-for-reading.ts'
import { printable } from './printable.ts'
import { RefusedError } from './report-error.ts'
import { table } from './table.ts'
import { announce, logOf, openTargetStore, targetDocument, withStoreFlags, workerTarget, type TargetFlags } from './target.ts'
import { reading } from './with-store.ts'

interface ListFlags extends TargetFlags {
  readonly database?: string
  readonly limit: number
}

interface ShowFlags extends TargetFlags {
  readonly reveal?: boolean
}

interface ReplayFlags extends TargetFlags {
  readonly database?: string
  readonly yes?: boolean
}

export function quarantineVerbs(): Record<'list' | 'show' | 'replay', Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const database = ['--database <name>', 'only records of this database'] as const
  return {
    list: verb('list')
      .summary('records that could not be landed, newest first')
      .description('Lists the records that could not be landed, with the reason, newest first, and counts them by reason. A record that lands later leaves it by itself.')
      .option(...database)
      .option('--limit <n>', 'how many to list', countArgument, 50),
    show: verb('show')
      .summary('one of them, with all that is known of it')
      .description('Shows a record that could not be landed: why, when and from which page, and which members it has. Their values only with --reveal.')
      .argument('<id>', 'its id, from `tidemark quarantine list`', countArgument)
      .option('--reveal', 'show the values'),
    replay: verb('replay')
      .summary('land those that pass now')
      .description('Puts the records through the checks and the door again: those that pass now land, those that do not stay with the new reason. Nothing newer is overwritten, and what was deleted since stays so.')
      .argument('[sync...]', 'the syncs that met them (default: all)')
      .option(...database)
      .option('--yes', 'do it; without, it is shown what would become of them'),
  }
}

export const quarantineList: Act<[ListFlags]> = async (cli, flags) => {
  await reading(cli, flags, async (target, store) => {
    const entries = ((await store?.quarantined({ limit: COUNTED_MAX })) ?? []).filter((entry) => flags.database === undefined || entry.database === flags.database)
    const codes = [...new Set(entries.map(({ code }) => code))].toSorted()
    const reasons = codes.map((code) => ({ code, count: entries.filter((entry) => entry.code === code).length }))
    const listed = entries.slice(0, flags.limit)
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), count: entries.length, reasons, entries: listed.map(headOf) })
    if (entries.length === 0) return cli.terminal.print('Nothing is in quarantine.')
    cli.terminal.print(...table(['ID', 'WHEN', 'SYNC', 'DATABASE', 'KEY', 'REASON'], listed.map((entry) => [
      String(entry.id), isoTime(entry.at), entry.sync, entry.database, printable(entry.key ?? '(no key)'), printable(`${entry.code}: ${entry.message}`),
    ])))
    cli.terminal.remark(cli.terminal.colors.dim(`${grouped(entries.length)} in all: ${reasons.map(({ code, count }) => `${code} ×${grouped(count)}`).join(', ')}. \`tidemark quarantine replay\` tries them again.`))
  })
}

export const quarantineShow: Act<[number, ShowFlags]> = async (cli, id, flags) => {
  await reading(cli, flags, async (target, store) => {
    const entry = (await store?.quarantined({ limit: COUNTED_MAX }))?.find((known) => known.id === id)
    if (entry === undefined) throw new SyncError('ARGUMENT_INVALID', `Nothing in quarantine has the id ${id}. \`tidemark quarantine list\` shows what there is.`)
    const content = contentOf(entry, flags.reveal === true)
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), ...headOf(entry), cycle: entry.cycle, page: entry.page, content: new Foreign(content) })
    const { sync, database, key, code, message, at, cycle, page } = entry
    cli.terminal.print(
      `sync      ${sync}, page ${page} of cycle ${cycle}, ${isoTime(at)}`, `database  ${database}`, `key       ${printable(key ?? '(none)')}`, `reason    ${printable(`${code}: ${message}`)}`,
      `content   ${printable(typeof content === 'string' ? content : JSON.stringify(content, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))}`,
    )
    if (flags.reveal !== true) cli.terminal.remark(cli.terminal.colors.dim('Add --reveal to see the values.'))
  })
}

export const quarantineReplay: Act<[string[], ReplayFlags]> = async (cli, names, flags) => {
  const target = await workerTarget(cli, flags)
  announce(cli, target)
  const dry = flags.yes !== true
  const store = dry ? await openForReading(target) : await openTargetStore(target)
  try {
    const ports = { clock: systemClock, random: systemRandom, log: logOf(cli, target.settings.logLevel) }
    const plans = names.length === 0 ? target.worker.plans() : names.map((name) => target.worker.plan(name))
    const replayed: Replayed[] = []
    for (const plan of store === null ? [] : plans) {
      replayed.push(...(await replay(plan, { store: store!, ports, holder: `cli:${holderName()}`, isDead: isDeadHolder, actor: actorName(), database: flags.database, dry })))
    }
    const told = { ...targetDocument(target), ...fatesOf(replayed), entries: replayed.map(({ entry, fate, message }) => ({ ...headOf(entry), fate, message: message || entry.message })) }
    if (!cli.terminal.json) tell(cli, replayed)
    if (dry && replayed.length > 0) throw new RefusedError('CONFIRMATION_NEEDED', 'Nothing was changed: this is what would become of them.', told)
    if (cli.terminal.json) cli.terminal.document(told)
  } finally {
    await store?.close()
  }
}

/** More than this are neither counted nor looked through. */
const COUNTED_MAX = 10_000

function tell({ terminal }: Cli, replayed: readonly Replayed[]): void {
  if (replayed.length === 0) return terminal.print('Nothing is in quarantine.')
  terminal.print(...table(['ID', 'SYNC', 'KEY', 'WHAT', 'WHY'], replayed.map(({ entry, fate, message }) => [String(entry.id), entry.sync, printable(entry.key ?? '(no key)'), fate, printable(message) || '-'])))
}

/** Without the record. */
function headOf({ id, sync, database, key, code, message, at }: QuarantineEntry): object {
  return { id, sync, database, key, code, message, at: isoTime(at) }
}

/** The record as it came; without its values what kind each of them has. */
function contentOf({ text }: QuarantineEntry, reveal: boolean): JsonValue {
  let content: JsonValue
  try {
    content = parseJson(text)
  } catch {
    return reveal ? text : `${grouped(text.length)} characters`
  }
  return reveal ? content : kindsOf(content)
}

function kindsOf(value: JsonValue | undefined): JsonValue {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value !== 'object') return typeof value === 'bigint' ? 'number' : typeof value
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, member]) => [name, kindsOf(member)]))
}
