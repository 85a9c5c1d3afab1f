import { Command, InvalidArgumentError } from 'commander'
import { SyncError, type ChangeAction, type Store, type Webhook, type WebhookAllowance, type WebhookEdit } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { checkWebhookUrl } from '../../webhooks/check-url.ts'
import {
  ACTIONS, addWebhook, ALLOWANCES, toDeliveryDocument, editWebhook, findWebhook, pauseWebhook, removeWebhook, replayWebhook, resumeWebhook, rotateWebhook, testWebhook, toWebhookDocument, type WebhookActor,
} from '../../webhooks/manage-webhooks.ts'
import { redactUrl } from '../../webhooks/redact-url.ts'
import { createSender } from '../../webhooks/send.ts'
import { actorName } from '../kit/actor.ts'
import { parseCountOrZero, parseTime } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { isoTime } from '../kit/json-document.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { formatTable } from '../kit/table.ts'
import { targetDocument, withStoreFlags, type Target, type TargetFlags } from '../kit/target.ts'
import { withExistingStore, withStore } from '../kit/with-store.ts'

interface AddFlags extends TargetFlags {
  readonly databases?: readonly string[]
  readonly actions?: readonly ChangeAction[]
  readonly allow: readonly WebhookAllowance[]
  readonly all?: boolean
}

interface EditFlags extends TargetFlags {
  readonly url?: string
  readonly databases?: readonly string[] | 'all'
  readonly actions?: readonly ChangeAction[] | 'all'
  readonly allow?: readonly WebhookAllowance[]
  readonly dryRun?: boolean
}

interface ReplayFlags extends TargetFlags {
  readonly since?: number
  readonly all?: boolean
}

const HOUR_MS = 3_600_000

type WebhookVerb = 'add' | 'list' | 'edit' | 'test' | 'pause' | 'resume' | 'replay' | 'dead' | 'rotate' | 'remove'

export function webhooksVerbs(): Record<WebhookVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const id = ['<id>', 'the id of the webhook, from `tidemark webhooks list`'] as const
  return {
    add: verb('add')
      .summary('send changes to a URL from now on; the secret is shown once')
      .description('Sends every change from now on to a URL, signed by Standard Webhooks. The secret is shown once. `tidemark start` delivers.')
      .argument('<url>', 'where to send them: a public https URL')
      .option('--databases <list>', 'only changes of these (default: all)', parseNames)
      .option('--actions <list>', 'only these of created, updated and deleted (default: all)', parseNamesOf(ACTIONS))
      .option('--allow <list>', 'what is otherwise refused: http, private (addresses that are not public), port (other than 80 and 443)', parseNamesOf(ALLOWANCES), [])
      .option('--all', 'begin with everything the log holds, not with what comes from now on'),
    list: verb('list')
      .summary('the webhooks of this tenant and where they stand')
      .description('Lists the webhooks of this tenant, how far they have come, and what the last try brought.'),
    edit: verb('edit')
      .summary('change what a webhook is sent, or where')
      .description('Changes what a webhook is sent from its place on, or where, and says what that means. What was sent stays sent; what landed earlier and was not wanted then is not sent, unless it is replayed.')
      .argument(...id)
      .option('--databases <list>', 'only changes of these; all for every one', parseOrAll(parseNames))
      .option('--actions <list>', 'only these of created, updated and deleted; all for every one', parseOrAll(parseNamesOf(ACTIONS)))
      .option('--url <url>', 'where to send them: a public https URL')
      .option('--allow <list>', 'for the URL, what is otherwise refused: http, private (addresses that are not public), port (other than 80 and 443)', parseNamesOf(ALLOWANCES))
      .option('--dry-run', 'say what it would mean; nothing changes'),
    test: verb('test')
      .summary('send a test message now')
      .description('Sends a test message to a webhook now and shows the answer: its status and a little of its text.')
      .argument(...id),
    pause: verb('pause')
      .summary('send nothing until it is resumed')
      .description('Sends nothing to a webhook until it is resumed; what changes meanwhile is sent then.')
      .argument(...id),
    resume: verb('resume')
      .summary('go on where it was paused or disabled')
      .description('Lets a webhook go on where it was paused or disabled. What was given up stays so; see replay.')
      .argument(...id),
    replay: verb('replay')
      .summary('try again what was given up, or send everything since a time once more')
      .description('Enables a webhook and tries again what waits or was given up. With --since or --all changes are sent once more from there, with the same ids.')
      .argument(...id)
      .option('--since <time>', 'everything since then once more, such as 2026-01-31T12:00:00Z', parseTime)
      .option('--all', 'everything the log holds once more'),
    dead: verb('dead')
      .summary('what was given up')
      .description('Lists the messages that a receiver refused until there were no tries left.')
      .argument(...id),
    rotate: verb('rotate')
      .summary('make the successor of a secret; both sign for a while')
      .description('Makes a new secret for a webhook. Messages bear the signatures of both until the overlap is over.')
      .argument(...id)
      .option('--overlap <hours>', 'how long both sign', parseCountOrZero, 24),
    remove: verb('remove')
      .summary('send nothing there any more')
      .description('Removes a webhook and everything that waits for it.')
      .argument(...id)
      .option('--yes', 'do it; without, the webhook is shown and nothing changes'),
  }
}

