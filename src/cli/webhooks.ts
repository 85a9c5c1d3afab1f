import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { SyncError, type Action, type Delivery, type Store, type Webhook, type WebhookAllowance, type WebhookPlace } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { checkWebhookUrl } from '../webhooks/check-url.ts'
import { probeOf } from '../webhooks/message.ts'
import { newSecret, rotated, secretsOf, secretsText } from '../webhooks/secrets.ts'
import { createSender } from '../webhooks/send.ts'
import { signatureHeaders } from '../webhooks/sign.ts'
import { canonicalInstant, instantMs } from '../values/instant.ts'
import { countOrZeroArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { isoTime } from './json-document.ts'
import { openForReading } from './open-for-reading.ts'
import { printable } from './printable.ts'
import { RefusedError } from './report-error.ts'
import { table } from './table.ts'
import { announce, openTargetStore, storeTarget, targetDocument, withStoreFlags, type Target, type TargetFlags } from './target.ts'

interface AddFlags extends TargetFlags {
  readonly databases?: readonly string[]
  readonly actions?: readonly Action[]
  readonly allow: readonly WebhookAllowance[]
  readonly all?: boolean
}

interface ReplayFlags extends TargetFlags {
  readonly since?: number
  readonly all?: boolean
}

const ACTIONS = ['created', 'updated', 'deleted'] as const
const ALLOWANCES = ['http', 'private', 'port'] as const
const HOUR_MS = 3_600_000

type WebhookVerb = 'add' | 'list' | 'test' | 'replay' | 'dead' | 'rotate' | 'remove'

export function webhooksVerbs(): Record<WebhookVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const id = ['<id>', 'the id of the webhook, from `tidemark webhooks list`'] as const
  return {
    add: verb('add')
      .summary('send changes to a URL from now on; the secret is shown once')
      .description('Sends every change from now on to a URL, signed by Standard Webhooks. The secret is shown once. `tidemark start` delivers.')
      .argument('<url>', 'where to send them: a public https URL')
      .option('--databases <list>', 'only changes of these (default: all)', listArgument)
      .option('--actions <list>', 'only these of created, updated and deleted (default: all)', oneOfArgument(ACTIONS))
      .option('--allow <list>', 'what is otherwise refused: http, private (addresses that are not public), port (other than 80 and 443)', oneOfArgument(ALLOWANCES), [])
      .option('--all', 'begin with everything the log holds, not with what comes from now on'),
    list: verb('list')
      .summary('the webhooks of this tenant and where they stand')
      .description('Lists the webhooks of this tenant, how far they have come, and what the last try brought.'),
    test: verb('test')
      .summary('send a test message now')
      .description('Sends a test message to a webhook now and shows the answer: its status and a little of its text.')
      .argument(...id),
    replay: verb('replay')
      .summary('try again what was given up, or send everything since a time once more')
      .description('Enables a webhook and tries again what waits or was given up. With --since or --all changes are sent once more from there, with the same ids.')
      .argument(...id)
      .option('--since <time>', 'everything since then once more, such as 2026-01-31T12:00:00Z', timeArgument)
      .option('--all', 'everything the log holds once more'),
    dead: verb('dead')
      .summary('what was given up')
      .description('Lists the messages that a receiver refused until there were no tries left.')
      .argument(...id),
    rotate: verb('rotate')
      .summary('make the successor of a secret; both sign for a while')
      .description('Makes a new secret for a webhook. Messages bear the signatures of both until the overlap is over.')
      .argument(...id)
      .option('--overlap <hours>', 'how long both sign', countOrZeroArgument, 24),
    remove: verb('remove')
      .summary('send nothing there any more')
      .description('Removes a webhook and everything that waits for it.')
      .argument(...id)
      .option('--yes', 'do it; without, the webhook is shown and nothing changes'),
  }
}

export const webhooksAdd: Act<[string, AddFlags]> = async (cli, text, flags) => {
  const url = checkWebhookUrl(text, flags.allow).href
  await writing(cli, flags, async (target, store) => {
    const secret = newSecret()
    const id = `wh_${randomBytes(8).toString('hex')}`
    await store.putWebhook({
      id, url, databases: flags.databases ?? null, actions: flags.actions ?? null, allow: flags.allow, secrets: secretsText([{ secret, endsAt: null }]), createdAt: systemClock.now(),
    }, await placeOf(store, flags.all === true ? 0 : null))
    show(cli, target, await find(store, id), { secret, said: `Webhook ${id} is sent ${flags.all === true ? 'everything' : 'what changes from now on'}. \`tidemark start\` delivers.` })
  })
}