export const webhooksAdd: VerbAction<[string, AddFlags]> = async (cli, url, { databases = null, actions = null, allow, all = false, ...flags }) => {
  checkWebhookUrl(url, allow)
  await withStore(cli, flags, async (target, store) => {
    const { webhook, secret } = await addWebhook(store, { url, databases, actions, allow, all }, currentActor())
    await printWebhook(cli, target, store, webhook, { secret, said: `Webhook ${webhook.id} is sent ${all ? 'everything' : 'what changes from now on'}. \`tidemark start\` delivers.` })
  })
}

export const webhooksList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const webhooks = (await store?.webhooks()) ?? []
    const position = (await store?.headSequence()) ?? 0
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), webhooks: webhooks.map((webhook) => toWebhookDocument(webhook, position)) })
    if (webhooks.length === 0) return cli.terminal.print('There are no webhooks. `tidemark webhooks add <url>` makes one.')
    cli.terminal.print(...formatTable(['ID', 'URL', 'FOR', 'BEHIND', 'WAITING', 'DEAD', 'LAST', 'STATUS'], webhooks.map((webhook) => [
      webhook.id, toPrintable(redactUrl(webhook.url)), describeFilter(webhook), String(position - webhook.sequence), String(webhook.waiting), String(webhook.dead),
      webhook.lastStatus === null ? (webhook.lastAnswer ?? '–') : String(webhook.lastStatus), webhook.disabledReason === null ? 'enabled' : `disabled: ${webhook.disabledReason}`,
    ])))
  })
}

export const webhooksEdit: VerbAction<[string, EditFlags]> = async (cli, id, { url, databases, actions, allow, dryRun = false, ...flags }) => {
  const edit: WebhookEdit = { ...(url !== undefined && { url }), ...(databases !== undefined && { databases: toFilter(databases) }), ...(actions !== undefined && { actions: toFilter(actions) }), ...(allow !== undefined && { allow }) }
  if (Object.keys(edit).length === 0) throw new SyncError('ARGUMENT_INVALID', 'Nothing is to be changed. Give --databases, --actions, --url or --allow.')
  await withStore(cli, flags, async (target, store) => {
    const { webhook, plan } = await editWebhook(store, id, edit, { ...currentActor(), isDone: !dryRun })
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), changed: !dryRun && plan.changes.length > 0, plan, webhook: toWebhookDocument(webhook, await store.headSequence()) })
    if (plan.changes.length === 0) return cli.terminal.remark(`Webhook ${id} is like that already.`)
    cli.terminal.print(...formatTable(['', 'WAS', dryRun ? 'WOULD BE' : 'IS'], plan.changes.map(({ what, from, to }) => [what, toPrintable(from), toPrintable(to)])))
    cli.terminal.remark(...plan.notes, ...(dryRun ? [cli.terminal.colors.dim('Nothing was changed: without --dry-run it is.')] : []))
  })
}

export const webhooksTest: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  let failed = false
  await withStore(cli, flags, async (target, store) => {
    const webhook = await findWebhook(store, id)
    const send = createSender()
    const { kind, messageId, status, answer } = await testWebhook(webhook, send, systemClock.now())
    await send.close()
    failed = kind !== 'delivered'
    if (cli.terminal.json) cli.terminal.printDocument({ ...targetDocument(target), webhook: id, messageId, delivered: !failed, status, answer })
    else cli.terminal.print(`${failed ? 'Not delivered' : 'Delivered'}${status === null ? '' : `, status ${status}`}${answer === null ? '' : `: ${toPrintable(answer)}`}`)
  })
  return failed ? 1 : 0
}

export const webhooksPause: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    await printWebhook(cli, target, store, await pauseWebhook(store, id, currentActor()), { said: `Webhook ${id} is paused. \`tidemark webhooks resume ${id}\` lets it go on.` })
  })
}

export const webhooksResume: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    await printWebhook(cli, target, store, await resumeWebhook(store, id, currentActor()), { said: `Webhook ${id} goes on where it stands.` })
  })
}

export const webhooksReplay: VerbAction<[string, ReplayFlags]> = async (cli, id, { since, all, ...flags }) => {
  await withStore(cli, flags, async (target, store) => {
    const { webhook, after, revived } = await replayWebhook(store, id, { since, all }, currentActor())
    await printWebhook(cli, target, store, webhook, {
      said: after === null ? `Webhook ${id} is enabled; ${revived} that were given up are tried again.` : `Webhook ${id} is enabled; everything after sequence ${after} is sent once more.`,
    })
  })
}

export const webhooksDead: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    if (store !== null) await findWebhook(store, id)
    const dead = (await store?.deliveries({ webhook: id, dead: true, limit: 1_000 })) ?? []
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), webhook: id, dead: dead.map(toDeliveryDocument) })
    if (dead.length === 0) return cli.terminal.print('Nothing was given up.')
    cli.terminal.print(...formatTable(['MESSAGE', 'DATABASE', 'KEY', 'TRIES', 'SINCE', 'LAST'], dead.map((delivery) => [
      delivery.messageId, delivery.database, toPrintable(delivery.key), String(delivery.attempts), isoTime(delivery.firstAt) ?? '–', `${delivery.lastStatus ?? ''} ${toPrintable(delivery.lastAnswer ?? '')}`.trim(),
    ])))
    cli.terminal.remark(cli.terminal.colors.dim(`\`tidemark webhooks replay ${id}\` tries them again.`))
  })
}

export const webhooksRotate: VerbAction<[string, TargetFlags & { readonly overlap: number }]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const by = currentActor()
    const { webhook, secret } = await rotateWebhook(store, id, flags.overlap * HOUR_MS, by)
    await printWebhook(cli, target, store, webhook, { secret, said: `The secret before it signs as well until ${isoTime(by.at + flags.overlap * HOUR_MS)}.` })
  })
}

export const webhooksRemove: VerbAction<[string, TargetFlags & { readonly yes?: boolean }]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const webhook = await findWebhook(store, id)
    const document = toWebhookDocument(webhook, await store.headSequence())
    if (flags.yes !== true) throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: webhook ${id} (tenant ${target.tenant}, ${webhook.waiting + webhook.dead} messages kept) is removed only with --yes.`, { webhook: document })
    await removeWebhook(store, id, currentActor())
    if (cli.terminal.json) cli.terminal.printDocument({ ...targetDocument(target), removed: document })
    else cli.terminal.remark(`Webhook ${id} is removed.`)
  })
}

function currentActor(): WebhookActor {
  return { actor: actorName(), at: systemClock.now() }
}

async function printWebhook({ terminal }: Cli, target: Target, store: Store, webhook: Webhook, { secret, said }: { secret?: string; said: string }): Promise<void> {
  if (terminal.json) return terminal.printDocument({ ...targetDocument(target), webhook: { ...toWebhookDocument(webhook, await store.headSequence()), ...(secret !== undefined && { secret }) } })
  if (secret !== undefined) terminal.print(secret)
  terminal.remark(said, ...(secret === undefined ? [] : [terminal.colors.dim('Keep the secret now: it is not shown again.')]))
}

function describeFilter({ databases, actions }: Webhook): string {
  return [databases?.join(',') ?? 'all', ...(actions === null ? [] : [actions.join(',')])].join(' ')
}

/** The word for no filter at all; it stays a word, because commander takes null for an option without a value. */
function parseOrAll<Words>(parse: (text: string) => Words): (text: string) => Words | 'all' {
  return (text) => (text === 'all' ? text : parse(text))
}

function toFilter<Words>(given: Words | 'all'): Words | null {
  return given === 'all' ? null : given
}

function parseNames(text: string): string[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()).filter((name) => name !== ''))]
  if (names.length === 0) throw new InvalidArgumentError('It names nothing.')
  return names
}

function parseNamesOf<Word extends string>(words: readonly Word[]): (text: string) => Word[] {
  return (text) => {
    const given = parseNames(text)
    const wrong = given.find((word) => !words.includes(word as Word))
    if (wrong !== undefined) throw new InvalidArgumentError(`${JSON.stringify(wrong)} is none of ${words.join(', ')}.`)
    return given as Word[]
  }
}