export const webhooksList: Act<[TargetFlags]> = async (cli, flags) => {
  await reading(cli, flags, async (target, store) => {
    const webhooks = (await store?.webhooks()) ?? []
    const position = (await store?.position()) ?? 0
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), webhooks: webhooks.map((webhook) => documentOf(webhook, position)) })
    if (webhooks.length === 0) return cli.terminal.print('There are no webhooks. `tidemark webhooks add <url>` makes one.')
    cli.terminal.print(...table(['ID', 'URL', 'FOR', 'BEHIND', 'WAITING', 'DEAD', 'LAST', 'STATUS'], webhooks.map((webhook) => [
      webhook.id, printable(shownUrl(webhook.url)), filterOf(webhook), String(position - webhook.position), String(webhook.waiting), String(webhook.dead),
      webhook.lastStatus === null ? (webhook.lastAnswer ?? '–') : String(webhook.lastStatus), webhook.disabled === null ? 'enabled' : `disabled: ${webhook.disabled}`,
    ])))
  })
}

export const webhooksTest: Act<[string, TargetFlags]> = async (cli, id, flags) => {
  let failed = false
  await writing(cli, flags, async (target, store) => {
    const { url, allow, secrets } = await find(store, id)
    const now = systemClock.now()
    const { messageId, body } = probeOf({ now, nonce: randomBytes(8).toString('hex') })
    const send = createSender()
    const { kind, status, answer } = await send({ url, allow, body, headers: signatureHeaders(secretsOf(secrets, now).map(({ secret }) => secret), messageId, now, body) })
    await send.close()
    failed = kind !== 'delivered'
    if (cli.terminal.json) cli.terminal.document({ ...targetDocument(target), webhook: id, messageId, delivered: !failed, status, answer })
    else cli.terminal.print(`${failed ? 'Not delivered' : 'Delivered'}${status === null ? '' : `, status ${status}`}${answer === null ? '' : `: ${printable(answer)}`}`)
  })
  return failed ? 1 : 0
}

export const webhooksReplay: Act<[string, ReplayFlags]> = async (cli, id, flags) => {
  await writing(cli, flags, async (target, store) => {
    await find(store, id)
    const since = flags.all === true ? 0 : flags.since === undefined ? null : await store.sequenceBefore(flags.since)
    const revived = await store.restartWebhook(id, { at: systemClock.now(), ...(since !== null && { place: await placeOf(store, since) }) })
    show(cli, target, await find(store, id), {
      said: since === null ? `Webhook ${id} is enabled; ${revived} that were given up are tried again.` : `Webhook ${id} is enabled; everything after sequence ${since} is sent once more.`,
    })
  })
}

export const webhooksDead: Act<[string, TargetFlags]> = async (cli, id, flags) => {
  await reading(cli, flags, async (target, store) => {
    if (store !== null) await find(store, id)
    const dead = (await store?.deliveries({ webhook: id, dead: true, limit: 1_000 })) ?? []
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), webhook: id, dead: dead.map(deliveryDocument) })
    if (dead.length === 0) return cli.terminal.print('Nothing was given up.')
    cli.terminal.print(...table(['MESSAGE', 'DATABASE', 'KEY', 'TRIES', 'SINCE', 'LAST'], dead.map((delivery) => [
      delivery.messageId, delivery.database, printable(delivery.key), String(delivery.attempts), isoTime(delivery.firstAt) ?? '–', `${delivery.lastStatus ?? ''} ${printable(delivery.lastAnswer ?? '')}`.trim(),
    ])))
    cli.terminal.remark(cli.terminal.colors.dim(`\`tidemark webhooks replay ${id}\` tries them again.`))
  })
}

export const webhooksRotate: Act<[string, TargetFlags & { readonly overlap: number }]> = async (cli, id, flags) => {
  await writing(cli, flags, async (target, store) => {
    const webhook = await find(store, id)
    const secret = newSecret()
    const now = systemClock.now()
    await store.putWebhook({ ...webhook, secrets: rotated(webhook.secrets, secret, now, flags.overlap * HOUR_MS) }, webhook)
    show(cli, target, await find(store, id), { secret, said: `The secret before it signs as well until ${isoTime(now + flags.overlap * HOUR_MS)}.` })
  })
}

export const webhooksRemove: Act<[string, TargetFlags & { readonly yes?: boolean }]> = async (cli, id, flags) => {
  await writing(cli, flags, async (target, store) => {
    const webhook = await find(store, id)
    const document = documentOf(webhook, await store.position())
    if (flags.yes !== true) throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: webhook ${id} (tenant ${target.tenant}, ${webhook.waiting + webhook.dead} messages kept) is removed only with --yes.`, { webhook: document })
    await store.removeWebhook(id)
    if (cli.terminal.json) cli.terminal.document({ ...targetDocument(target), removed: document })
    else cli.terminal.remark(`Webhook ${id} is removed.`)
  })
}

/** A place in the log as it is now; null for its end. */
async function placeOf(store: Store, position: number | null): Promise<WebhookPlace> {
  const page = await store.feed({ after: 0, limit: 0, scanMax: 1 })
  return { position: position ?? page.position, floor: page.floor }
}

async function writing(cli: Cli, flags: TargetFlags, body: (target: Target, store: Store) => Promise<void>): Promise<void> {
  const target = storeTarget(cli, flags)
  announce(cli, target)
  const store = await openTargetStore(target)
  try {
    await body(target, store)
  } finally {
    await store.close()
  }
}

async function reading(cli: Cli, flags: TargetFlags, body: (target: Target, store: Store | null) => Promise<void>): Promise<void> {
  const target = storeTarget(cli, flags)
  announce(cli, target)
  const store = await openForReading(target)
  try {
    await body(target, store)
  } finally {
    await store?.close()
  }
}

async function find(store: Store, id: string): Promise<Webhook> {
  const found = (await store.webhooks()).find((webhook) => webhook.id === id)
  if (found === undefined) throw new SyncError('WEBHOOK_UNKNOWN', `There is no webhook ${JSON.stringify(id.slice(0, 80))} for tenant ${store.tenant}.`)
  return found
}

function show({ terminal }: Cli, target: Target, webhook: Webhook, { secret, said }: { secret?: string; said: string }): void {
  if (terminal.json) return terminal.document({ ...targetDocument(target), webhook: { ...documentOf(webhook, null), ...(secret !== undefined && { secret }) } })
  if (secret !== undefined) terminal.print(secret)
  terminal.remark(said, ...(secret === undefined ? [] : [terminal.colors.dim('Keep the secret now: it is not shown again.')]))
}

function documentOf(webhook: Webhook, newest: number | null): object {
  const { id, url, databases, actions, allow, createdAt, position, waiting, dead, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled } = webhook
  return {
    id, url: shownUrl(url), databases, actions, allow, createdAt: isoTime(createdAt), enabled: disabled === null, disabled, position, ...(newest !== null && { behind: newest - position }),
    waiting, dead, streak, retryAt: isoTime(retryAt), succeededAt: isoTime(succeededAt), failedAt: isoTime(failedAt), lastStatus, lastAnswer,
  }
}

/** Without the body: it is the record. */
function deliveryDocument({ sequence, messageId, database, key, attempts, firstAt, lastStatus, lastAnswer }: Delivery): object {
  return { messageId, sequence, database, key, attempts, firstAt: isoTime(firstAt), lastStatus, lastAnswer }
}

/** What comes after the question mark is often a token. */
function shownUrl(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search === '' ? '' : '?…'}`
}

function filterOf({ databases, actions }: Webhook): string {
  return [databases?.join(',') ?? 'all', ...(actions === null ? [] : [actions.join(',')])].join(' ')
}

function listArgument(text: string): string[] {
  return [...new Set(text.split(',').map((name) => name.trim()).filter((name) => name !== ''))]
}

function oneOfArgument<Word extends string>(words: readonly Word[]): (text: string) => Word[] {
  return (text) => {
    const given = listArgument(text)
    const wrong = given.find((word) => !words.includes(word as Word))
    if (wrong !== undefined) throw new InvalidArgumentError(`${JSON.stringify(wrong)} is none of ${words.join(', ')}.`)
    return given as Word[]
  }
}

function timeArgument(text: string): number {
  const canonical = canonicalInstant(text)
  if (canonical === null) throw new InvalidArgumentError(`${JSON.stringify(text)} is not a time with a zone, such as 2026-01-31T12:00:00Z.`)
  return instantMs(canonical)
}
